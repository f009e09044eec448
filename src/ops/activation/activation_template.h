/* SPDX-License-Identifier: Apache-2.0 */
/* ops/activation/activation_template.h - an activation over the vectors of ops/simd. One pass;
 * bound by memory, except for GELU in fp32, which divides. */
#include "ops/activation/activation_kernels.h"
#include "ops/activation/activation_vec.h"

VEC_INLINE void step(const void *pre, void *y, int64_t i, int64_t lanes, hr_act act, hr_dtype dtype)
{
    hr_store_result(dtype, y, i, hr_activate_vec(dtype, act, vec_load(pre, i, lanes, dtype)),
                    lanes);
}

VEC_INLINE void all(const void *pre, void *y, int64_t count, hr_act act, hr_dtype dtype)
{
    int64_t i = 0;
    for (; i + VEC_LANES <= count; i += VEC_LANES) step(pre, y, i, VEC_LANES, act, dtype);
    if (i < count) step(pre, y, i, count - i, act, dtype);
}

static void stretch(const void *pre, void *y, int64_t count, hr_act act, hr_dtype dtype)
{
    if (act == HR_ACT_GELU) VEC_WITH_DTYPE(dtype, all, pre, y, count, HR_ACT_GELU);
    else if (act == HR_ACT_GELU_TANH) VEC_WITH_DTYPE(dtype, all, pre, y, count, HR_ACT_GELU_TANH);
    else if (act == HR_ACT_RELU) all(pre, y, count, HR_ACT_RELU, dtype);
    else all(pre, y, count, HR_ACT_NONE, dtype);
}

void FILL(hr_activation_kernels *kernels)
{
    *kernels = (hr_activation_kernels){ stretch };
}
