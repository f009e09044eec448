/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_epilogue.h - what follows a product while its sums are in L1.
 *
 * The including file has chosen the width of vectors: simd/vec_avx2.h or simd/vec_avx512.h. One
 * that may use AVX512-BF16 defines LINEAR_AVX512BF16. */
#ifndef HR_OPS_LINEAR_LINEAR_EPILOGUE_H
#define HR_OPS_LINEAR_LINEAR_EPILOGUE_H

#include <float.h>

#include "base/bf16.h"
#include "ops/linear/linear_kernels.h"
#ifdef LINEAR_AVX512BF16
#include "ops/simd/bf16.h"
#endif

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum { EPILOGUE_COLUMNS = 32 };

ALWAYS_INLINE void store_result(hr_dtype dtype, void *array, int64_t index, vec value,
                                int64_t lanes)
{
#ifdef LINEAR_AVX512BF16
    if (dtype == HR_BF16) {
        hr_bf16 *to = (hr_bf16 *)array + index;
        if (lanes == VEC_LANES) _mm256_storeu_si256((__m256i *)to, hr_to_bf16x16(value));
        else _mm256_mask_storeu_epi16(to, vec_mask(lanes), hr_to_bf16x16(value));
        return;
    }
#endif
    vec_store(array, index, value, lanes, dtype);
}

ALWAYS_INLINE vec negative(vec x)
{
    return vec_sub(vec_set(0), x);
}

/* Phi(x); also phi(x) sqrt(2 pi) in *bell. 7.5e-8 absolute.
 * Source  Hastings; Abramowitz and Stegun 26.2.17. */
ALWAYS_INLINE vec normal_below(vec x, vec *bell)
{
    const vec size = vec_max(x, negative(x));
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

/* 1/2 + an odd polynomial between -4.25 and 4.25; below 0, above 1. */
ALWAYS_INLINE vec odd_step(vec x, const float coefficients[9])
{
    const vec square = vec_mul(x, x);
    vec p = vec_set(coefficients[8]);
    for (int i = 7; i >= 0; i--) p = vec_fma(p, square, vec_set(coefficients[i]));
    const vec above = vec_zero_below(vec_fnma(p, x, vec_set(0.5f)), negative(x), vec_set(-4.25f));
    return vec_zero_below(vec_sub(vec_set(1), above), x, vec_set(-4.25f));
}

/* x Phi(x). In bf16 Phi is a minimax fit, 1.1e-5 absolute. */
ALWAYS_INLINE vec gelu(hr_dtype dtype, vec x)
{
    static const float fit[9] = { 0.398938139f,    -0.0664121737f,   0.00985903104f,
                                  -0.00112169657f, 9.56231956e-05f,  -5.84116632e-06f,
                                  2.37640297e-07f, -5.69332613e-09f, 6.02336741e-11f };
    vec bell;
    return vec_mul(x, dtype == HR_BF16 ? odd_step(x, fit) : normal_below(x, &bell));
}

/* Its derivative, Phi(x) + x phi(x). In bf16 a minimax fit, 1.9e-4 absolute. */
ALWAYS_INLINE vec gelu_slope(hr_dtype dtype, vec x)
{
    static const float fit[9] = { 0.797013304f,    -0.262976678f,    0.0568099202f,
                                  -0.0080664858f,  0.000772485976f,  -4.91883688e-05f,
                                  1.98305866e-06f, -4.55507044e-08f, 4.52166926e-10f };
    if (dtype == HR_BF16) return odd_step(x, fit);
    vec bell;
    const vec below = normal_below(x, &bell);
    return vec_fma(vec_mul(x, vec_set(0.398942280f)), bell, below);
}

/* Sums of a tile: those of row i are at sums + i * sums_step; at most 32 columns. */
typedef struct {
    int64_t row, rows, n, columns;
    const float *sums;
    int64_t sums_step;
} linear_tile;

/* out from z = a B, without what is stored on the way (pre). Forward, act comes before what is
 * added; backward, act' after it. */
ALWAYS_INLINE vec finish_value(hr_dtype dtype, bool transposed, hr_act act, const hr_linear_mm *mm,
                               vec z, int64_t index, int64_t lanes)
{
    if (!transposed && act == HR_ACT_RELU) z = vec_zero_below(z, z, vec_set(0));
    if (!transposed && act == HR_ACT_GELU) z = gelu(dtype, z);
    if (mm->residual) z = vec_add(z, vec_load(mm->residual, index, lanes, dtype));
    if (transposed && act != HR_ACT_NONE) {
        const vec aux = vec_load(mm->aux, index, lanes, dtype);
        z = act == HR_ACT_RELU ? vec_zero_below(z, aux, vec_set(FLT_MIN))
                               : vec_mul(z, gelu_slope(dtype, aux));
    }
    return z;
}

ALWAYS_INLINE void finish_vector(hr_dtype dtype, bool transposed, hr_act act,
                                 const hr_linear_mm *mm, vec z, int64_t row, int64_t n,
                                 int64_t lanes)
{
    const int64_t index = row * mm->N + n;
    if (!transposed && mm->bias) z = vec_add(z, vec_load_f32(mm->bias + n, lanes));
    if (!transposed && mm->pre) store_result(dtype, mm->pre, index, z, lanes);
    store_result(dtype, mm->out, index, finish_value(dtype, transposed, act, mm, z, index, lanes),
                 lanes);
}

ALWAYS_INLINE void finish_rows(hr_dtype dtype, bool transposed, hr_act act, const hr_linear_mm *mm,
                               const linear_tile *tile)
{
    const float *sums = tile->sums;
    for (int64_t i = 0; i < tile->rows; i++, sums += tile->sums_step) {
        const int64_t row = tile->row + i;
        int64_t j = 0;
        for (; j + VEC_LANES <= tile->columns; j += VEC_LANES)
            finish_vector(dtype, transposed, act, mm, vec_load_f32(sums + j, VEC_LANES), row,
                          tile->n + j, VEC_LANES);
        if (j < tile->columns)
            finish_vector(dtype, transposed, act, mm, vec_load_f32(sums + j, tile->columns - j),
                          row, tile->n + j, tile->columns - j);
    }
}

/* The epilogue of a tile, chosen here, once, so that no k loop knows of it. */
ALWAYS_INLINE void finish_tile(hr_dtype dtype, const hr_linear_mm *mm, const linear_tile *tile)
{
    if (!mm->transposed) {
        switch (mm->act) {
        case HR_ACT_NONE: finish_rows(dtype, false, HR_ACT_NONE, mm, tile); break;
        case HR_ACT_RELU: finish_rows(dtype, false, HR_ACT_RELU, mm, tile); break;
        case HR_ACT_GELU: finish_rows(dtype, false, HR_ACT_GELU, mm, tile); break;
        }
        return;
    }
    switch (mm->aux ? mm->act : HR_ACT_NONE) {
    case HR_ACT_NONE: finish_rows(dtype, true, HR_ACT_NONE, mm, tile); break;
    case HR_ACT_RELU: finish_rows(dtype, true, HR_ACT_RELU, mm, tile); break;
    case HR_ACT_GELU: finish_rows(dtype, true, HR_ACT_GELU, mm, tile); break;
    }
}

#endif
