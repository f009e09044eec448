/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/codes_avx512.h - codes of moments (moments.h) with AVX-512, GROUP at a time. */
#ifndef HR_OPS_UPDATE_CODES_AVX512_H
#define HR_OPS_UPDATE_CODES_AVX512_H

#include "ops/simd/unroll.h"
#include "ops/simd/vec_avx512.h"
#include "ops/update/update_kernels.h"

enum { GROUP = 64 };

/* Double words of four vectors, in the order in which packing to bytes has them, and back. */
VEC_INLINE __m512i reordered(__m512i bytes)
{
    return _mm512_permutexvar_epi32(
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), bytes);
}

#ifdef __AVX512VBMI__
/* Bytes table[index] of 256: four permutations of 64, each for the codes of its upper two bits. */
VEC_INLINE __m512i bytes_of(const uint8_t table[HR_MOMENT_CODES], __m512i index,
                            const __mmask64 quarters[4])
{
    __m512i bytes = _mm512_permutexvar_epi8(index, _mm512_loadu_si512(table));
    UNROLL for (int i = 1; i < 4; i++) bytes = _mm512_mask_permutexvar_epi8(
        bytes, quarters[i], index, _mm512_loadu_si512(table + 64 * i));
    return bytes;
}

VEC_INLINE void unpack_group(const uint8_t *codes, const hr_moment_map *map, vec scale, vec to[4])
{
    const __m512i code = reordered(_mm512_loadu_si512(codes));
    const __mmask64 upper = _mm512_movepi8_mask(code);
    const __mmask64 odd = _mm512_movepi8_mask(_mm512_slli_epi16(code, 1));
    const __mmask64 quarters[4] = { 0, odd & ~upper, upper & ~odd, upper & odd };
    __m512i bytes[4];
    UNROLL for (int i = 0; i < 4; i++) bytes[i] = bytes_of(map->planes[i], code, quarters);
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

/* What finds the distance of a number from the code of 0, in registers. A decade of 2^n values is 1
 * to 2 on its line, with limits at multiples of 2^-n, so the bits of the line from the leading one
 * on, less all but n of them, are the distance. Numbers above the last limit have a slot, too. */
typedef struct {
    __m512i slots[2]; /* of the least number of each exponent */
    __m512i edges;    /* of slots */
    __m512 slopes;    /* of lines */
    __m512i shifts;   /* by which bits of a line are shifted right */
    __m512i between;  /* the bits that are lost, but for the lowest three */
} code_tables;

VEC_INLINE code_tables code_tables_of(const hr_moment_map *map)
{
    const __m512i slots = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 8, 8, 8, 8);
    const __m512i shifts = _mm512_sub_epi32(_mm512_set1_epi32(map->shift), slots);
    const __m512i ends = _mm512_sllv_epi32(_mm512_set1_epi32(1), shifts);
    return (code_tables){
        .slots = { _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)map->slots)),
                   _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(map->slots + 16))) },
        .edges = _mm512_broadcast_i32x8(_mm256_loadu_si256((const void *)map->edges)),
        .slopes = _mm512_maskz_loadu_ps(0x1ff, map->slopes),
        .shifts = shifts,
        .between = _mm512_sub_epi32(ends, _mm512_set1_epi32(8)),
    };
}

/* Distances of normalized numbers. Limits are rounded, and so is the line: returns the lanes that
 * are within NEAR places of a multiple, whose distance is not known. */
VEC_INLINE __mmask16 distances_of(vec x, const code_tables *t, __m512i *distance)
{
    enum { NEAR = 4, ONE = 0x3f000000, LEAST = 0x60000000 };
    const vec below_two = _mm512_set1_ps(2 - 0x1p-19f);
    const __m512i size = _mm512_max_epu32(vec_bits_sign_last((__m512i)x), _mm512_set1_epi32(LEAST));
    const __m512i least = _mm512_permutex2var_epi32(t->slots[0], _mm512_srli_epi32(size, 24),
                                                    t->slots[1]);
    const __m512i edge = _mm512_permutexvar_epi32(least, t->edges);
    const __m512i slot = _mm512_mask_add_epi32(least, _mm512_cmpgt_epi32_mask(size, edge), least,
                                               _mm512_set1_epi32(1));
    const vec line = _mm512_fmadd_ps(_mm512_abs_ps(x), _mm512_permutexvar_ps(slot, t->slopes),
                                     _mm512_set1_ps(8.f / 9));
    const __m512i place = _mm512_sub_epi32((__m512i)_mm512_min_ps(line, below_two),
                                           _mm512_set1_epi32(ONE - NEAR));
    *distance = _mm512_srlv_epi32(place, _mm512_permutexvar_epi32(slot, t->shifts));
    return _mm512_testn_epi32_mask(place, _mm512_permutexvar_epi32(slot, t->between));
}

/* The codes of normalized numbers: the number of limits below them. */
static __attribute__((noinline)) void search_group(const float *x, const hr_moment_map *map,
                                                   uint8_t *codes)
{
    for (int i = 0; i < GROUP; i += VEC_LANES) {
        const vec value = vec_load_f32(x + i, VEC_LANES);
        vec_bits code = vec_bits_set(0);
        for (int32_t half = HR_MOMENT_CODES / 2; half > 0; half /= 2) {
            const vec_bits at = vec_bits_add(code, vec_bits_set((uint32_t)half - 1));
            const __mmask16 above = _mm512_cmp_ps_mask(value, vec_look_up(map->limits, at),
                                                       _CMP_GT_OQ);
            code = _mm512_mask_add_epi32(code, above, code, _mm512_set1_epi32(half));
        }
        vec_store_u8(codes + i, code, VEC_LANES);
    }
}

/* The codes, faster, where no number is near a limit. */
VEC_INLINE void pack_group(const float *from, vec inverse, const code_tables *tables,
                           const hr_moment_map *map, uint8_t *codes)
{
    vec x[4];
    __m512i away[4], code;
    __mmask16 near = 0;
    UNROLL for (int i = 0; i < 4; i++)
    {
        x[i] = _mm512_mul_ps(_mm512_loadu_ps(from + 16 * i), inverse);
        near |= distances_of(x[i], tables, &away[i]);
    }
    if (__builtin_expect(near, 0)) {
        float values[GROUP];
        UNROLL for (int i = 0; i < 4; i++) _mm512_storeu_ps(values + 16 * i, x[i]);
        search_group(values, map, codes);
        return;
    }
    const __m512i low = _mm512_packus_epi32(away[0], away[1]);
    const __m512i high = _mm512_packus_epi32(away[2], away[3]);
    if (map->zero > 0) {
        const __m512i zero = _mm512_set1_epi8((char)map->zero), a = _mm512_packus_epi16(low, high);
        const __m512i signs = _mm512_packs_epi16(_mm512_packs_epi32((__m512i)x[0], (__m512i)x[1]),
                                                 _mm512_packs_epi32((__m512i)x[2], (__m512i)x[3]));
        code = _mm512_mask_subs_epu8(_mm512_add_epi8(zero, a), _mm512_movepi8_mask(signs), zero, a);
    } else { /* one too far, and up to 256 */
        const __m512i one = _mm512_set1_epi16(1);
        code = _mm512_packus_epi16(_mm512_subs_epu16(low, one), _mm512_subs_epu16(high, one));
    }
    _mm512_storeu_si512(codes, reordered(code));
}

#endif
