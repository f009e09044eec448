/* SPDX-License-Identifier: Apache-2.0 */
/* ops/choose/choose_avx2.c - choose_template.h with AVX2: 8 floats per vector. */
#include "ops/simd/vec_avx2.h"

/* Columns of 4 by 4 floats, of two in each vector. */
VEC_INLINE void load_quads(const float *at, vec column[4])
{
    vec row[4];
    for (int i = 0; i < 4; i++)
        row[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(at + 4 * i)),
                                      _mm_loadu_ps(at + 16 + 4 * i), 1);
    const vec low[2] = { _mm256_unpacklo_ps(row[0], row[1]), _mm256_unpacklo_ps(row[2], row[3]) };
    const vec high[2] = { _mm256_unpackhi_ps(row[0], row[1]), _mm256_unpackhi_ps(row[2], row[3]) };
    column[0] = _mm256_shuffle_ps(low[0], low[1], 0x44);
    column[1] = _mm256_shuffle_ps(low[0], low[1], 0xee);
    column[2] = _mm256_shuffle_ps(high[0], high[1], 0x44);
    column[3] = _mm256_shuffle_ps(high[0], high[1], 0xee);
}

/* Each lane has that before it, the first the last one of `before`. */
VEC_INLINE vec shifted(vec x, vec before)
{
    const __m256i a = _mm256_castps_si256(x), b = _mm256_castps_si256(before);
    return _mm256_castsi256_ps(_mm256_alignr_epi8(a, _mm256_permute2x128_si256(b, a, 0x21), 12));
}

VEC_INLINE uint32_t vec_where_above(vec a, vec b)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ));
}

#define FILL hr_choose_fill_avx2
#include "ops/choose/choose_template.h"
