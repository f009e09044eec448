/* SPDX-License-Identifier: Apache-2.0 */
/* ops/choose/choose_avx512.c - choose_template.h with AVX-512: 16 floats per vector. */
#include "ops/simd/vec_avx512.h"

/* Columns of 4 by 4 floats, of four in each vector: two of them from a pair of vectors. */
VEC_INLINE void load_quads(const float *at, vec column[4])
{
    const __m512i even = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25,
                                           29);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(2));
    vec first[2], second[2]; /* columns 0 and 1, 2 and 3, of eight blocks */
    for (int i = 0; i < 2; i++) {
        const vec a = _mm512_loadu_ps(at + 32 * i), b = _mm512_loadu_ps(at + 32 * i + 16);
        first[i] = _mm512_permutex2var_ps(a, even, b);
        second[i] = _mm512_permutex2var_ps(a, odd, b);
    }
    column[0] = _mm512_shuffle_f32x4(first[0], first[1], 0x44);
    column[1] = _mm512_shuffle_f32x4(first[0], first[1], 0xee);
    column[2] = _mm512_shuffle_f32x4(second[0], second[1], 0x44);
    column[3] = _mm512_shuffle_f32x4(second[0], second[1], 0xee);
}

/* Each lane has that before it, the first the last one of `before`. */
VEC_INLINE vec shifted(vec x, vec before)
{
    const __m512i a = _mm512_castps_si512(x), b = _mm512_castps_si512(before);
    return _mm512_castsi512_ps(_mm512_alignr_epi32(a, b, 15));
}

VEC_INLINE uint32_t vec_where_above(vec a, vec b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}

#define FILL hr_choose_fill_avx512
#include "ops/choose/choose_template.h"
