/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/unzstd.h - decompresses concatenated Zstandard frames in memory of the caller. */
#ifndef HR_CORPUS_UNZSTD_H
#define HR_CORPUS_UNZSTD_H

#include "corpus/gunzip.h"

/* The largest supported window: RFC 8878 (3.1.1.1.2) recommends it for every decoder, and zstd uses
 * it up to level 19. */
enum { HR_UNZSTD_WINDOW_LOG = 23, HR_UNZSTD_WINDOW_BYTES = 1 << HR_UNZSTD_WINDOW_LOG };

typedef struct hr_unzstd hr_unzstd;

int64_t hr_unzstd_bytes(void);

/* Builds a decoder in memory [hr_unzstd_bytes()], aligned to 64. */
hr_unzstd *hr_unzstd_place(void *memory);

/* Begins a file. `path` is for error messages and is borrowed. */
void hr_unzstd_begin(hr_unzstd *unzstd, const char *path);

/* As hr_gunzip_step. A larger window is refused with its size and a command that recompresses the
 * file. */
HR_MUST_CHECK hr_status hr_unzstd_step(hr_unzstd *unzstd, const uint8_t *in, int64_t in_bytes,
                                       uint8_t *out, int64_t out_bytes, hr_unpacked *unpacked,
                                       hr_error *err);

#endif
