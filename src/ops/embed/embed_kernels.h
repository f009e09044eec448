/* SPDX-License-Identifier: Apache-2.0 */
/* ops/embed/embed_kernels.h - inner loops of the embedding: one row, or a thread's columns of
 * one. */
#ifndef HR_OPS_EMBED_KERNELS_H
#define HR_OPS_EMBED_KERNELS_H

#include <stdint.h>

#include "base/dtype.h"

/* y[i] = word[i] + position[i]; position may be null. */
typedef void hr_embed_fwd_fn(const float *word, const float *position, void *y, int64_t count,
                             hr_dtype dtype);

/* sum[i] += dy[i]. */
typedef void hr_embed_bwd_fn(float *sum, const void *dy, int64_t count, hr_dtype dtype);

typedef struct {
    hr_embed_fwd_fn *fwd;
    hr_embed_bwd_fn *bwd;
} hr_embed_kernels;

/* One function per instruction set, each in its own file. */
void hr_embed_fill_ref(hr_embed_kernels *kernels);
void hr_embed_fill_avx2(hr_embed_kernels *kernels);
void hr_embed_fill_avx512(hr_embed_kernels *kernels);

#endif
