/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as a manifest, with a valid hash or without: the state has numbers within bounds,
 * or the manifest is refused with a message of one line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check(const hr_manifest *manifest)
{
    const hr_run_state *state = &manifest->state;
    if (state->step < 0 || state->step > state->steps || state->tokens < 0) abort();
    if (state->level_count < 0 || state->level_count > HR_STATE_LEVELS) abort();
    if (manifest->file_count < 0 || manifest->file_count > HR_MANIFEST_FILES_MAX) abort();
    for (int32_t i = 0; i < manifest->file_count; i++) {
        const hr_manifest_file *file = &manifest->files[i];
        if (!file->name[0] || strchr(file->name, '/') || !strcmp(file->name, "..")) abort();
        if (file->bytes < 0 || !hr_manifest_find(manifest, file->name)) abort();
    }
}

static bool read_it(const void *bytes, int64_t count, hr_manifest *manifest)
{
    hr_error err = { HR_OK, "" };
    /* an exact allocation, so reads past its end are detected */
    char *text = malloc((size_t)count + !count);
    memcpy(text, bytes, (size_t)count);
    const hr_status status = hr_manifest_read(manifest, "a file", text, count, &err);
    free(text);
    if (status == HR_OK) {
        check(manifest);
        return true;
    }
    if ((status != HR_CORRUPT && status != HR_USAGE) || err.status != status || !err.message[0] ||
        strchr(err.message, '\n'))
        abort();
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const char before[] = ",\"xxh3_128\":\"", behind[] = "\"}\n";
    static char whole[HR_MANIFEST_BYTES], printed[HR_MANIFEST_BYTES], again[HR_MANIFEST_BYTES];
    char digits[HR_HASH_BYTES];
    hr_manifest manifest;
    hr_hash hash;
    read_it(bytes, (int64_t)count, &manifest);
    if (count > sizeof whole - 64) return 0;
    hr_hash_begin(&hash);
    hr_hash_add(&hash, bytes, (int64_t)count);
    memcpy(whole, bytes, count);
    const int tail = snprintf(whole + count, sizeof whole - count, "%s%s%s", before,
                              hr_hash_print(&hash, digits), behind);
    if (!read_it(whole, (int64_t)count + tail, &manifest)) return 0;
    const int64_t printed_bytes = hr_manifest_print(&manifest, printed);
    if (!read_it(printed, printed_bytes, &manifest)) abort();
    if (hr_manifest_print(&manifest, again) != printed_bytes ||
        memcmp(printed, again, (size_t)printed_bytes))
        abort();
    return 0;
}
