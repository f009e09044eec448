/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_zmm.h - tile and packing functions with 512-bit registers, for both AVX-512
 * variants.
 *
 * The tile is 12 rows x 32 columns: 24 accumulators, 2 registers of B, 1 of A. A word of the
 * reduction takes 24 products, 2 loads and 12 broadcasts, so the loads are hidden; 32 columns are
 * whole cache lines of bf16 output. A file that may use AVX512-BF16 defines LINEAR_AVX512BF16
 * first. */
#ifndef HR_OPS_LINEAR_LINEAR_ZMM_H
#define HR_OPS_LINEAR_LINEAR_ZMM_H

#include <immintrin.h>

#include "ops/simd/unroll.h"
#include "ops/simd/vec_avx512.h"

#include "ops/linear/linear_words.h"

enum { TILE_ROWS = 12, FEW_ROWS = 4, FEW_SUMS = 16 };

ALWAYS_INLINE __m512 multiply_words(__m512 sum, __m512i a, __m512i b)
{
#ifdef LINEAR_AVX512BF16
    return hr_dpbf16(sum, b, a);
#else
    return _mm512_fmadd_ps((__m512)a, (__m512)b, sum);
#endif
}

ALWAYS_INLINE void multiply_line(__m512 sum[TILE_ROWS][2], const uint32_t *a, int64_t row_step,
                                 const uint32_t *b, int64_t panel_step)
{
    const __m512i b0 = _mm512_loadu_si512(b), b1 = _mm512_loadu_si512(b + panel_step);
    UNROLL
    for (int i = 0; i < TILE_ROWS; i++) {
        const __m512i word = _mm512_set1_epi32((int)a[i * row_step]);
        sum[i][0] = multiply_words(sum[i][0], word, b0);
        sum[i][1] = multiply_words(sum[i][1], word, b1);
    }
}

ALWAYS_INLINE void tile_any(int64_t words, const uint32_t *a, int64_t row_step, int64_t word_step,
                            const uint32_t *b, int64_t panel_step, bool fresh, float *sums,
                            const linear_prefetch *ahead)
{
    const int64_t queued = hr_min(words, ahead->count);
    __m512 sum[TILE_ROWS][2];
    UNROLL
    for (int i = 0; i < TILE_ROWS; i++) sum[i][0] = sum[i][1] = _mm512_setzero_ps();
    if (!fresh) {
        UNROLL
        for (int i = 0; i < TILE_ROWS; i++) {
            sum[i][0] = _mm512_loadu_ps(sums + i * 32);
            sum[i][1] = _mm512_loadu_ps(sums + i * 32 + 16);
        }
    }
    for (int64_t k = 0; k < queued; k++, a += word_step, b += 16) {
        prefetch_line(ahead, k);
        multiply_line(sum, a, row_step, b, panel_step);
    }
    for (int64_t k = queued; k < words; k++, a += word_step, b += 16)
        multiply_line(sum, a, row_step, b, panel_step);
    UNROLL
    for (int i = 0; i < TILE_ROWS; i++) {
        _mm512_storeu_ps(sums + i * 32, sum[i][0]);
        _mm512_storeu_ps(sums + i * 32 + 16, sum[i][1]);
    }
}

/* Not inlined: together with the epilogue the accumulators would spill. */
static __attribute__((noinline)) void tile_of_strip(int64_t words, const uint32_t *a,
                                                    const uint32_t *b, int64_t panel_step,
                                                    bool fresh, float *sums,
                                                    const linear_prefetch *ahead)
{
    tile_any(words, a, HR_LINEAR_STRIP_BYTES / 4, 1, b, panel_step, fresh, sums, ahead);
}

static __attribute__((noinline)) void tile_of_columns(int64_t words, const uint32_t *a,
                                                      const uint32_t *b, int64_t panel_step,
                                                      bool fresh, float *sums,
                                                      const linear_prefetch *ahead)
{
    tile_any(words, a, 1, TILE_ROWS, b, panel_step, fresh, sums, ahead);
}

/* Four rounds that swap units of 32, 64, 128 and 256 bits. */
ALWAYS_INLINE void transpose_words(const uint32_t *from, int64_t lines, uint32_t *to)
{
    __m512i r[16], t[16];
    UNROLL
    for (int i = 0; i < 16; i++)
        r[i] = i < lines ? _mm512_loadu_si512(from + i * 16) : _mm512_setzero_si512();
    UNROLL
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    UNROLL
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
    }
    UNROLL
    for (int i = 0; i < 8; i++) {
        _mm512_storeu_si512(to + i * 16, _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88));
        _mm512_storeu_si512(to + (i + 8) * 16, _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd));
    }
}

/* An 8 x 8 transpose of 64-bit units, with a swap of the middle two elements of each unit (k, n)
 * (k+1, n) (k, n+1) (k+1, n+1). */
ALWAYS_INLINE void transpose_pairs(const uint32_t *from, int64_t lines, uint32_t *to)
{
    const __m512i swap = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
    __m512i r[8], t[8];
    UNROLL
    for (int i = 0; i < 8; i++)
        r[i] = i < lines ? _mm512_shuffle_epi8(_mm512_loadu_si512(from + i * 16), swap)
                         : _mm512_setzero_si512();
    UNROLL
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm512_unpacklo_epi64(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi64(r[i], r[i + 1]);
    }
    UNROLL
    for (int i = 0; i < 2; i++) {
        r[i] = _mm512_shuffle_i64x2(t[i], t[i + 2], 0x88);
        r[i + 2] = _mm512_shuffle_i64x2(t[i], t[i + 2], 0xdd);
        r[i + 4] = _mm512_shuffle_i64x2(t[i + 4], t[i + 6], 0x88);
        r[i + 6] = _mm512_shuffle_i64x2(t[i + 4], t[i + 6], 0xdd);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        _mm512_storeu_si512(to + i * 16, _mm512_shuffle_i64x2(r[i], r[i + 4], 0x88));
        _mm512_storeu_si512(to + (i + 4) * 16, _mm512_shuffle_i64x2(r[i], r[i + 4], 0xdd));
    }
}

ALWAYS_INLINE __m512i load_halves(__mmask16 mask, const void *from)
{
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from));
}

ALWAYS_INLINE void pack_line(words_kind kind, const void *even, const void *odd, int64_t columns,
                             int64_t width, uint32_t *to)
{
    const __mmask16 there = (__mmask16)((1u << columns) - 1), all = (__mmask16)((1u << width) - 1);
    __m512i words;
    if (kind == WORDS_F32) {
        words = _mm512_maskz_loadu_epi32(there, even);
    } else if (kind == WORDS_WIDENED) {
        words = _mm512_slli_epi32(load_halves(there, even), 16);
    } else if (kind == WORDS_HALVES) {
        words = _mm512_castps_si512(_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(there, even)));
    } else {
        words = load_halves(there, even);
        if (odd) words = _mm512_or_si512(words, _mm512_slli_epi32(load_halves(there, odd), 16));
    }
    _mm512_mask_storeu_epi32(to, all, words);
}

ALWAYS_INLINE void split_pairs(const float *line, float *even, float *odd)
{
    const __m512i evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28,
                                            30);
    const __m512i odds = _mm512_add_epi32(evens, _mm512_set1_epi32(1));
    const __m512 low = _mm512_loadu_ps(line), high = _mm512_loadu_ps(line + 16);
    _mm512_storeu_ps(even, _mm512_permutex2var_ps(low, evens, high));
    _mm512_storeu_ps(odd, _mm512_permutex2var_ps(low, odds, high));
}

ALWAYS_INLINE void join_pairs(const float *even, const float *odd, float *line)
{
    const __m512i lows = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i highs = _mm512_add_epi32(lows, _mm512_set1_epi32(8));
    const __m512 a = _mm512_loadu_ps(even), b = _mm512_loadu_ps(odd);
    _mm512_storeu_ps(line, _mm512_permutex2var_ps(a, lows, b));
    _mm512_storeu_ps(line + 16, _mm512_permutex2var_ps(a, highs, b));
}

#endif
