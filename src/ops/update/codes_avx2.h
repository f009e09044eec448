/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/codes_avx2.h - codes of moments (moments.h) with AVX2, GROUP at a time. */
#ifndef HR_OPS_UPDATE_CODES_AVX2_H
#define HR_OPS_UPDATE_CODES_AVX2_H

#include "ops/simd/unroll.h"
#include "ops/simd/vec_avx2.h"
#include "ops/update/update_kernels.h"

enum { GROUP = 32 };

#include "ops/update/codes_search.h"

VEC_INLINE void unpack_group(const uint8_t *codes, const hr_moment_map *map, vec scale, vec to[4])
{
    UNROLL for (int i = 0; i < 4; i++)
        to[i] = vec_mul(vec_look_up(map->values, vec_load_u8(codes + 8 * i, VEC_LANES)), scale);
}

/* Nothing is prepared. */
typedef struct {
    const hr_moment_map *map;
} code_tables;

VEC_INLINE code_tables code_tables_of(const hr_moment_map *map)
{
    return (code_tables){ map };
}

VEC_INLINE vec_bits slots_of(vec x, const hr_moment_map *map)
{
    const float *edges = (const void *)map->edges;
    const vec size = (vec)vec_bits_sign_last((vec_bits)x);
    vec_bits slot = vec_count_above(vec_bits_set(0), size, vec_set(edges[3]), 4);
    slot = vec_count_above(slot, size, vec_pick(edges + 1, slot), 2);
    return vec_count_above(slot, size, vec_pick(edges, slot), 1);
}

/* Distances of normalized numbers from the code of 0. A decade of 2^n values is 1 to 2 on its line,
 * with limits at multiples of 2^-n, so n bits after the leading one are the value. Limits are
 * rounded, and so is the line: returns bits where a number is within NEAR places of a multiple. */
VEC_INLINE vec_bits distances_of(vec x, const hr_moment_map *map, vec_bits *distance)
{
    enum { NEAR = 4, ONE = 0x3f000000 };
    const vec_bits slot = slots_of(x, map);
    const vec line = vec_fma((vec)((vec_lanes)x & 0x7fffffff), vec_pick(map->slopes, slot),
                             vec_set(8.f / 9));
    const vec_lanes place = (vec_lanes)vec_min(line, vec_set(2 - 0x1p-19f)) - ONE;
    const vec_bits shift = _mm256_sub_epi32(vec_bits_set((uint32_t)map->shift), slot);
    const vec_bits away = _mm256_srlv_epi32((vec_bits)(place - NEAR), shift);
    *distance = vec_count_above(away, x, vec_set(map->limits[HR_MOMENT_CODES - 2]), 1);
    return vec_bits_xor(away, _mm256_srlv_epi32((vec_bits)(place + NEAR), shift));
}

/* The codes, faster, where no number is near a limit. */
VEC_INLINE void pack_group(const float *from, vec inverse, const code_tables *tables,
                           const hr_moment_map *map, uint8_t *codes)
{
    vec x[4];
    vec_bits away[4], near = vec_bits_set(0), code;
    (void)tables;
    UNROLL for (int i = 0; i < 4; i++)
    {
        x[i] = vec_mul(vec_load_f32(from + 8 * i, VEC_LANES), inverse);
        near = _mm256_or_si256(near, distances_of(x[i], map, &away[i]));
    }
    if (__builtin_expect(!_mm256_testz_si256(near, near), 0)) {
        float values[GROUP];
        UNROLL for (int i = 0; i < 4; i++) vec_store_f32(values + 8 * i, x[i], VEC_LANES);
        search_group(values, map, codes);
        return;
    }
    const vec_bits low = _mm256_packus_epi32(away[0], away[1]);
    const vec_bits high = _mm256_packus_epi32(away[2], away[3]);
    if (map->zero > 0) {
        const vec_bits signs = _mm256_packs_epi16(
            _mm256_packs_epi32((vec_bits)x[0], (vec_bits)x[1]),
            _mm256_packs_epi32((vec_bits)x[2], (vec_bits)x[3]));
        code = _mm256_add_epi8(_mm256_set1_epi8((char)map->zero),
                               _mm256_sign_epi8(_mm256_packus_epi16(low, high), signs));
    } else { /* one too far, and up to 256 */
        const vec_bits one = _mm256_set1_epi16(1);
        code = _mm256_packus_epi16(_mm256_subs_epu16(low, one), _mm256_subs_epu16(high, one));
    }
    const vec_bits order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256((void *)codes, _mm256_permutevar8x32_epi32(code, order));
}

#endif
