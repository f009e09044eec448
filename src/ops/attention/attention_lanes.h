/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_lanes.h - vector functions that only attention needs: lane ranges and
 * logarithms. Include it after simd/vec_avx2.h or simd/vec_avx512.h. */
#ifndef HR_OPS_ATTENTION_LANES_H
#define HR_OPS_ATTENTION_LANES_H

#include "base/checked.h"
#include "base/element.h"
#include "ops/attention/attention_kernels.h"
#include "ops/simd/philox.h"
#include "ops/simd/unroll.h"

#define NOINLINE static __attribute__((noinline))

VEC_INLINE int64_t lanes_of(int64_t count)
{
    return hr_max(0, hr_min(count, VEC_LANES));
}

VEC_INLINE const void *row_of(hr_attention_rows rows, hr_dtype dtype, int64_t row)
{
    return hr_element_at(rows.first, row * rows.stride, dtype);
}

/* Loads elements of a row of `width` from `at` on; zeros past it. */
VEC_INLINE vec load_elements(const void *row, hr_dtype dtype, int64_t at, int64_t width)
{
    return vec_load(row, at, lanes_of(width - at), dtype);
}

VEC_INLINE vec load_floats(const float *at)
{
    return vec_load_f32(at, VEC_LANES);
}

VEC_INLINE void store_floats(float *at, vec value)
{
    vec_store_f32(at, value, VEC_LANES);
}

/* a in lanes [first, last), b in the other lanes. */
VEC_INLINE vec select_range(vec a, vec b, int64_t first, int64_t last)
{
    return vec_first(b, vec_first(a, b, lanes_of(last)), lanes_of(first));
}

/* ln x for x >= 1; absolute error 3e-7 below 7 and 1.4e-6 below a million, from rounding the
 * argument of the exponential. The bits of a float give log2 to 0.09, and each iteration of
 * Newton's method for e^y = x squares the error. */
VEC_INLINE vec log_of(vec x)
{
    const vec magic = vec_set(8388608.f), one = vec_set(1); /* 2^23: the low bits hold an integer */
    const vec whole = (vec)(((vec_lanes)x >> 9) | (vec_lanes)magic);
    const vec exponent = vec_fma(vec_sub(whole, magic), vec_set(0x1p-14f), vec_set(-126.957f));
    vec y = vec_mul(exponent, vec_set(0.69314718f));
    UNROLL for (int iteration = 0; iteration < 3; iteration++)
        y = vec_add(y, vec_sub(vec_mul(x, vec_exp2(vec_mul(y, vec_set(-1.44269504f)))), one));
    return y;
}

#endif
