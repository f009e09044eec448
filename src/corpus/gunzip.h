/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/gunzip.h - decompresses concatenated gzip streams in memory of the caller. */
#ifndef HR_CORPUS_GUNZIP_H
#define HR_CORPUS_GUNZIP_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

typedef struct hr_gunzip hr_gunzip;

/* Bytes consumed and produced by one decompression step. */
typedef struct {
    int64_t used, made;
    bool between; /* no stream is open: the input may end here */
} hr_unpacked;

int64_t hr_gunzip_bytes(void);

/* Builds a decoder in memory [hr_gunzip_bytes()], aligned to 64. */
hr_gunzip *hr_gunzip_place(void *memory);

/* Begins a file. `path` is for error messages and is borrowed. */
void hr_gunzip_begin(hr_gunzip *gunzip, const char *path);

/* Decompresses from in [in_bytes] into out [out_bytes] until one of them is exhausted. Skips zeros
 * after the last stream, as gzip does.
 * Errors   CORRUPT  not gzip, or damaged; the message has the byte offset. */
HR_MUST_CHECK hr_status hr_gunzip_step(hr_gunzip *gunzip, const uint8_t *in, int64_t in_bytes,
                                       uint8_t *out, int64_t out_bytes, hr_unpacked *unpacked,
                                       hr_error *err);

#endif
