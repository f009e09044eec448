/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/stored.h - writes safetensors files, valid or invalid, without code of the
 * product. */
#ifndef HR_TESTS_SUPPORT_STORED_H
#define HR_TESTS_SUPPORT_STORED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/folder.h"

enum { STORED_HEADER_MAX = 1 << 18 };

typedef struct {
    char *header;
    int64_t header_bytes, data_bytes;
    uint8_t *data;
} stored_file;

static inline stored_file stored_begin(void)
{
    stored_file file = { .header = malloc(STORED_HEADER_MAX) };
    file.header_bytes = sprintf(file.header, "{\"__metadata__\":{\"format\":\"pt\"}");
    return file;
}

/* Appends a tensor; `shape` as in JSON: "[2,3]". */
static inline void stored_add(stored_file *file, const char *name, const char *dtype,
                              const char *shape, const void *data, int64_t bytes)
{
    file->header_bytes += snprintf(
        file->header + file->header_bytes, (size_t)(STORED_HEADER_MAX - file->header_bytes),
        ",\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%lld,%lld]}", name, dtype, shape,
        (long long)file->data_bytes, (long long)(file->data_bytes + bytes));
    if (file->header_bytes > STORED_HEADER_MAX - 2) abort();
    file->data = realloc(file->data, (size_t)(file->data_bytes + bytes) + 1);
    memcpy(file->data + file->data_bytes, data, (size_t)bytes);
    file->data_bytes += bytes;
}

/* Writes the file and frees its memory. */
static inline void stored_end(stored_file *file, const char *path)
{
    file->header[file->header_bytes++] = '}';
    const int64_t bytes = 8 + file->header_bytes + file->data_bytes;
    uint8_t *whole = malloc((size_t)bytes);
    for (int32_t i = 0; i < 8; i++) whole[i] = (uint8_t)(file->header_bytes >> (8 * i));
    memcpy(whole + 8, file->header, (size_t)file->header_bytes);
    memcpy(whole + 8 + file->header_bytes, file->data, (size_t)file->data_bytes);
    hr_folder_write(path, whole, bytes);
    free(whole);
    free(file->header);
    free(file->data);
}

#endif
