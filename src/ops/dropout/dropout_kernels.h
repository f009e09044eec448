/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dropout/dropout_kernels.h - inner loop of dropout: one row. */
#ifndef HR_OPS_DROPOUT_KERNELS_H
#define HR_OPS_DROPOUT_KERNELS_H

#include <stdint.h>

#include "base/dtype.h"
#include "base/random.h"

/* y = residual + (bits >= threshold ? x * scale : 0); residual may be null. */
typedef void hr_dropout_row_fn(const void *x, const void *residual, void *y, int64_t D,
                               const hr_random_row *random, uint32_t threshold, float scale,
                               hr_dtype dtype);

typedef struct {
    hr_dropout_row_fn *row;
} hr_dropout_kernels;

/* One function per instruction set, each in its own file. */
void hr_dropout_fill_ref(hr_dropout_kernels *kernels);
void hr_dropout_fill_avx2(hr_dropout_kernels *kernels);
void hr_dropout_fill_avx512(hr_dropout_kernels *kernels);

#endif
