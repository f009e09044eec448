/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/update_kernels.h - inner loops of the update: flat arrays, one thread. */
#ifndef HR_OPS_UPDATE_KERNELS_H
#define HR_OPS_UPDATE_KERNELS_H

#include <stdint.h>

#include "base/bf16.h"
#include "ops/update/update_scratch.h"

enum { HR_SUMSQ_LANES = 16 };

/* g = scale gradient + pull w;  m = keep1 m + take1 g;  v = keep2 v + take2 g^2
 * w = w - (shrink w + rate m / (sqrt(debias2 v) + eps)) */
typedef struct {
    float scale, pull, keep1, take1, keep2, take2, shrink, rate, debias2, eps;
} hr_adamw_factors;

/* g = scale gradient + pull w;  m = keep m + g;  w = w - rate m */
typedef struct {
    float scale, pull, keep, rate;
} hr_sgd_factors;

/* g = scale gradient;  c = keep1 m + take1 g;  m = keep2 m + take2 g
 * w = w - (shrink w + rate sign(c)) */
typedef struct {
    float scale, keep1, take1, keep2, take2, shrink, rate;
} hr_lion_factors;

/* Writes the sum of squares of each run of HR_UPDATE_RUN_ELEMENTS (the last may be shorter) to
 * `runs`: element i of a run goes to lane i % 16, and the lanes are added in order. A product of
 * two floats is exact in double, so all variants are bit-identical. */
typedef void hr_sumsq_fn(const float *gradient, int64_t count, double *runs);

/* weight may be null. */
typedef void hr_adamw_fn(const float *gradient, float *master, float *m, float *v, hr_bf16 *weight,
                         int64_t count, const hr_adamw_factors *factors);
typedef void hr_sgd_fn(const float *gradient, float *master, float *m, hr_bf16 *weight,
                       int64_t count, const hr_sgd_factors *factors);
typedef void hr_lion_fn(const float *gradient, float *master, float *m, hr_bf16 *weight,
                        int64_t count, const hr_lion_factors *factors);

typedef struct {
    hr_sumsq_fn *sumsq;
    hr_adamw_fn *adamw;
    hr_sgd_fn *sgd;
    hr_lion_fn *lion;
} hr_update_kernels;

void hr_update_kernels_fill(hr_update_kernels *kernels, uint32_t cpu_mask);

/* One function per instruction set, each in its own file. */
void hr_update_fill_ref(hr_update_kernels *kernels);
void hr_update_fill_avx2(hr_update_kernels *kernels);
void hr_update_fill_avx512(hr_update_kernels *kernels);

#endif
