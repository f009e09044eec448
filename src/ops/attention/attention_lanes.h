/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_lanes.h - what attention needs of a vector beyond ops/simd: powers of
 * two, ranges of lanes, dropout's numbers. Included after simd/vec_avx2.h or simd/vec_avx512.h. */
#ifndef HR_OPS_ATTENTION_LANES_H
#define HR_OPS_ATTENTION_LANES_H

#include "base/checked.h"
#include "ops/attention/attention_kernels.h"
#include "ops/element.h"
#include "ops/simd/unroll.h"

#define NOINLINE static __attribute__((noinline))

/* The same bits as vec_bits, but + and << work on lanes of 32. */
typedef uint32_t vec_lanes __attribute__((vector_size(4 * VEC_LANES)));

VEC_INLINE int64_t lanes_of(int64_t count)
{
    return hr_max(0, hr_min(count, VEC_LANES));
}

VEC_INLINE const void *row_of(hr_attention_rows rows, hr_dtype dtype, int64_t row)
{
    return hr_element_at(rows.first, row * rows.stride, dtype);
}

/* Elements of a row of `width` from `at` on; zeros past it. */
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

/* a in lanes [first, last), b in the others. */
VEC_INLINE vec select_range(vec a, vec b, int64_t first, int64_t last)
{
    return vec_first(b, vec_first(a, b, lanes_of(last)), lanes_of(first));
}

/* 2^t, 2e-6 relative; below -127 exactly 0; t < 128. Rounding by a large constant leaves the whole
 * part in the low bits of the sum, ready to be added to the exponent: two thirds of vec_exp's
 * instructions, and here the exponentials are what is left beside the products. */
VEC_INLINE vec exp2_of(vec t)
{
    const vec big = vec_set(12582912.f); /* 1.5 * 2^23 */
    t = vec_max(vec_set(-127.f), t);     /* in this order NaN stays */
    const vec sum = vec_add(t, big), f = vec_sub(t, vec_sub(sum, big));
    vec p = vec_fma(vec_set(1.33989e-3f), f, vec_set(9.61853e-3f));
    p = vec_fma(p, f, vec_set(5.550339e-2f));
    p = vec_fma(p, f, vec_set(2.402265e-1f));
    p = vec_fma(p, f, vec_set(6.931472e-1f));
    p = vec_fma(p, f, vec_set(1.f));
    return (vec)((vec_lanes)p + ((vec_lanes)sum << 23));
}

/* hr_random_element (base/random.h) of a vector of keys and elements. */
VEC_INLINE vec_bits random_of(vec_bits low, vec_bits high, vec_bits element)
{
    const vec_bits spread = vec_bits_set(0x7feb352du);
    vec_bits x = vec_bits_xor(vec_bits_mul(element, vec_bits_set(0x9e3779b9u)), low);
    x = vec_bits_mul(vec_bits_xor(x, vec_bits_shift_right(x, 16)), spread);
    x = vec_bits_xor(x, vec_bits_shift_right(x, 15));
    x = vec_bits_xor(vec_bits_mul(x, vec_bits_set(0x846ca68bu)), high);
    x = vec_bits_mul(vec_bits_xor(x, vec_bits_shift_right(x, 16)), spread);
    return vec_bits_xor(x, vec_bits_shift_right(x, 15));
}

#endif
