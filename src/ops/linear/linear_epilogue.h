/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_epilogue.h - what follows a product while its sums are in L1.
 *
 * Plain loops of constant length over local arrays, which the compiler turns into the vectors that
 * the including file is granted. A file that may use AVX512-BF16 defines LINEAR_AVX512BF16 first. */
#ifndef HR_OPS_LINEAR_LINEAR_EPILOGUE_H
#define HR_OPS_LINEAR_LINEAR_EPILOGUE_H

#include <string.h>

#include "base/bf16.h"
#include "ops/linear/linear_kernels.h"
#ifdef LINEAR_AVX512BF16
#include "ops/simd/bf16.h"
#endif

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum { EPILOGUE_COLUMNS = 32 };

/* Columns of one row in flight. */
typedef struct {
    _Alignas(64) float at[EPILOGUE_COLUMNS];
} linear_row;

ALWAYS_INLINE linear_row load_row(hr_dtype dtype, const void *array, int64_t index, int64_t columns)
{
    linear_row row;
    if (columns < EPILOGUE_COLUMNS) memset(&row, 0, sizeof row);
    if (dtype == HR_BF16)
        for (int64_t j = 0; j < columns; j++) row.at[j] = hr_bf16_to_f32(((const hr_bf16 *)array)[index + j]);
    else
        for (int64_t j = 0; j < columns; j++) row.at[j] = ((const float *)array)[index + j];
    return row;
}

ALWAYS_INLINE void store_row(hr_dtype dtype, const linear_row *row, void *array, int64_t index,
                             int64_t columns)
{
    if (dtype == HR_F32) {
        for (int64_t j = 0; j < columns; j++) ((float *)array)[index + j] = row->at[j];
        return;
    }
    hr_bf16 *to = (hr_bf16 *)array + index;
#ifdef LINEAR_AVX512BF16
    const __mmask32 mask = (__mmask32)((UINT64_C(1) << columns) - 1);
    _mm512_mask_storeu_epi16(to, mask,
                             hr_to_bf16x32(_mm512_load_ps(row->at), _mm512_load_ps(row->at + 16)));
#else
    for (int64_t j = 0; j < columns; j++) to[j] = hr_bf16_from_f32(row->at[j]);
#endif
}

/* exp(-x), x >= 0: 2^n 2^f with |f| <= 1/2; 7e-8 relative (minimax fit). Zero below 2^-126. */
ALWAYS_INLINE float exp_minus(float x)
{
    const float rounder = 12582912.f; /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */
    float t = x * -1.44269504f;
    t = t < -126.f ? -126.f : t;
    const float shifted = t + rounder, f = t - (shifted - rounder);
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (int32_t)((uint32_t)(bits + 127) << 23);
    float scale;
    memcpy(&scale, &bits, sizeof scale);
    float p = 0.00132274958f;
    p = p * f + 0.00967438579f;
    p = p * f + 0.05550861f;
    p = p * f + 0.240221545f;
    p = p * f + 0.69314691f;
    return (p * f + 1.00000007f) * scale;
}

/* Phi(x); also phi(x) sqrt(2 pi) in *bell. 7.5e-8 absolute.
 * Source  Hastings; Abramowitz and Stegun 26.2.17. */
ALWAYS_INLINE float normal_below(float x, float *bell)
{
    const float size = x < 0 ? -x : x;
    *bell = exp_minus(0.5f * x * x);
    const float t = 1.f / (1.f + 0.2316419f * size);
    float p = 1.330274429f;
    p = p * t - 1.821255978f;
    p = p * t + 1.781477937f;
    p = p * t - 0.356563782f;
    p = p * t + 0.319381530f;
    const float above = 0.398942280f * *bell * p * t;
    return x < 0 ? above : 1.f - above;
}

/* 1/2 + an odd polynomial between -4.25 and 4.25; below 0, above 1. */
ALWAYS_INLINE float odd_step(float x, const float coefficients[9])
{
    const float square = x * x;
    float p = coefficients[8];
    for (int i = 7; i >= 0; i--) p = p * square + coefficients[i];
    p = p * x + 0.5f;
    p = x < -4.25f ? 0.f : p;
    return x > 4.25f ? 1.f : p;
}

/* x Phi(x). In bf16 Phi is a minimax fit, 1.1e-5 absolute. */
ALWAYS_INLINE float gelu(hr_dtype dtype, float x)
{
    static const float fit[9] = { 0.398938139f,    -0.0664121737f,  0.00985903104f,
                                  -0.00112169657f, 9.56231956e-05f, -5.84116632e-06f,
                                  2.37640297e-07f, -5.69332613e-09f, 6.02336741e-11f };
    float bell;
    return x * (dtype == HR_BF16 ? odd_step(x, fit) : normal_below(x, &bell));
}

/* Its derivative, Phi(x) + x phi(x). In bf16 a minimax fit, 1.9e-4 absolute. */
ALWAYS_INLINE float gelu_slope(hr_dtype dtype, float x)
{
    static const float fit[9] = { 0.797013304f,     -0.262976678f,   0.0568099202f,
                                  -0.0080664858f,   0.000772485976f, -4.91883688e-05f,
                                  1.98305866e-06f, -4.55507044e-08f, 4.52166926e-10f };
    if (dtype == HR_BF16) return odd_step(x, fit);
    float bell;
    const float below = normal_below(x, &bell);
    return below + x * 0.398942280f * bell;
}

/* Sums of a tile: those of row i are at sums + i * sums_step; at most 32 columns. */
typedef struct {
    int64_t row, rows, n, columns;
    const float *sums;
    int64_t sums_step;
} linear_tile;

ALWAYS_INLINE void finish_row(hr_dtype dtype, bool transposed, hr_act act, const hr_linear_mm *mm,
                              const linear_tile *tile, int64_t i, int64_t columns)
{
    const int64_t index = (tile->row + i) * mm->N + tile->n;
    linear_row z = load_row(HR_F32, tile->sums, i * tile->sums_step, columns);
    if (!transposed && mm->bias) {
        const linear_row bias = load_row(HR_F32, mm->bias, tile->n, columns);
        for (int j = 0; j < EPILOGUE_COLUMNS; j++) z.at[j] += bias.at[j];
    }
    if (!transposed && mm->pre) store_row(dtype, &z, mm->pre, index, columns);
    if (!transposed && act == HR_ACT_RELU)
        for (int j = 0; j < EPILOGUE_COLUMNS; j++) z.at[j] = z.at[j] < 0 ? 0 : z.at[j];
    if (!transposed && act == HR_ACT_GELU)
        for (int j = 0; j < EPILOGUE_COLUMNS; j++) z.at[j] = gelu(dtype, z.at[j]);
    if (mm->residual) {
        const linear_row other = load_row(dtype, mm->residual, index, columns);
        for (int j = 0; j < EPILOGUE_COLUMNS; j++) z.at[j] += other.at[j];
    }
    if (transposed && act != HR_ACT_NONE) {
        const linear_row aux = load_row(dtype, mm->aux, index, columns);
        if (act == HR_ACT_RELU)
            for (int j = 0; j < EPILOGUE_COLUMNS; j++) z.at[j] = aux.at[j] > 0 ? z.at[j] : 0;
        else
            for (int j = 0; j < EPILOGUE_COLUMNS; j++) z.at[j] *= gelu_slope(dtype, aux.at[j]);
    }
    store_row(dtype, &z, mm->out, index, columns);
}

ALWAYS_INLINE void finish_rows(hr_dtype dtype, bool transposed, hr_act act, const hr_linear_mm *mm,
                               const linear_tile *tile)
{
    for (int64_t i = 0; i < tile->rows; i++)
        if (tile->columns == EPILOGUE_COLUMNS)
            finish_row(dtype, transposed, act, mm, tile, i, EPILOGUE_COLUMNS);
        else
            finish_row(dtype, transposed, act, mm, tile, i, tile->columns);
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
