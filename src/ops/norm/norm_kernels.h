/* SPDX-License-Identifier: Apache-2.0 */
/* ops/norm/norm_kernels.h - inner work of LayerNorm: runs of rows, one thread. Shapes, aliasing and
 * numerics are those of norm.h; bias, stat and addend may be null. */
#ifndef HR_OPS_NORM_KERNELS_H
#define HR_OPS_NORM_KERNELS_H

#include <stdint.h>

#include "base/dtype.h"

enum { HR_NORM_BLOCK_TOKENS = 64 };

typedef void hr_norm_fwd_fn(const void *x, const float *gain, const float *bias, void *y,
                            float *stat, int64_t rows, int64_t D, float eps, hr_dtype dtype);

/* Rows of one block, at most HR_NORM_BLOCK_TOKENS. Writes the block's sums: partial [2, D], gain's
 * and then bias's. */
typedef void hr_norm_bwd_fn(const void *dy, const void *x, const float *stat, const float *gain,
                            const void *addend, void *dx, float *partial, int64_t rows, int64_t D,
                            hr_dtype dtype);

typedef struct {
    hr_norm_fwd_fn *fwd;
    hr_norm_bwd_fn *bwd;
} hr_norm_kernels;

void hr_norm_kernels_fill(hr_norm_kernels *kernels, uint32_t cpu_mask);

/* The rungs, each in a file of its own. */
void hr_norm_fill_ref(hr_norm_kernels *kernels);
void hr_norm_fill_avx2(hr_norm_kernels *kernels);
void hr_norm_fill_avx512(hr_norm_kernels *kernels);
void hr_norm_fill_avx512bf16(hr_norm_kernels *kernels);

#endif
