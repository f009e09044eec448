/* SPDX-License-Identifier: Apache-2.0 */
/* ops/rope/rope_kernels.h - inner loop of RoPE: one row, in place. */
#ifndef HR_OPS_ROPE_KERNELS_H
#define HR_OPS_ROPE_KERNELS_H

#include <stdint.h>

#include "base/dtype.h"
#include "ops/rope/rope.h"

/* Rotates the heads of one row by the angles of one table row. */
typedef void hr_rope_rotate_fn(void *row, const float *table, const hr_rope_attr *attr,
                               hr_dtype dtype);

typedef struct {
    hr_rope_rotate_fn *rotate;
} hr_rope_kernels;

/* One function per instruction set, each in its own file. */
void hr_rope_fill_ref(hr_rope_kernels *kernels);
void hr_rope_fill_avx2(hr_rope_kernels *kernels);
void hr_rope_fill_avx512(hr_rope_kernels *kernels);

#endif
