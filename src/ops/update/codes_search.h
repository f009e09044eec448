/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/codes_search.h - codes of any numbers, for those near a limit. Include it after the
 * vectors of ops/simd, and with GROUP. */
#ifndef HR_OPS_UPDATE_CODES_SEARCH_H
#define HR_OPS_UPDATE_CODES_SEARCH_H

/* The codes of normalized numbers: the number of limits below them. */
static __attribute__((noinline)) void search_group(const float *x, const hr_moment_map *map,
                                                   uint8_t *codes)
{
    for (int i = 0; i < GROUP; i += VEC_LANES) {
        const vec value = vec_load_f32(x + i, VEC_LANES);
        vec_bits code = vec_bits_set(0);
        for (int32_t half = HR_MOMENT_CODES / 2; half > 0; half /= 2) {
            const vec_bits at = vec_bits_add(code, vec_bits_set((uint32_t)half - 1));
            code = vec_count_above(code, value, vec_look_up(map->limits, at), half);
        }
        vec_store_u8(codes + i, code, VEC_LANES);
    }
}

#endif
