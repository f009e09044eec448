/* SPDX-License-Identifier: Apache-2.0 */
/* ops/activation/activation_vec.h - vector activations, their derivatives, and the rounding of
 * results. Products and the stand-alone activation share this code, so that their bits agree.
 *
 * The including file selects the vector width: simd/vec_avx2.h or simd/vec_avx512.h. It defines
 * ACTIVATION_AVX512BF16 if it may use AVX512-BF16. */
#ifndef HR_OPS_ACTIVATION_ACTIVATION_VEC_H
#define HR_OPS_ACTIVATION_ACTIVATION_VEC_H

#include <stdbool.h>

#include "base/bf16.h"
#include "ops/linear/linear.h"
#ifdef ACTIVATION_AVX512BF16
#include "ops/simd/bf16.h"
#endif

VEC_INLINE void hr_store_result(hr_dtype dtype, void *array, int64_t index, vec value,
                                int64_t lanes)
{
#ifdef ACTIVATION_AVX512BF16
    if (dtype == HR_BF16) {
        hr_bf16 *to = (hr_bf16 *)array + index;
        if (lanes == VEC_LANES) _mm256_storeu_si256((__m256i *)to, hr_to_bf16x16(value));
        else _mm256_mask_storeu_epi16(to, vec_mask(lanes), hr_to_bf16x16(value));
        return;
    }
#endif
    vec_store(array, index, value, lanes, dtype);
}

VEC_INLINE vec hr_negative(vec x)
{
    return vec_sub(vec_set(0), x);
}

/* Phi(x), and phi(x) sqrt(2 pi) in *bell. Absolute error 7.5e-8.
 * Source  Hastings; Abramowitz and Stegun 26.2.17. */
VEC_INLINE vec hr_normal_below(vec x, vec *bell)
{
    const vec size = vec_max(x, hr_negative(x));
    const vec t = vec_div(vec_set(1), vec_fma(size, vec_set(0.2316419f), vec_set(1)));
    *bell = vec_exp(vec_mul(vec_mul(x, vec_set(-0.5f)), x));
    vec p = vec_set(1.330274429f);
    p = vec_fma(p, t, vec_set(-1.821255978f));
    p = vec_fma(p, t, vec_set(1.781477937f));
    p = vec_fma(p, t, vec_set(-0.356563782f));
    p = vec_fma(p, t, vec_set(0.319381530f));
    const vec outside = vec_mul(vec_mul(vec_mul(p, t), vec_set(0.398942280f)), *bell);
    const vec inside = vec_sub(vec_set(1), vec_add(outside, outside));
    return vec_add(outside, vec_zero_below(inside, x, vec_set(0))); /* x >= 0: 1 - outside */
}

/* 1/2 + an odd polynomial on [-4.25, 4.25]; 0 below, 1 above. */
VEC_INLINE vec hr_odd_step(vec x, const float coefficients[9])
{
    const vec square = vec_mul(x, x);
    vec p = vec_set(coefficients[8]);
    for (int i = 7; i >= 0; i--) p = vec_fma(p, square, vec_set(coefficients[i]));
    const vec above = vec_zero_below(vec_fnma(p, x, vec_set(0.5f)), hr_negative(x),
                                     vec_set(-4.25f));
    return vec_zero_below(vec_sub(vec_set(1), above), x, vec_set(-4.25f));
}

/* x Phi(x). In bf16 Phi is a minimax polynomial with an absolute error of 1.1e-5. */
VEC_INLINE vec hr_gelu(hr_dtype dtype, vec x)
{
    static const float fit[9] = { 0.398938139f,    -0.0664121737f,   0.00985903104f,
                                  -0.00112169657f, 9.56231956e-05f,  -5.84116632e-06f,
                                  2.37640297e-07f, -5.69332613e-09f, 6.02336741e-11f };
    vec bell;
    return vec_mul(x, dtype == HR_BF16 ? hr_odd_step(x, fit) : hr_normal_below(x, &bell));
}

/* Derivative of GELU, Phi(x) + x phi(x). In bf16 a minimax polynomial with an absolute error of
 * 1.9e-4. */
VEC_INLINE vec hr_gelu_slope(hr_dtype dtype, vec x)
{
    static const float fit[9] = { 0.797013304f,    -0.262976678f,    0.0568099202f,
                                  -0.0080664858f,  0.000772485976f,  -4.91883688e-05f,
                                  1.98305866e-06f, -4.55507044e-08f, 4.52166926e-10f };
    if (dtype == HR_BF16) return hr_odd_step(x, fit);
    vec bell;
    const vec below = hr_normal_below(x, &bell);
    return vec_fma(vec_mul(x, vec_set(0.398942280f)), bell, below);
}

/* For larger |x| the tanh form is 0 or x and its derivative 0 or 1, to 1e-34. Within this range
 * exp(-z) and its inverse are normal numbers. */
static const float gelu_tanh_range = 9.9f;

/* Logistic function s(z) with z = sqrt(8 / pi) (x + 0.044715 x^3), because 1 + tanh(z / 2) = 2
 * s(z). Writes exp(-z) to *exp_neg. */
VEC_INLINE vec hr_gelu_tanh_logistic(vec x, vec *exp_neg)
{
    const vec linear = vec_set(-1.59576912f * 1.44269504f);
    const vec cubic = vec_set(-0.0713548163f * 1.44269504f);
    *exp_neg = vec_exp2(vec_mul(x, vec_fma(vec_mul(x, x), cubic, linear)));
    return vec_div(vec_set(1), vec_add(vec_set(1), *exp_neg));
}

/* tanh form of GELU. Values below the range are clamped; above it exp(-z) is 0. The operand order
 * of vec_max keeps NaN. */
VEC_INLINE vec hr_gelu_tanh(vec x)
{
    const vec inside = vec_max(vec_set(-gelu_tanh_range), x);
    vec exp_neg;
    return vec_mul(inside, hr_gelu_tanh_logistic(inside, &exp_neg));
}

/* Its derivative, s + s (1 - s) x dz/dx. 1 - s is computed as exp(-z) s to avoid cancellation. */
VEC_INLINE vec hr_gelu_tanh_slope(vec x)
{
    const vec above = vec_max(vec_set(-gelu_tanh_range), x);
    const vec inside = hr_negative(vec_max(vec_set(-gelu_tanh_range), hr_negative(above)));
    const vec linear = vec_set(1.59576912f), cubic3 = vec_set(0.214064449f);
    const vec x_dz_dx = vec_mul(inside, vec_fma(vec_mul(inside, inside), cubic3, linear));
    vec exp_neg;
    const vec s = hr_gelu_tanh_logistic(inside, &exp_neg);
    return vec_fma(vec_mul(vec_mul(exp_neg, s), s), x_dz_dx, s);
}

/* The value after a round trip through memory in `dtype`. */
VEC_INLINE vec hr_as_stored(hr_dtype dtype, vec value)
{
    if (dtype == HR_F32) return value;
    if (dtype == HR_F16) return vec_rounded_f16(value);
#ifdef ACTIVATION_AVX512BF16
    return (vec)_mm512_slli_epi32(_mm512_cvtepu16_epi32(hr_to_bf16x16(value)), 16);
#else
    return vec_rounded_bf16(value);
#endif
}

/* Derivative of either form of GELU. */
VEC_INLINE vec hr_slope_vec(hr_dtype dtype, hr_act act, vec pre)
{
    return act == HR_ACT_GELU_TANH ? hr_gelu_tanh_slope(pre) : hr_gelu_slope(dtype, pre);
}

/* act(pre); pre has the precision it is stored in. */
VEC_INLINE vec hr_activate_vec(hr_dtype dtype, hr_act act, vec pre)
{
    if (act == HR_ACT_RELU) return vec_zero_below(pre, pre, vec_set(0));
    if (act == HR_ACT_GELU) return hr_gelu(dtype, pre);
    if (act == HR_ACT_GELU_TANH) return hr_gelu_tanh(pre);
    return pre;
}

#endif
