/* SPDX-License-Identifier: Apache-2.0 */
/* ops/norm/norm_kernels.h - inner loops of LayerNorm and RMSNorm: runs of groups, one thread. Here
 * a row is one group of D elements. Shapes, aliasing and numerics are those of norm.h; bias, stat
 * and addend may be null. */
#ifndef HR_OPS_NORM_KERNELS_H
#define HR_OPS_NORM_KERNELS_H

#include <stdint.h>

#include "base/dtype.h"
#include "ops/norm/norm.h"

typedef void hr_norm_fwd_fn(const void *x, const float *gain, const float *bias, void *y,
                            float *stat, int64_t rows, const hr_norm_attr *attr, hr_dtype dtype);

/* Backward for the rows of one block of at most HR_ROW_BLOCK_TOKENS tokens. Writes the sums of the
 * block to partial [hr_norm_stats(attr), D]: of the gain, then for LayerNorm of the bias. */
typedef void hr_norm_bwd_fn(const void *dy, const void *x, const float *stat, const float *gain,
                            const void *addend, void *dx, float *partial, int64_t rows,
                            const hr_norm_attr *attr, hr_dtype dtype);

typedef struct {
    hr_norm_fwd_fn *fwd;
    hr_norm_bwd_fn *bwd;
} hr_norm_kernels;

/* One function per instruction set, each in its own file. */
void hr_norm_fill_ref(hr_norm_kernels *kernels);
void hr_norm_fill_avx2(hr_norm_kernels *kernels);
void hr_norm_fill_avx512(hr_norm_kernels *kernels);
void hr_norm_fill_avx512bf16(hr_norm_kernels *kernels);

#endif
