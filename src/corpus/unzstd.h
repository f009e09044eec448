/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/unzstd.h - Zstandard frames, one behind the other, in memory that the caller gives. */
#ifndef HR_CORPUS_UNZSTD_H
#define HR_CORPUS_UNZSTD_H

#include "corpus/gunzip.h"

/* The largest window that a frame may ask for: what RFC 8878 (3.1.1.1.2) wants every decoder to
 * have, and what zstd uses up to level 19. */
enum { HR_UNZSTD_WINDOW_LOG = 23, HR_UNZSTD_WINDOW_BYTES = 1 << HR_UNZSTD_WINDOW_LOG };

typedef struct hr_unzstd hr_unzstd;

int64_t hr_unzstd_bytes(void);

/* In memory [hr_unzstd_bytes()], aligned to 64. */
hr_unzstd *hr_unzstd_place(void *memory);

/* Begins a file; `path` is for sentences, and borrowed. */
void hr_unzstd_begin(hr_unzstd *unzstd, const char *path);

/* As hr_gunzip_step. A window that is larger is refused with its size, and what to type. */
HR_MUST_CHECK hr_status hr_unzstd_step(hr_unzstd *unzstd, const uint8_t *in, int64_t in_bytes,
                                       uint8_t *out, int64_t out_bytes, hr_unpacked *unpacked,
                                       hr_error *err);

#endif
