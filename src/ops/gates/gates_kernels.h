/* SPDX-License-Identifier: Apache-2.0 */
/* ops/gates/gates_kernels.h - one head of one row: K elements from index `at` on. */
#ifndef HR_OPS_GATES_KERNELS_H
#define HR_OPS_GATES_KERNELS_H

#include "base/dtype.h"
#include "ops/gates/gates.h"

/* o = sum over branches of gate[b] x[b]; o may be one of x. */
typedef void hr_gates_sum_fn(const float *gate, void *const *x, int32_t branches, void *o,
                             int64_t at, int64_t K, hr_dtype dtype);

typedef float hr_gates_dot_fn(const void *a, const void *b, int64_t at, int64_t K, hr_dtype dtype);

typedef struct {
    hr_gates_sum_fn *sum;
    hr_gates_dot_fn *dot;
} hr_gates_kernels;

/* One function per instruction set, each in its own file. */
void hr_gates_fill_ref(hr_gates_kernels *kernels);
void hr_gates_fill_avx2(hr_gates_kernels *kernels);
void hr_gates_fill_avx512(hr_gates_kernels *kernels);

#endif
