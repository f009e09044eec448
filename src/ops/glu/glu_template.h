/* SPDX-License-Identifier: Apache-2.0 */
/* ops/glu/glu_template.h - a stretch of a gated activation over the vectors of ops/simd. One pass;
 * all that a place holds is read before anything is written there, so any output may lie over any
 * input. Bound by memory. */
#include <stdbool.h>

#include "ops/glu/glu_kernels.h"

VEC_INLINE vec negative(vec x)
{
    return vec_sub(vec_set(0), x);
}

/* Beyond this size of x act is 0 or x to 1e-35, and its slope 0 or 1. Inside, exp(-z) and its
 * inverse are normal numbers. */
VEC_INLINE float limit_of(hr_glu_act act)
{
    return act == HR_GLU_SILU ? 87.f : 9.9f;
}

/* The parts of an activation at x, between the limits: s(z), 1 - s(z) and x dz/dx. */
typedef struct {
    vec open, shut, turn;
} gate_parts;

/* What is far out counts as the limit there; in vec_max's order NaN stays. Each of s and 1 - s is a
 * product of its own, so that neither is lost beside 1. */
VEC_INLINE gate_parts gate_at(hr_glu_act act, vec x)
{
    const vec least = vec_set(-limit_of(act)), less_log2_e = vec_set(-1.44269504f);
    const vec linear = vec_set(1.59576912f), cubic = vec_set(0.0713548163f); /* of GELU's z */
    const vec inside = negative(vec_max(least, negative(vec_max(least, x))));
    vec z = inside, turn = inside;
    if (act == HR_GLU_GELU_TANH) {
        const vec square = vec_mul(inside, inside);
        z = vec_mul(inside, vec_fma(square, cubic, linear));
        turn = vec_mul(inside, vec_fma(square, vec_mul(vec_set(3), cubic), linear));
    }
    const vec e = vec_exp2(vec_mul(z, less_log2_e));
    const vec open = vec_div(vec_set(1), vec_add(vec_set(1), e));
    return (gate_parts){ open, vec_mul(e, open), turn };
}

/* x s(z), and its derivative, s + s (1 - s) x dz/dx. */
VEC_INLINE vec act_of(hr_glu_act act, vec x, gate_parts at)
{
    return vec_zero_below(vec_mul(x, at.open), x, vec_set(-limit_of(act)));
}

VEC_INLINE vec slope_of(gate_parts at)
{
    return vec_fma(at.open, vec_mul(at.shut, at.turn), at.open);
}

VEC_INLINE void fwd_step(const void *gate, const void *up, void *y, int64_t i, int64_t lanes,
                         hr_glu_act act, hr_dtype dtype)
{
    const vec x = vec_load(gate, i, lanes, dtype);
    const vec value = act_of(act, x, gate_at(act, x));
    vec_store(y, i, vec_mul(value, vec_load(up, i, lanes, dtype)), lanes, dtype);
}

VEC_INLINE void fwd_all(const void *gate, const void *up, void *y, int64_t count, hr_glu_act act,
                        hr_dtype dtype)
{
    int64_t i = 0;
    for (; i + VEC_LANES <= count; i += VEC_LANES) fwd_step(gate, up, y, i, VEC_LANES, act, dtype);
    if (i < count) fwd_step(gate, up, y, i, count - i, act, dtype);
}

VEC_INLINE void bwd_step(const void *dy, const void *gate, const void *up, void *dgate, void *dup,
                         int64_t i, int64_t lanes, hr_glu_act act, hr_dtype dtype)
{
    const vec x = vec_load(gate, i, lanes, dtype);
    const vec wide = vec_load(up, i, lanes, dtype), through = vec_load(dy, i, lanes, dtype);
    const gate_parts at = gate_at(act, x);
    vec_store(dgate, i, vec_mul(vec_mul(through, slope_of(at)), wide), lanes, dtype);
    vec_store(dup, i, vec_mul(through, act_of(act, x, at)), lanes, dtype);
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
