/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/oracle.h - reads golden files, safetensors and JSON, with its own code and
 * libraries. */
#ifndef HR_TESTS_SUPPORT_ORACLE_H
#define HR_TESTS_SUPPORT_ORACLE_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    json_t *header;
    uint8_t *bytes;
    int64_t data_offset;
} oracle_file;

static inline int oracle_open(oracle_file *file, const char *path)
{
    FILE *in = fopen(path, "rb");
    uint64_t length;
    if (!in) return 0;
    fseek(in, 0, SEEK_END);
    const long bytes = ftell(in);
    rewind(in);
    file->bytes = malloc((size_t)bytes);
    if (fread(file->bytes, 1, (size_t)bytes, in) != (size_t)bytes) abort();
    fclose(in);
    memcpy(&length, file->bytes, sizeof length);
    file->header = json_loadb((const char *)file->bytes + 8, length, 0, 0);
    file->data_offset = 8 + (int64_t)length;
    return file->header != 0;
}

static inline void oracle_close(oracle_file *file)
{
    json_decref(file->header);
    free(file->bytes);
}

/* The bytes of a tensor and their number; null: there is no such tensor. */
static inline const void *oracle_tensor(const oracle_file *file, const char *prefix,
                                        const char *name, int64_t *bytes)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s%s", prefix, name);
    const json_t *offsets = json_object_get(json_object_get(file->header, whole), "data_offsets");
    if (!offsets) return 0;
    const int64_t begin = json_integer_value(json_array_get(offsets, 0));
    *bytes = json_integer_value(json_array_get(offsets, 1)) - begin;
    return file->bytes + file->data_offset + begin;
}

/* Overwrites the first `count` floats of a tensor in a file with one value. */
static inline void oracle_spoil(const char *path, const char *name, float value, int64_t count)
{
    oracle_file file = { 0 };
    int64_t bytes = 0;
    if (!oracle_open(&file, path)) abort();
    const uint8_t *at = oracle_tensor(&file, "", name, &bytes);
    FILE *out = fopen(path, "r+b");
    if (!at || bytes < 4 * count || !out || fseek(out, at - file.bytes, SEEK_SET)) abort();
    for (int64_t i = 0; i < count; i++) fwrite(&value, sizeof value, 1, out);
    if (fclose(out)) abort();
    oracle_close(&file);
}

#endif
