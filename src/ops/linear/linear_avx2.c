/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_avx2.c - matrix products with AVX2 and FMA; bf16 operands are widened when
 * packed.
 *
 * Passes: a once per 512 columns, B once per 516 rows if packed, results once. Registers: 6 rows x
 * 16 columns are 12 accumulators; with 2 of B and 1 of A, 15 of the 16. A word takes 12 products
 * and 8 loads. Bound: FMA. AMD Zen 4, 2 threads, d = 512, a busy machine, 2026-11: fp32 forward and
 * dx 87-90 % of it, 80-87 % if an epilogue reads two operands, dW 79-87 %. */
#include "ops/simd/unroll.h"
#include "ops/simd/vec_avx2.h"

#include "ops/linear/linear_words.h"

enum { TILE_ROWS = 6, FEW_ROWS = 4, FEW_SUMS = 8 };

ALWAYS_INLINE void multiply_line(__m256 sum[TILE_ROWS][2], const uint32_t *a, int64_t row_step,
                                 const uint32_t *b)
{
    const __m256 b0 = _mm256_loadu_ps((const float *)b);
    const __m256 b1 = _mm256_loadu_ps((const float *)b + 8);
    UNROLL
    for (int i = 0; i < TILE_ROWS; i++) {
        const __m256 word = _mm256_broadcast_ss((const float *)a + i * row_step);
        sum[i][0] = _mm256_fmadd_ps(word, b0, sum[i][0]);
        sum[i][1] = _mm256_fmadd_ps(word, b1, sum[i][1]);
    }
}

ALWAYS_INLINE void half_tile(int64_t words, const uint32_t *a, int64_t row_step, int64_t word_step,
                             const uint32_t *b, bool fresh, float *sums,
                             const linear_prefetch *ahead, int64_t queued)
{
    __m256 sum[TILE_ROWS][2];
    UNROLL
    for (int i = 0; i < TILE_ROWS; i++) sum[i][0] = sum[i][1] = _mm256_setzero_ps();
    if (!fresh) {
        UNROLL
        for (int i = 0; i < TILE_ROWS; i++) {
            sum[i][0] = _mm256_loadu_ps(sums + i * 32);
            sum[i][1] = _mm256_loadu_ps(sums + i * 32 + 8);
        }
    }
    for (int64_t k = 0; k < queued; k++, a += word_step, b += 16) {
        prefetch_line(ahead, k);
        multiply_line(sum, a, row_step, b);
    }
    for (int64_t k = queued; k < words; k++, a += word_step, b += 16)
        multiply_line(sum, a, row_step, b);
    UNROLL
    for (int i = 0; i < TILE_ROWS; i++) {
        _mm256_storeu_ps(sums + i * 32, sum[i][0]);
        _mm256_storeu_ps(sums + i * 32 + 8, sum[i][1]);
    }
}

ALWAYS_INLINE void tile_any(int64_t words, const uint32_t *a, int64_t row_step, int64_t word_step,
                            const uint32_t *b, int64_t panel_step, bool fresh, float *sums,
                            const linear_prefetch *ahead)
{
    half_tile(words, a, row_step, word_step, b, fresh, sums, ahead, hr_min(words, ahead->count));
    half_tile(words, a, row_step, word_step, b + panel_step, fresh, sums + 16, ahead, 0);
}

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

/* Transposes 8 x 8 words; lines are 16 words apart. */
ALWAYS_INLINE void transpose_eight(const uint32_t *from, int64_t lines, uint32_t *to)
{
    __m256 r[8], t[8];
    UNROLL
    for (int i = 0; i < 8; i++)
        r[i] = i < lines ? _mm256_loadu_ps((const float *)from + i * 16) : _mm256_setzero_ps();
    UNROLL
    for (int i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    UNROLL
    for (int i = 0; i < 8; i += 4) {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps((float *)to + i * 16, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
        _mm256_storeu_ps((float *)to + (i + 4) * 16, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
    }
}

ALWAYS_INLINE void transpose_words(const uint32_t *from, int64_t lines, uint32_t *to)
{
    for (int64_t line = 0; line < 16; line += 8)
        for (int64_t column = 0; column < 16; column += 8)
            transpose_eight(from + line * 16 + column, lines - line, to + column * 16 + line);
}

/* Transposes 4 x 4 units of 64 bits and swaps the middle two elements of each unit (k, n) (k+1, n)
 * (k, n+1) (k+1, n+1). */
ALWAYS_INLINE void transpose_four(const uint32_t *from, int64_t lines, uint32_t *to)
{
    const __m256i swap = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15));
    __m256i r[4], t[4];
    UNROLL
    for (int i = 0; i < 4; i++)
        r[i] = i < lines
                   ? _mm256_shuffle_epi8(_mm256_loadu_si256((const __m256i *)(from + i * 16)), swap)
                   : _mm256_setzero_si256();
    UNROLL
    for (int i = 0; i < 4; i += 2) {
        t[i] = _mm256_unpacklo_epi64(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_epi64(r[i], r[i + 1]);
    }
    UNROLL
    for (int i = 0; i < 2; i++) {
        _mm256_storeu_si256((__m256i *)(to + i * 16),
                            _mm256_permute2x128_si256(t[i], t[i + 2], 0x20));
        _mm256_storeu_si256((__m256i *)(to + (i + 2) * 16),
                            _mm256_permute2x128_si256(t[i], t[i + 2], 0x31));
    }
}

ALWAYS_INLINE void transpose_pairs(const uint32_t *from, int64_t lines, uint32_t *to)
{
    for (int64_t line = 0; line < 8; line += 4)
        for (int64_t unit = 0; unit < 8; unit += 4)
            transpose_four(from + line * 16 + unit * 2, lines - line, to + unit * 16 + line * 2);
}

ALWAYS_INLINE void pack_line(words_kind kind, const void *even, const void *odd, int64_t columns,
                             int64_t width, uint32_t *to)
{
    (void)odd;
    for (int64_t j = 0; kind == WORDS_HALVES && j < columns; j += VEC_LANES) {
        const int64_t lanes = hr_min(VEC_LANES, columns - j);
        vec_store_f32((float *)to + j, vec_load(even, j, lanes, HR_F16), lanes);
    }
    for (int64_t j = 0; kind != WORDS_HALVES && j < columns; j++)
        to[j] = kind == WORDS_F32 ? ((const uint32_t *)even)[j]
                                  : (uint32_t)((const uint16_t *)even)[j] << 16;
    for (int64_t j = columns; j < width; j++) to[j] = 0;
}

ALWAYS_INLINE void split_pairs(const float *line, float *even, float *odd)
{
    for (int half = 0; half < 16; half += 8, line += 16) {
        const __m256 a = _mm256_loadu_ps(line), b = _mm256_loadu_ps(line + 8);
        const __m256d evens = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
        const __m256d odds = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd));
        _mm256_storeu_ps(even + half, _mm256_castpd_ps(_mm256_permute4x64_pd(evens, 0xd8)));
        _mm256_storeu_ps(odd + half, _mm256_castpd_ps(_mm256_permute4x64_pd(odds, 0xd8)));
    }
}

ALWAYS_INLINE void join_pairs(const float *even, const float *odd, float *line)
{
    for (int half = 0; half < 16; half += 8, line += 16) {
        const __m256 a = _mm256_loadu_ps(even + half), b = _mm256_loadu_ps(odd + half);
        const __m256 low = _mm256_unpacklo_ps(a, b), high = _mm256_unpackhi_ps(a, b);
        _mm256_storeu_ps(line, _mm256_permute2f128_ps(low, high, 0x20));
        _mm256_storeu_ps(line + 8, _mm256_permute2f128_ps(low, high, 0x31));
    }
}

#include "ops/linear/linear_few.h"

void hr_linear_mm_f32_avx2(const hr_linear_mm *mm)
{
    multiply_rows(WORDS_F32, mm);
}

void hr_linear_mm_bf16_avx2(const hr_linear_mm *mm)
{
    multiply_rows(WORDS_WIDENED, mm);
}

void hr_linear_dw_f32_avx2(const hr_linear_dw *dw)
{
    accumulate(WORDS_F32, dw);
}

void hr_linear_dw_bf16_avx2(const hr_linear_dw *dw)
{
    accumulate(WORDS_WIDENED, dw);
}

void hr_linear_db_f32_avx2(const hr_linear_db *db)
{
    sum_rows(HR_F32, db);
}

void hr_linear_db_bf16_avx2(const hr_linear_db *db)
{
    sum_rows(HR_BF16, db);
}

void hr_linear_mm_f16_avx2(const hr_linear_mm *mm)
{
    multiply_rows(WORDS_HALVES, mm);
}

void hr_linear_dw_f16_avx2(const hr_linear_dw *dw)
{
    accumulate(WORDS_HALVES, dw);
}

void hr_linear_db_f16_avx2(const hr_linear_db *db)
{
    sum_rows(HR_F16, db);
}
