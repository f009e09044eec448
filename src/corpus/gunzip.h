/* SPDX-License-Identifier: Apache-2.0 */
/* corpus/gunzip.h - gzip streams, one behind the other, in memory that the caller gives. */
#ifndef HR_CORPUS_GUNZIP_H
#define HR_CORPUS_GUNZIP_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

typedef struct hr_gunzip hr_gunzip;

/* What a step of unpacking made of its input. */
typedef struct {
    int64_t used, made;
    bool between; /* no stream is open: the input may end here */
} hr_unpacked;

int64_t hr_gunzip_bytes(void);

/* In memory [hr_gunzip_bytes()], aligned to 64. */
hr_gunzip *hr_gunzip_place(void *memory);

/* Begins a file; `path` is for sentences, and borrowed. */
void hr_gunzip_begin(hr_gunzip *gunzip, const char *path);

/* Unpacks from in [in_bytes] into out [out_bytes] as much as fits. Zeros behind the last stream are
 * passed over, as gzip does.
 * Errors   CORRUPT  no gzip, or damaged: names the byte. */
HR_MUST_CHECK hr_status hr_gunzip_step(hr_gunzip *gunzip, const uint8_t *in, int64_t in_bytes,
                                       uint8_t *out, int64_t out_bytes, hr_unpacked *unpacked,
                                       hr_error *err);

#endif
