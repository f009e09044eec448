/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/codes_avx2.h - codes of moments (moments.h) with AVX2, GROUP at a time. */
#ifndef HR_OPS_UPDATE_CODES_AVX2_H
#define HR_OPS_UPDATE_CODES_AVX2_H

#include "ops/simd/unroll.h"
#include "ops/simd/vec_avx2.h"
#include "ops/update/codes.h"

enum { GROUP = 32 };

VEC_INLINE void unpack_group(const uint8_t *codes, const hr_moment_map *map, vec scale, vec to[4])
{
    UNROLL for (int i = 0; i < 4; i++)
        to[i] = vec_mul(vec_look_up(map->values, vec_load_u8(codes + 8 * i, VEC_LANES)), scale);
}

/* The same with 8 ranges of 3.2 octaves, each of which has one limit between decades: range i is
 * of those below the first limit, or of decade i - 1. */
typedef struct {
    vec_bits ahead, last; /* last: the last limit */
    vec slopes, offsets, tops;
} code_tables;

enum { RANGES = 160 /* of 2^16 */, RANGE_FIRST = 32, LEAST = 0x3334 << 16 };

VEC_INLINE vec_bits range_of(vec_bits size, bool with_sign)
{
    return _mm256_mulhi_epu16(_mm256_srli_epi32(size, 16),
                              vec_bits_set((uint32_t)RANGES >> with_sign));
}

VEC_INLINE code_tables code_tables_of(const hr_moment_map *map)
{
    const vec_bits from = _mm256_setr_epi32(1, 5, 6, 8, 10, 11, 13, 14); /* update_kernels.h */
    const int32_t *limits = (const int32_t *)map->limits, zero = map->zero;
    const bool with_sign = zero > 0;
    _Alignas(32) int32_t ahead[8] = { 0 };
    const int32_t ranges = RANGES >> with_sign;
    for (int32_t i = 0; i < 7; i++) {
        const int32_t end = ((RANGE_FIRST + i + 1) * 65536 + ranges - 1) / ranges << 16;
        const int32_t limit = limits[with_sign ? zero + (1 << i) - 1 : (2 << i) - 2];
        const int32_t below = limits[with_sign ? zero - (1 << i) : 0] & INT32_MAX;
        /* Of negative numbers, which come after positive ones, it may be the next one. */
        ahead[i] = end - 1 - (with_sign ? limit + below : limit);
    }
    return (code_tables){ .ahead = _mm256_load_si256((const void *)ahead),
                          .last = vec_bits_set((uint32_t)limits[HR_MOMENT_CODES - 2] << with_sign),
                          .slopes = _mm256_i32gather_ps(map->slopes, from, 4),
                          .offsets = _mm256_i32gather_ps(map->offsets, from, 4),
                          .tops = _mm256_i32gather_ps(map->tops, from, 4) };
}

/* The distances of normalized numbers from the code of 0, in the lowest 8 bits; `near` becomes all
 * ones in lanes where one may be wrong by one. */
VEC_INLINE vec_bits distances_of(vec x, const code_tables *t, bool with_sign, vec_bits *near)
{
    const vec_bits bits = with_sign ? vec_bits_sign_last((vec_bits)x) : (vec_bits)x;
    const vec_bits size = vec_max_int(bits, vec_bits_set((uint32_t)LEAST << with_sign));
    const vec_bits ahead = _mm256_permutevar8x32_epi32(t->ahead, range_of(size, with_sign));
    const vec_bits range = range_of(vec_bits_add(size, ahead), with_sign);
    const vec magnitude = with_sign ? (vec)((vec_lanes)x & 0x7fffffff) : x;
    const vec line = vec_fma(magnitude, _mm256_permutevar8x32_ps(t->slopes, range),
                             _mm256_permutevar8x32_ps(t->offsets, range));
    const vec_bits place = (vec_bits)vec_min(line, _mm256_permutevar8x32_ps(t->tops, range));
    const vec_bits left = _mm256_and_si256(place, vec_bits_set(BETWEEN));
    *near = _mm256_or_si256(*near, _mm256_cmpeq_epi32(left, vec_bits_set(0)));
    return _mm256_sub_epi32(_mm256_srli_epi32(place, PLACES), _mm256_cmpgt_epi32(size, t->last));
}

VEC_INLINE void pack_group(const float *from, vec inverse, const code_tables *tables,
                           const hr_moment_map *map, bool with_sign, uint8_t *codes)
{
    enum { VECTORS = GROUP / VEC_LANES };
    const vec_bits byte = _mm256_set1_epi16(0xff);
    vec x[VECTORS];
    vec_bits away[VECTORS], near = vec_bits_set(0);
    UNROLL for (int i = 0; i < VECTORS; i++)
    {
        x[i] = vec_mul(vec_load_f32(from + i * VEC_LANES, VEC_LANES), inverse);
        away[i] = distances_of(x[i], tables, with_sign, &near);
    }
    const vec_bits low = _mm256_and_si256(_mm256_packus_epi32(away[0], away[1]), byte);
    const vec_bits high = _mm256_and_si256(_mm256_packus_epi32(away[2], away[3]), byte);
    vec_bits code = _mm256_packus_epi16(low, high);
    if (with_sign) {
        const vec_bits zero = _mm256_set1_epi8((char)map->zero);
        const vec_bits signs = _mm256_packs_epi16(
            _mm256_packs_epi32((vec_bits)x[0], (vec_bits)x[1]),
            _mm256_packs_epi32((vec_bits)x[2], (vec_bits)x[3]));
        code = _mm256_blendv_epi8(_mm256_add_epi8(zero, code), _mm256_subs_epu8(zero, code), signs);
    }
    const vec_bits order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256((void *)codes, _mm256_permutevar8x32_epi32(code, order));
    if (__builtin_expect(_mm256_movemask_epi8(near), 0)) {
        float values[GROUP];
        UNROLL for (int i = 0; i < VECTORS; i++)
            vec_store_f32(values + i * VEC_LANES, x[i], VEC_LANES);
        mend_codes(values, map, GROUP, codes);
    }
}

#endif
