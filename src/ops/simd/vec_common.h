/* SPDX-License-Identifier: Apache-2.0 */
/* ops/simd/vec_common.h - functions built on those of either vector width. Only vec_avx2.h and
 * vec_avx512.h include it. */
#ifndef HR_OPS_SIMD_VEC_COMMON_H
#define HR_OPS_SIMD_VEC_COMMON_H

#include "base/dtype.h"

/* Loads `lanes` activations from base[index]. A constant dtype makes the branch free. */
VEC_INLINE vec vec_load(const void *base, int64_t index, int64_t lanes, hr_dtype dtype)
{
    return dtype == HR_BF16  ? vec_load_bf16((const uint16_t *)base + index, lanes)
           : dtype == HR_F16 ? vec_load_f16((const uint16_t *)base + index, lanes)
                             : vec_load_f32((const float *)base + index, lanes);
}

VEC_INLINE void vec_store(void *base, int64_t index, vec value, int64_t lanes, hr_dtype dtype)
{
    if (dtype == HR_BF16) vec_store_bf16((uint16_t *)base + index, value, lanes);
    else if (dtype == HR_F16) vec_store_f16((uint16_t *)base + index, value, lanes);
    else vec_store_f32((float *)base + index, value, lanes);
}

/* Calls function(..., dtype) with the dtype of activations as a constant. */
#define VEC_WITH_DTYPE(dtype, function, ...) \
    ((dtype) == HR_BF16  ? function(__VA_ARGS__, HR_BF16) \
     : (dtype) == HR_F16 ? function(__VA_ARGS__, HR_F16) \
                         : function(__VA_ARGS__, HR_F32))

/* Prefetches the cache line at `at` for use soon; an address past the end of an array is
 * allowed. */
VEC_INLINE void vec_prefetch(const void *at)
{
    _mm_prefetch(at, _MM_HINT_T0);
}

/* The same for later use, into L2 only. */
VEC_INLINE void vec_prefetch_later(const void *at)
{
    _mm_prefetch(at, _MM_HINT_T1);
}

/* exp(x) for x <= 88, relative error 6e-7; zero below the smallest normal number; keeps NaN.
 *
 * x = n ln 2 + r with |r| <= ln(2) / 2. The minimax polynomial of degree 5 for e^r has an error of
 * 7.5e-8; its constant is set to 1 so that exp(0) is 1. ln 2 as one float is off by 1.9e-9, which
 * contributes 2.4e-7 for n <= 126. */
VEC_INLINE vec vec_exp(vec x)
{
    const vec n = vec_round(vec_mul(x, vec_set(1.44269504f)));
    const vec r = vec_fnma(n, vec_set(0.693147181f), x);
    vec p = vec_set(0.00829761947f);
    p = vec_fma(p, r, vec_set(0.0419156293f));
    p = vec_fma(p, r, vec_set(0.166675765f));
    p = vec_fma(p, r, vec_set(0.499988927f));
    p = vec_fma(p, r, vec_set(0.999999691f));
    p = vec_fma(p, r, vec_set(1));
    return vec_zero_below(vec_scale_by_power(p, n), x, vec_set(-87.336544f));
}

/* Integer view of a vector: + and << act on 32-bit lanes. */
typedef uint32_t vec_lanes __attribute__((vector_size(4 * VEC_LANES)));

#endif
