/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/codes_avx512.h - codes of moments (moments.h) with AVX-512, GROUP at a time. */
#ifndef HR_OPS_UPDATE_CODES_AVX512_H
#define HR_OPS_UPDATE_CODES_AVX512_H

#include "ops/simd/unroll.h"
#include "ops/simd/vec_avx512.h"
#include "ops/update/codes.h"

enum { GROUP = 64 };

/* Double words of four vectors, in the order in which packing to bytes has them, and back. */
VEC_INLINE __m512i reordered(__m512i bytes)
{
    return _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), bytes);
}

#ifdef __AVX512VBMI__
/* Bytes table[index] of 256. */
VEC_INLINE __m512i bytes_of(const uint8_t table[HR_MOMENT_CODES], __m512i index, __mmask64 upper)
{
    const __m512i low = _mm512_permutex2var_epi8(_mm512_loadu_si512(table), index,
                                                 _mm512_loadu_si512(table + 64));
    const __m512i high = _mm512_permutex2var_epi8(_mm512_loadu_si512(table + 128), index,
                                                  _mm512_loadu_si512(table + 192));
    return _mm512_mask_blend_epi8(upper, low, high);
}

VEC_INLINE void unpack_group(const uint8_t *codes, const hr_moment_map *map, vec scale, vec to[4])
{
    const __m512i code = reordered(_mm512_loadu_si512(codes));
    const __mmask64 upper = _mm512_movepi8_mask(code);
    __m512i bytes[4];
    UNROLL for (int i = 0; i < 4; i++) bytes[i] = bytes_of(map->planes[i], code, upper);
    const __m512i low[2] = { _mm512_unpacklo_epi8(bytes[0], bytes[1]),
                             _mm512_unpackhi_epi8(bytes[0], bytes[1]) };
    const __m512i high[2] = { _mm512_unpacklo_epi8(bytes[2], bytes[3]),
                              _mm512_unpackhi_epi8(bytes[2], bytes[3]) };
    UNROLL for (int i = 0; i < 2; i++)
    {
        to[2 * i] = _mm512_mul_ps((vec)_mm512_unpacklo_epi16(low[i], high[i]), scale);
        to[2 * i + 1] = _mm512_mul_ps((vec)_mm512_unpackhi_epi16(low[i], high[i]), scale);
    }
}
#else
VEC_INLINE void unpack_group(const uint8_t *codes, const hr_moment_map *map, vec scale, vec to[4])
{
    UNROLL for (int i = 0; i < 4; i++)
        to[i] = _mm512_mul_ps(vec_look_up(map->values, vec_load_u8(codes + 16 * i, 16)), scale);
}
#endif

/* What finds the distance of a number from the code of 0, in registers (update_kernels.h). */
typedef struct {
    __m512i ahead;
    vec slopes, offsets, tops;
} code_tables;

VEC_INLINE code_tables code_tables_of(const hr_moment_map *map)
{
    return (code_tables){ .ahead = _mm512_load_si512(map->ahead),
                          .slopes = _mm512_load_ps(map->slopes),
                          .offsets = _mm512_load_ps(map->offsets),
                          .tops = _mm512_load_ps(map->tops) };
}

/* Distances of normalized numbers in places; with_sign: of the signed map. Of the other, negative
 * numbers have none. */
VEC_INLINE __m512i places_of(vec x, const code_tables *t, bool with_sign)
{
    const int shift = with_sign ? 25 : 24;
    const __m512i least = _mm512_set1_epi32(49 << shift); /* of range 1 */
    const __m512i size = with_sign ? _mm512_max_epu32(vec_bits_sign_last((__m512i)x), least)
                                   : _mm512_max_epi32((__m512i)x, least);
    const __m512i ahead = _mm512_permutexvar_epi32(_mm512_srli_epi32(size, shift), t->ahead);
    const __m512i range = _mm512_srli_epi32(_mm512_add_epi32(size, ahead), shift);
    const vec line = _mm512_fmadd_ps(with_sign ? _mm512_abs_ps(x) : x,
                                     _mm512_permutexvar_ps(range, t->slopes),
                                     _mm512_permutexvar_ps(range, t->offsets));
    return (__m512i)_mm512_min_ps(line, _mm512_permutexvar_ps(range, t->tops));
}

VEC_INLINE void pack_group(const float *from, vec inverse, const code_tables *tables,
                           const hr_moment_map *map, bool with_sign, uint8_t *codes)
{
    const __m512i byte = _mm512_set1_epi16(0xff), between = _mm512_set1_epi32(BETWEEN);
    vec x[4];
    __m512i away[4];
    __mmask16 known = 0xffff;
    UNROLL for (int i = 0; i < 4; i++)
    {
        x[i] = _mm512_mul_ps(_mm512_loadu_ps(from + 16 * i), inverse);
        away[i] = places_of(x[i], tables, with_sign);
        known = _mm512_mask_test_epi32_mask(known, away[i], between);
        away[i] = _mm512_srli_epi32(away[i], PLACES);
    }
    const __m512i low = _mm512_and_si512(_mm512_packus_epi32(away[0], away[1]), byte);
    const __m512i high = _mm512_and_si512(_mm512_packus_epi32(away[2], away[3]), byte);
    __m512i code = _mm512_packus_epi16(low, high);
    if (with_sign) {
        const __m512i zero = _mm512_set1_epi8((char)map->zero);
        const __m512i signs = _mm512_packs_epi16(_mm512_packs_epi32((__m512i)x[0], (__m512i)x[1]),
                                                 _mm512_packs_epi32((__m512i)x[2], (__m512i)x[3]));
        code = _mm512_mask_subs_epu8(_mm512_add_epi8(zero, code), _mm512_movepi8_mask(signs), zero,
                                     code);
    }
    _mm512_storeu_si512(codes, reordered(code));
    if (__builtin_expect(known != 0xffff, 0)) {
        float values[GROUP];
        UNROLL for (int i = 0; i < 4; i++) _mm512_storeu_ps(values + 16 * i, x[i]);
        mend_codes(values, map, GROUP, codes);
    }
}

#endif
