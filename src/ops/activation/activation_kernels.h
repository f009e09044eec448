/* SPDX-License-Identifier: Apache-2.0 */
/* ops/activation/activation_kernels.h - inner loop of an activation: a contiguous run of
 * elements. */
#ifndef HR_OPS_ACTIVATION_KERNELS_H
#define HR_OPS_ACTIVATION_KERNELS_H

#include <stdint.h>

#include "base/dtype.h"
#include "ops/linear/linear.h"

/* y = act(pre), `count` elements. */
typedef void hr_activation_stretch_fn(const void *pre, void *y, int64_t count, hr_act act,
                                      hr_dtype dtype);

typedef struct {
    hr_activation_stretch_fn *stretch;
} hr_activation_kernels;

/* One function per instruction set, each in its own file. Products with AVX512-BF16 round
 * differently (denormals become zero), so the activation has that variant too. */
void hr_activation_fill_ref(hr_activation_kernels *kernels);
void hr_activation_fill_avx2(hr_activation_kernels *kernels);
void hr_activation_fill_avx512(hr_activation_kernels *kernels);
void hr_activation_fill_avx512bf16(hr_activation_kernels *kernels);

#endif
