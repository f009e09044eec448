/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/codes_avx2.h - codes of moments (moments.h) with AVX2, GROUP at a time. */
#ifndef HR_OPS_UPDATE_CODES_AVX2_H
#define HR_OPS_UPDATE_CODES_AVX2_H

#include "ops/simd/unroll.h"
#include "ops/simd/vec_avx2.h"
#include "ops/update/update_kernels.h"

enum { GROUP = 8 };

/* Comparisons are 0 or -1. */
typedef int32_t code_ints __attribute__((vector_size(4 * VEC_LANES)));

/* The codes of normalized numbers: the number of limits below them. */
static __attribute__((noinline)) vec_bits codes_by_search(vec x, const hr_moment_map *map)
{
    vec_bits code = vec_bits_set(0);
    for (int32_t half = HR_MOMENT_CODES / 2; half > 0; half /= 2)
        code = vec_count_above(
            code, x, vec_look_up(map->limits, vec_bits_add(code, vec_bits_set((uint32_t)half - 1))),
            half);
    return code;
}

VEC_INLINE vec_bits slots_of(vec x, const hr_moment_map *map)
{
    const float *edges = (const void *)map->edges;
    const vec size = (vec)vec_bits_sign_last((vec_bits)x);
    vec_bits slot = vec_count_above(vec_bits_set(0), size, vec_set(edges[3]), 4);
    slot = vec_count_above(slot, size, vec_pick(edges + 1, slot), 2);
    return vec_count_above(slot, size, vec_pick(edges, slot), 1);
}

/* The same, faster. A decade of 2^n values is 1 to 2 on its line, with limits at multiples of 2^-n,
 * so n bits after the leading one are the value. Limits are rounded, and so is the line: within
 * NEAR places of a multiple the codes are searched for, which is rare. */
VEC_INLINE vec_bits codes_of(vec x, const hr_moment_map *map)
{
    enum { NEAR = 4, ONE = 0x3f000000, SIGNED = 24 };
    const vec_bits slot = slots_of(x, map);
    const vec line = vec_fma((vec)((vec_lanes)x & 0x7fffffff), vec_pick(map->slopes, slot),
                             vec_set(8.f / 9));
    const vec_lanes place = (vec_lanes)vec_min(line, vec_set(2 - 0x1p-19f)) - ONE;
    const vec_bits shift = (vec_bits)(map->shift - (code_ints)slot);
    const vec_bits away = vec_bits_shift_right_by((vec_bits)(place - NEAR), shift);
    if (__builtin_expect(vec_differ(away, vec_bits_shift_right_by((vec_bits)(place + NEAR), shift)),
                         0))
        return codes_by_search(x, map);
    const code_ints apart = (code_ints)vec_bits_with_sign(away, x) + (map->shift - SIGNED);
    const vec_bits code = vec_max_int((vec_bits)(apart + map->zero), vec_bits_set(0));
    return vec_count_above(code, x, vec_set(map->limits[HR_MOMENT_CODES - 2]), 1);
}

VEC_INLINE void unpack_group(const uint8_t *codes, const hr_moment_map *map, vec scale, vec to[1])
{
    to[0] = vec_mul(vec_look_up(map->values, vec_load_u8(codes, GROUP)), scale);
}

/* Nothing is prepared. */
typedef struct {
    const hr_moment_map *map;
} code_tables;

VEC_INLINE code_tables code_tables_of(const hr_moment_map *map)
{
    return (code_tables){ map };
}

VEC_INLINE void pack_group(const float *from, vec inverse, const code_tables *tables,
                           const hr_moment_map *map, uint8_t *codes)
{
    (void)tables;
    vec_store_u8(codes, codes_of(vec_mul(vec_load_f32(from, GROUP), inverse), map), GROUP);
}

#endif
