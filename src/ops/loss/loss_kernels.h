/* SPDX-License-Identifier: Apache-2.0 */
/* ops/loss/loss_kernels.h - inner work of cross-entropy: one row whose target counts. */
#ifndef HR_OPS_LOSS_KERNELS_H
#define HR_OPS_LOSS_KERNELS_H

#include <stdint.h>

#include "base/dtype.h"

/* Of one row, not scaled. */
typedef struct {
    double loss;    /* cross-entropy */
    double log_sum; /* of the exponentials */
} hr_loss_row;

/* Writes the scaled gradient, that of z times the square of log_sum with it, unless dlogits is
 * null. 0 <= target < V. dlogits may be exactly logits. */
typedef hr_loss_row hr_loss_row_fn(const void *logits, void *dlogits, int64_t V, int64_t target,
                                   double scale, double z, hr_dtype dtype);

typedef struct {
    hr_loss_row_fn *row;
} hr_loss_kernels;

void hr_loss_kernels_fill(hr_loss_kernels *kernels, uint32_t cpu_mask);

/* The rungs, each in a file of its own. */
void hr_loss_fill_ref(hr_loss_kernels *kernels);
void hr_loss_fill_avx2(hr_loss_kernels *kernels);
void hr_loss_fill_avx512(hr_loss_kernels *kernels);
void hr_loss_fill_avx512bf16(hr_loss_kernels *kernels);

#endif
