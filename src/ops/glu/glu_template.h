/* SPDX-License-Identifier: Apache-2.0 */
/* ops/glu/glu_template.h - a stretch of a gated activation over the vectors of ops/simd. One pass;
 * all that a place holds is read before anything is written there, so any output may lie over any
 * input. One thread of an Intel Xeon with AMX, 2026-11, by its own time: fp32 92 % of copy, and
 * backward 105 % of read-modify-write, bound by memory; bf16 72 % and 74 %, bound by some twenty
 * vector instructions. */
#include <stdbool.h>

#include "ops/glu/glu_kernels.h"

/* Beyond this size of x, act is 0 or x and its slope 0 or 1, to 1e-34. Inside, exp(-z) and its
 * inverse are normal numbers. */
VEC_INLINE vec least_of(hr_glu_act act)
{
    return vec_set(act == HR_GLU_SILU ? -87.f : -9.9f);
}

/* Far below counts as the least, and far above as what its negative is; in this order NaN stays. */
VEC_INLINE vec from_below(hr_glu_act act, vec x)
{
    return vec_max(least_of(act), x);
}

VEC_INLINE vec from_above(hr_glu_act act, vec x)
{
    const vec zero = vec_set(0);
    return vec_sub(zero, vec_max(least_of(act), vec_sub(zero, x)));
}

/* exp(-z) at x, which is not far below. Far above it is 0: x^2 may be too large for a number. */
VEC_INLINE vec shut_to_open(hr_glu_act act, vec x)
{
    const vec less_log2_e = vec_set(-1.44269504f);
    const vec linear = vec_set(1.59576912f), cubic = vec_set(0.0713548163f);
    vec z = x;
    if (act == HR_GLU_GELU_TANH) z = vec_mul(x, vec_fma(vec_mul(x, x), cubic, linear));
    return vec_exp2(vec_mul(z, less_log2_e));
}

/* x dz/dx at an x of no great size. */
VEC_INLINE vec turn_of(hr_glu_act act, vec x)
{
    const vec linear = vec_set(1.59576912f), cubic3 = vec_set(0.214064449f);
    return act == HR_GLU_SILU ? x : vec_mul(x, vec_fma(vec_mul(x, x), cubic3, linear));
}

/* s(z), from exp(-z). */
VEC_INLINE vec open_of(vec e)
{
    return vec_div(vec_set(1), vec_add(vec_set(1), e));
}

VEC_INLINE void fwd_step(const void *gate, const void *up, void *y, int64_t i, int64_t lanes,
                         hr_glu_act act, hr_dtype dtype)
{
    const vec x = from_below(act, vec_load(gate, i, lanes, dtype));
    const vec value = vec_mul(x, open_of(shut_to_open(act, x)));
    vec_store(y, i, vec_mul(value, vec_load(up, i, lanes, dtype)), lanes, dtype);
}

VEC_INLINE void fwd_all(const void *gate, const void *up, void *y, int64_t count, hr_glu_act act,
                        hr_dtype dtype)
{
    int64_t i = 0;
    for (; i + VEC_LANES <= count; i += VEC_LANES) fwd_step(gate, up, y, i, VEC_LANES, act, dtype);
    if (i < count) fwd_step(gate, up, y, i, count - i, act, dtype);
}

/* The slope is s + s (1 - s) x dz/dx, where 1 - s is exp(-z) s, so that it is not lost beside 1. */
VEC_INLINE void bwd_step(const void *dy, const void *gate, const void *up, void *dgate, void *dup,
                         int64_t i, int64_t lanes, hr_glu_act act, hr_dtype dtype)
{
    const vec x = from_below(act, vec_load(gate, i, lanes, dtype)), inside = from_above(act, x);
    const vec wide = vec_load(up, i, lanes, dtype), through = vec_load(dy, i, lanes, dtype);
    const vec e = shut_to_open(act, x), open = open_of(e);
    const vec bend = vec_mul(vec_mul(e, open), turn_of(act, inside));
    const vec slope = vec_fma(open, bend, open);
    vec_store(dgate, i, vec_mul(vec_mul(through, slope), wide), lanes, dtype);
    vec_store(dup, i, vec_mul(through, vec_mul(x, open)), lanes, dtype);
}

VEC_INLINE void bwd_all(const void *dy, const void *gate, const void *up, void *dgate, void *dup,
                        int64_t count, hr_glu_act act, hr_dtype dtype)
{
    int64_t i = 0;
    for (; i + VEC_LANES <= count; i += VEC_LANES)
        bwd_step(dy, gate, up, dgate, dup, i, VEC_LANES, act, dtype);
    if (i < count) bwd_step(dy, gate, up, dgate, dup, i, count - i, act, dtype);
}

static void fwd(const void *gate, const void *up, void *y, int64_t count, hr_glu_act act,
                hr_dtype dtype)
{
    const bool half = dtype == HR_BF16, silu = act == HR_GLU_SILU;
    if (silu && half) fwd_all(gate, up, y, count, HR_GLU_SILU, HR_BF16);
    else if (silu) fwd_all(gate, up, y, count, HR_GLU_SILU, HR_F32);
    else if (half) fwd_all(gate, up, y, count, HR_GLU_GELU_TANH, HR_BF16);
    else fwd_all(gate, up, y, count, HR_GLU_GELU_TANH, HR_F32);
}

static void bwd(const void *dy, const void *gate, const void *up, void *dgate, void *dup,
                int64_t count, hr_glu_act act, hr_dtype dtype)
{
    const bool half = dtype == HR_BF16, silu = act == HR_GLU_SILU;
    if (silu && half) bwd_all(dy, gate, up, dgate, dup, count, HR_GLU_SILU, HR_BF16);
    else if (silu) bwd_all(dy, gate, up, dgate, dup, count, HR_GLU_SILU, HR_F32);
    else if (half) bwd_all(dy, gate, up, dgate, dup, count, HR_GLU_GELU_TANH, HR_BF16);
    else bwd_all(dy, gate, up, dgate, dup, count, HR_GLU_GELU_TANH, HR_F32);
}

void FILL(hr_glu_kernels *kernels)
{
    *kernels = (hr_glu_kernels){ fwd, bwd };
}
