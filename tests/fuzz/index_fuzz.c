/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as an index beside two valid shards: it is the correct index of their three
 * tensors, or it is refused with a message of one line. */
#define _GNU_SOURCE /* mkdtemp */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static char folder[] = P_tmpdir "/headroom-fuzz-XXXXXX";

static void put(const char *name, const void *bytes, size_t count)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    remove(path); /* truncating the file would wait for the disk */
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, count, file) != count || fclose(file)) abort();
}

static void put_shard(const char *name, const char *header, size_t data_bytes)
{
    char file[256] = { 0 };
    const size_t length = strlen(header);
    file[0] = (char)length;
    memcpy(file + 8, header, length);
    put(name, file, 8 + length + data_bytes);
}

static void remove_folder(void)
{
    static const char *const names[] = { "one.safetensors", "two.safetensors",
                                         "model.safetensors.index.json" };
    for (int i = 0; i < 3; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
    rmdir(folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static int ready;
    hr_stored stored;
    hr_error err = { HR_OK, "" };
    if (!ready++) {
        if (!mkdtemp(folder) || atexit(remove_folder)) abort();
        put_shard("one.safetensors",
                  "{\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8);
        put_shard("two.safetensors",
                  "{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]},"
                  "\"c\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[1,5]}}",
                  5);
    }
    put("model.safetensors.index.json", bytes, count);
    const int64_t room = (hr_stored_bytes(folder) + 63) / 64 * 64;
    hr_region region = hr_region_over(aligned_alloc(64, (size_t)room), room);
    const hr_status status = hr_stored_open(&stored, folder, &region, &err);
    if ((status != HR_OK && status != HR_CORRUPT && status != HR_USAGE) || err.status != status ||
        strchr(err.message, '\n'))
        __builtin_trap();
    if (status == HR_OK && stored.tensor_count > 3) __builtin_trap();
    hr_stored_close(&stored);
    free(region.base);
    return 0;
}
