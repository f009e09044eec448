/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/codes_avx2.h - codes of moments (moments.h) with AVX2, GROUP at a time. */
#ifndef HR_OPS_UPDATE_CODES_AVX2_H
#define HR_OPS_UPDATE_CODES_AVX2_H

#include "ops/simd/unroll.h"
#include "ops/simd/vec_avx2.h"
#include "ops/update/update_kernels.h"

enum { GROUP = 32 };

VEC_INLINE void unpack_group(const uint8_t *codes, const hr_moment_map *map, vec scale, vec to[4])
{
    UNROLL for (int i = 0; i < 4; i++)
        to[i] = vec_mul(vec_look_up(map->values, vec_load_u8(codes + 8 * i, VEC_LANES)), scale);
}

/* For each of 8 ranges of magnitudes two lines, one for each decade that has limits in it. */
typedef struct {
    vec slopes[2], offsets[2];
} code_tables;

/* Lines of distances (update_kernels.h), less a half, of a range that begins in each decade. */
VEC_INLINE code_tables code_tables_of(const hr_moment_map *map)
{
    const vec_bits ranges[2] = { _mm256_setr_epi32(10, 11, 13, 13, 5, 6, 8, 8),
                                 _mm256_setr_epi32(11, 13, 14, 14, 6, 8, 10, 10) };
    const vec place = vec_set(0x1p-15f);
    code_tables t;
    for (int k = 0; k < 2; k++) {
        const vec offset = vec_sub(_mm256_i32gather_ps(map->offsets, ranges[k], 4),
                                   vec_set(0x1p23f));
        t.slopes[k] = vec_mul(place, _mm256_i32gather_ps(map->slopes, ranges[k], 4));
        t.offsets[k] = vec_fma(place, offset, vec_set(-0.5f));
    }
    return t;
}

/* The lower of the two lines, cut off, is the distance from the code of 0, or one less: between two
 * decades, too, where a limit lies a fifth beyond the whole number. So the code or the one below it
 * is known, and the limit between them decides. */
VEC_INLINE void pack_group(const float *from, vec inverse, const code_tables *tables,
                           const hr_moment_map *map, bool with_sign, uint8_t *codes)
{
    enum { VECTORS = GROUP / VEC_LANES, LEAST = 0x35000000, RANGES = 176 /* of 2^16 */ };
    vec_bits code[VECTORS];
    UNROLL for (int i = 0; i < VECTORS; i++)
    {
        const vec x = vec_mul(vec_load_f32(from + i * VEC_LANES, VEC_LANES), inverse);
        const vec size = (vec)((vec_lanes)x & 0x7fffffff);
        const vec_bits known = vec_max_int((vec_bits)size, vec_bits_set(LEAST));
        const vec_bits range = _mm256_mulhi_epu16(_mm256_srli_epi32(known, 16),
                                                  vec_bits_set(RANGES));
        vec line[2];
        for (int k = 0; k < 2; k++)
            line[k] = vec_fma(size, _mm256_permutevar8x32_ps(tables->slopes[k], range),
                              _mm256_permutevar8x32_ps(tables->offsets[k], range));
        code[i] = _mm256_cvttps_epi32(vec_min(line[0], line[1]));
        if (with_sign) {
            const vec_bits below = _mm256_srai_epi32((vec_bits)x, 31); /* 0 or -1 */
            code[i] = vec_bits_add(vec_bits_xor(code[i], below), vec_bits_set((uint32_t)map->zero));
            code[i] = vec_max_int(code[i], vec_bits_set(0));
        }
        const vec above = _mm256_cmp_ps(x, vec_look_up(map->limits, code[i]), _CMP_GT_OQ);
        code[i] = _mm256_sub_epi32(code[i], (vec_bits)above);
    }
    const vec_bits bytes = _mm256_packus_epi16(_mm256_packus_epi32(code[0], code[1]),
                                               _mm256_packus_epi32(code[2], code[3]));
    const vec_bits order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256((void *)codes, _mm256_permutevar8x32_epi32(bytes, order));
}

#endif
