/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/zst.h - reads a golden file that is stored compressed, a whole file.zst. */
#ifndef HR_TESTS_SUPPORT_ZST_H
#define HR_TESTS_SUPPORT_ZST_H

#include <stdint.h>
#include <stdlib.h>

#include <zstd.h>

#include "support/folder.h"

/* The decompressed text and a null; free it. The test fails if the file cannot be read. */
static inline char *zst_read(const char *path, int64_t *bytes)
{
    int64_t packed_bytes = 0;
    char *packed = hr_folder_read(path, &packed_bytes);
    const unsigned long long room = ZSTD_getFrameContentSize(packed, (size_t)packed_bytes);
    if (room >= 1 << 28) fail_msg("%s: no Zstandard file below 256 MiB", path);
    char *text = malloc((size_t)room + 1);
    const size_t got = ZSTD_decompress(text, (size_t)room, packed, (size_t)packed_bytes);
    if (ZSTD_isError(got)) fail_msg("%s: %s", path, ZSTD_getErrorName(got));
    text[got] = 0;
    *bytes = (int64_t)got;
    free(packed);
    return text;
}

#endif
