/* SPDX-License-Identifier: Apache-2.0 */
/* prove/matrix.h - matrices of proofs that compare two models: initial weights, and gradients of
 * one step. */
#ifndef HR_PROVE_MATRIX_H
#define HR_PROVE_MATRIX_H

#include "prove/proofs.h"

/* A matrix of fp32 in a region, row by row. */
typedef struct {
    int64_t K, N;
    float *elements;
} hr_matrix;

static inline double hr_matrix_at(const hr_matrix *m, int64_t k, int64_t n)
{
    return (double)m->elements[k * m->N + n];
}

/* Errors FAILURE  the region is too small. */
HR_MUST_CHECK hr_status hr_matrix_take(hr_region *region, int64_t K, int64_t N, hr_matrix *m,
                                       hr_error *err);

/* Initial weight `index`. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_matrix_read(const hr_values *values, int32_t index, hr_region *region,
                                       hr_matrix *m, hr_error *err);

/* The gradient of parameter `index` at the first step. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_matrix_read_gradient(const hr_trace *trace, int32_t index,
                                                hr_region *region, hr_matrix *m, hr_error *err);

/* Adds the difference of two gradients of `name` to what was found. One whose elements are below a
 * thousandth of the average gradient in prover->own is only rounding, and counts as that large. */
void hr_matrix_compare(hr_prover *prover, const char *name, const hr_matrix *expected,
                       const hr_matrix *seen);

#endif
