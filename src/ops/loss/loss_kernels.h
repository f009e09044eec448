/* SPDX-License-Identifier: Apache-2.0 */
/* ops/loss/loss_kernels.h - inner loop of cross-entropy: one row with a counted target. */
#ifndef HR_OPS_LOSS_KERNELS_H
#define HR_OPS_LOSS_KERNELS_H

#include <stdint.h>

#include "base/dtype.h"

/* Results of one row, not scaled. */
typedef struct {
    double loss;    /* cross-entropy */
    double log_sum; /* log of the sum of exponentials */
} hr_loss_row;

/* Returns the loss of a row. Writes the scaled gradient, including that of the z-loss, unless
 * dlogits is null. 0 <= target < V. dlogits may be exactly logits. */
typedef hr_loss_row hr_loss_row_fn(const void *logits, void *dlogits, int64_t V, int64_t target,
                                   double scale, double z, hr_dtype dtype);

typedef struct {
    hr_loss_row_fn *row;
} hr_loss_kernels;

void hr_loss_kernels_fill(hr_loss_kernels *kernels, uint32_t cpu_mask);

/* One function per instruction set, each in its own file. */
void hr_loss_fill_ref(hr_loss_kernels *kernels);
void hr_loss_fill_avx2(hr_loss_kernels *kernels);
void hr_loss_fill_avx512(hr_loss_kernels *kernels);
void hr_loss_fill_avx512bf16(hr_loss_kernels *kernels);

#endif
