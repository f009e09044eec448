/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_words_bf16.h - a word is a pair of bf16, adjacent along the reduction; 16
 * columns of words are an operand line of vdpbf16ps and of an AMX tile.
 *
 * Part of the template of kernels that multiply in bf16. Include it after simd/vec_avx512.h. */
#ifndef HR_OPS_ATTENTION_WORDS_BF16_H
#define HR_OPS_ATTENTION_WORDS_BF16_H

#include "ops/attention/attention_lanes.h"
#include "ops/simd/bf16.h"

enum { PAIR = 2 };

/* A constant, so that the loops do not branch on the dtype. */
VEC_INLINE hr_dtype dtype_of(const hr_attention_task *task)
{
    (void)task;
    return HR_BF16;
}

VEC_INLINE void store_elements(void *row, hr_dtype dtype, int64_t at, int64_t width, vec value)
{
    const int64_t lanes = lanes_of(width - at);
    const __m256i half = hr_to_bf16x16(value);
    (void)dtype;
    if (lanes == VEC_LANES) _mm256_storeu_si256((void *)((uint16_t *)row + at), half);
    else _mm256_mask_storeu_epi16((uint16_t *)row + at, vec_mask(lanes), half);
}

/* Words of a row of `width` elements from word `at` on; zeros past it. */
VEC_INLINE vec_bits load_words(const void *row, hr_dtype dtype, int64_t at, int64_t width)
{
    const int64_t left = width - PAIR * at;
    const uint16_t *from = (const uint16_t *)row + PAIR * at;
    (void)dtype;
    if (left >= PAIR * VEC_LANES) return _mm512_loadu_si512(from);
    return _mm512_maskz_loadu_epi16((1u << hr_max(left, 0)) - 1, from);
}

/* Interleaves 16 and 16 elements to pairs. */
VEC_INLINE vec_bits interleave(__m256i even, __m256i odd)
{
    return _mm512_or_si512(_mm512_cvtepu16_epi32(even),
                           _mm512_slli_epi32(_mm512_cvtepu16_epi32(odd), 16));
}

VEC_INLINE __m256i load_half(hr_attention_rows rows, int64_t length, int64_t row, int64_t column,
                             int64_t width)
{
    const int64_t lanes = row < length ? lanes_of(width - column) : 0;
    const uint16_t *from = (const uint16_t *)rows.first + row * rows.stride + column;
    if (lanes == VEC_LANES) return _mm256_loadu_si256((const void *)from);
    return _mm256_maskz_loadu_epi16(vec_mask(lanes), from);
}

/* Line `at` of rows packed by rows: one word of each column from `column` on. */
VEC_INLINE vec_bits load_line(hr_attention_rows rows, hr_dtype dtype, int64_t length, int64_t at,
                              int64_t column, int64_t width)
{
    (void)dtype;
    return interleave(load_half(rows, length, 2 * at, column, width),
                      load_half(rows, length, 2 * at + 1, column, width));
}

VEC_INLINE vec multiply_add(vec sum, vec_bits line, uint32_t word)
{
    return hr_dpbf16(sum, line, vec_bits_set(word));
}

/* Stores elements `at`, at + 1, ... of a row of words. */
VEC_INLINE void put_words(uint32_t *row, int64_t at, vec value)
{
    _mm256_storeu_si256((void *)((uint16_t *)row + at), hr_to_bf16x16(value));
}

/* Stores two panels of elements at the start of a row of words. */
VEC_INLINE void put_panels(uint32_t *row, const vec value[2])
{
    _mm512_storeu_si512(row, hr_to_bf16x32(value[0], value[1]));
}

/* Stores dS' of two keys (rows of `value`) and 2 panels of queries: as pairs of queries to ds[key]
 * for dK, and as pairs of keys to `pairs` for dQ. */
VEC_INLINE void put_gradients(uint32_t *ds, int64_t ds_row, uint32_t *pairs, const vec value[2][2])
{
    const __m512i first = hr_to_bf16x32(value[0][0], value[0][1]);
    const __m512i second = hr_to_bf16x32(value[1][0], value[1][1]);
    _mm512_storeu_si512(ds, first);
    _mm512_storeu_si512(ds + ds_row, second);
    _mm512_storeu_si512(pairs,
                        interleave(_mm512_castsi512_si256(first), _mm512_castsi512_si256(second)));
    _mm512_storeu_si512(pairs + VEC_LANES, interleave(_mm512_extracti64x4_epi64(first, 1),
                                                      _mm512_extracti64x4_epi64(second, 1)));
}

#endif
