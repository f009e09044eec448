/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/update_template.h - the update passes over the vectors of ops/simd. One pass each,
 * bound by memory. One thread of Zen 4, 2026-11, of read-modify-write: adamw 84 %, with the bf16
 * copy 79 %, sgd 83 %; of another EPYC, lion with the copy 73 %, two threads 83 %. Non-temporal
 * stores of the copy gain nothing. Two threads of an Intel Xeon with AMX, 2026-11, 25 M elements:
 * adamw with the copy 52 GB/s; sumsq 29 GB/s, 18 with one read stream per thread. */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "ops/simd/philox.h"
#include "ops/simd/unroll.h"
#include "ops/update/update_kernels.h"

/* Runs read in parallel: a single read stream does not saturate memory. */
enum { STREAMS = VEC_LANES / 4, RUN = HR_UPDATE_RUN_ELEMENTS };

static double sum_lanes(vec_sums sums)
{
    double lanes[HR_SUMSQ_LANES], sum = 0;
    vec_sums_store(lanes, sums);
    for (int64_t i = 0; i < HR_SUMSQ_LANES; i++) sum += lanes[i];
    return sum;
}

VEC_INLINE void sumsq_streams(const float *gradient, double *runs, int streams)
{
    vec_sums sums[STREAMS];
    UNROLL for (int k = 0; k < streams; k++) sums[k] = vec_sums_zero();
    for (int64_t i = 0; i < RUN; i += HR_SUMSQ_LANES)
        UNROLL for (int k = 0; k < streams; k++)
            sums[k] = vec_sums_add_squares(sums[k], gradient + k * RUN + i, HR_SUMSQ_LANES);
    UNROLL for (int k = 0; k < streams; k++) runs[k] = sum_lanes(sums[k]);
}

static double sumsq_run(const float *gradient, int64_t count)
{
    vec_sums sums = vec_sums_zero();
    int64_t i = 0;
    for (; i + HR_SUMSQ_LANES <= count; i += HR_SUMSQ_LANES)
        sums = vec_sums_add_squares(sums, gradient + i, HR_SUMSQ_LANES);
    if (i < count) sums = vec_sums_add_squares(sums, gradient + i, count - i);
    return sum_lanes(sums);
}

static void sumsq(const float *gradient, int64_t count, double *runs)
{
    int64_t i = 0;
    for (; i + STREAMS * RUN <= count; i += STREAMS * RUN)
        sumsq_streams(gradient + i, runs + i / RUN, STREAMS);
    for (; i + 2 * RUN <= count; i += 2 * RUN) sumsq_streams(gradient + i, runs + i / RUN, 2);
    for (; i < count; i += RUN)
        runs[i / RUN] = sumsq_run(gradient + i, count - i < RUN ? count - i : RUN);
}

/* How far arrays are fetched ahead where other work lies between blocks, so that the processor does
 * not foresee the reads; an address past the end of an array is allowed. */
enum { AHEAD = HR_MOMENT_BLOCK };

VEC_INLINE void prefetch_ahead(const float *gradient, const float *master, const float *m)
{
    vec_prefetch(gradient + AHEAD);
    vec_prefetch(master + AHEAD);
    vec_prefetch(m + AHEAD);
}

/* Updates the moments and stores the weight. Returns the root of the second moment. */
VEC_INLINE vec adamw_values(const float *gradient, float *master, vec *m, vec *v, hr_bf16 *weight,
                            const hr_adamw_factors *f, int64_t lanes)
{
    vec_prefetch(gradient + AHEAD);
    vec_prefetch(master + AHEAD);
    const vec w = vec_load_f32(master, lanes);
    const vec g = vec_fma(vec_set(f->pull), w,
                          vec_mul(vec_set(f->scale), vec_load_f32(gradient, lanes)));
    *m = vec_fma(vec_set(f->keep1), *m, vec_mul(vec_set(f->take1), g));
    *v = vec_fma(vec_set(f->keep2), *v, vec_mul(vec_set(f->take2), vec_mul(g, g)));
    const vec root = vec_sqrt(*v);
    const vec move = vec_div(*m, vec_fma(vec_set(f->debias2), root, vec_set(f->eps)));
    const vec change = vec_fma(vec_set(f->shrink), w, vec_mul(vec_set(f->rate), move));
    const vec updated = vec_sub(w, change);
    vec_store_f32(master, updated, lanes);
    if (weight) {
        vec_prefetch(weight + AHEAD);
        vec_store_bf16(weight, updated, lanes);
    }
    return root;
}

VEC_INLINE void adamw_step(const float *gradient, float *master, float *m, float *v,
                           hr_bf16 *weight, int64_t i, const hr_adamw_factors *f, int64_t lanes)
{
    vec_prefetch(m + i + AHEAD);
    vec_prefetch(v + i + AHEAD);
    vec first = vec_load_f32(m + i, lanes), second = vec_load_f32(v + i, lanes);
    (void)adamw_values(gradient + i, master + i, &first, &second, weight ? weight + i : NULL, f,
                       lanes);
    vec_store_f32(m + i, first, lanes);
    vec_store_f32(v + i, second, lanes);
}

static void adamw(const float *gradient, float *master, float *m, float *v, hr_bf16 *weight,
                  int64_t count, const hr_adamw_factors *factors)
{
    const hr_adamw_factors f = *factors;
    int64_t i = 0;
    for (; i + VEC_LANES <= count; i += VEC_LANES)
        adamw_step(gradient, master, m, v, weight, i, &f, VEC_LANES);
    if (i < count) adamw_step(gradient, master, m, v, weight, i, &f, count - i);
}

VEC_INLINE void sgd_step(const float *gradient, float *master, float *m, hr_bf16 *weight, int64_t i,
                         const hr_sgd_factors *f, int64_t lanes)
{
    prefetch_ahead(gradient + i, master + i, m + i);
    const vec w = vec_load_f32(master + i, lanes);
    const vec g = vec_fma(vec_set(f->pull), w,
                          vec_mul(vec_set(f->scale), vec_load_f32(gradient + i, lanes)));
    const vec momentum = vec_fma(vec_set(f->keep), vec_load_f32(m + i, lanes), g);
    const vec updated = vec_fnma(vec_set(f->rate), momentum, w);
    vec_store_f32(m + i, momentum, lanes);
    vec_store_f32(master + i, updated, lanes);
    if (weight) vec_store_bf16(weight + i, updated, lanes);
}

static void sgd(const float *gradient, float *master, float *m, hr_bf16 *weight, int64_t count,
                const hr_sgd_factors *factors)
{
    const hr_sgd_factors f = *factors;
    int64_t i = 0;
    for (; i + VEC_LANES <= count; i += VEC_LANES)
        sgd_step(gradient, master, m, weight, i, &f, VEC_LANES);
    if (i < count) sgd_step(gradient, master, m, weight, i, &f, count - i);
}

VEC_INLINE void lion_step(const float *gradient, float *master, float *m, hr_bf16 *weight,
                          int64_t i, const hr_lion_factors *f, int64_t lanes)
{
    prefetch_ahead(gradient + i, master + i, m + i);
    const vec w = vec_load_f32(master + i, lanes), momentum = vec_load_f32(m + i, lanes);
    const vec g = vec_mul(vec_set(f->scale), vec_load_f32(gradient + i, lanes));
    const vec c = vec_fma(vec_set(f->keep1), momentum, vec_mul(vec_set(f->take1), g));
    const vec size = vec_max(vec_set(FLT_MIN), vec_max(c, vec_sub(vec_set(0), c)));
    const vec sign = vec_div(c, size);
    const vec change = vec_fma(vec_set(f->shrink), w, vec_mul(vec_set(f->rate), sign));
    const vec updated = vec_sub(w, change);
    vec_store_f32(m + i, vec_fma(vec_set(f->keep2), momentum, vec_mul(vec_set(f->take2), g)),
                  lanes);
    vec_store_f32(master + i, updated, lanes);
    if (weight) vec_store_bf16(weight + i, updated, lanes);
}

static void lion(const float *gradient, float *master, float *m, hr_bf16 *weight, int64_t count,
                 const hr_lion_factors *factors)
{
    const hr_lion_factors f = *factors;
    int64_t i = 0;
    for (; i + VEC_LANES <= count; i += VEC_LANES)
        lion_step(gradient, master, m, weight, i, &f, VEC_LANES);
    if (i < count) lion_step(gradient, master, m, weight, i, &f, count - i);
}

/* Reads a whole group of codes. */
VEC_INLINE void unpack_whole(const uint8_t *codes, const hr_moment_map *map, vec scale, float *to)
{
    vec values[GROUP / VEC_LANES];
    unpack_group(codes, map, scale, values);
    UNROLL for (int j = 0; j < GROUP / VEC_LANES; j++)
        vec_store_f32(to + j * VEC_LANES, values[j], VEC_LANES);
}

static void unpack_codes(const uint8_t *restrict codes, const hr_moment_map *restrict map,
                         float scale, float *restrict to, int64_t count)
{
    const vec by = vec_set(scale);
    int64_t i = 0;
    for (; i + GROUP <= count; i += GROUP) {
        vec_prefetch(codes + i + AHEAD);
        unpack_whole(codes + i, map, by, to + i);
    }
    if (i < count) {
        uint8_t rest[GROUP] = { 0 };
        float values[GROUP];
        memcpy(rest, codes + i, (size_t)(count - i));
        unpack_whole(rest, map, by, values);
        memcpy(to + i, values, (size_t)(count - i) * sizeof *to);
    }
}

/* Lanes as unsigned and as signed integers; comparisons are 0 or -1. */
typedef int32_t vec_ints __attribute__((vector_size(4 * VEC_LANES)));

VEC_INLINE vec vec_magnitude(vec x)
{
    return (vec)((vec_lanes)x & 0x7fffffff);
}

/* The largest magnitudes of each lane; NaN is the largest of all. */
VEC_INLINE vec_ints larger(vec_ints most, vec x)
{
    return (vec_ints)vec_max_int((vec_bits)vec_magnitude(x), (vec_bits)most);
}

static float largest_of_lanes(vec_ints most)
{
    const int32_t all = vec_reduce_max_int((vec_bits)most);
    float scale;
    memcpy(&scale, &all, sizeof scale);
    return scale;
}

static float largest(const float *from, int64_t count)
{
    vec_ints most = { 0 };
    int64_t i = 0;
    for (; i + VEC_LANES <= count; i += VEC_LANES)
        most = larger(most, vec_load_f32(from + i, VEC_LANES));
    if (i < count) most = larger(most, vec_load_f32(from + i, count - i));
    return largest_of_lanes(most);
}

VEC_INLINE void pack_groups(const float *restrict from, vec inverse,
                            const hr_moment_map *restrict map, bool with_sign,
                            uint8_t *restrict codes, int64_t count)
{
    const code_tables tables = code_tables_of(map);
    int64_t i = 0;
    for (; i + GROUP <= count; i += GROUP)
        pack_group(from + i, inverse, &tables, map, with_sign, codes + i);
    if (i < count) {
        float rest[GROUP] = { 0 };
        uint8_t packed[GROUP];
        memcpy(rest, from + i, (size_t)(count - i) * sizeof *rest);
        pack_group(rest, inverse, &tables, map, with_sign, packed);
        memcpy(codes + i, packed, (size_t)(count - i));
    }
}

/* Returns the scale: the largest magnitude, unless that is tiny or broken. */
static float pack_scaled(const float *from, float scale, const hr_moment_map *map, uint8_t *codes,
                         int64_t count)
{
    if (scale < FLT_MIN || !(scale <= FLT_MAX)) {
        memset(codes, map->zero, (size_t)count);
        return scale < FLT_MIN ? 0 : NAN;
    }
    if (map->zero > 0) {
        pack_groups(from, vec_set(1 / scale), map, true, codes, count);
    } else {
        pack_groups(from, vec_set(1 / scale), map, false, codes, count);
    }
    return scale;
}

static float pack_codes(const float *from, const hr_moment_map *map, uint8_t *codes, int64_t count)
{
    return pack_scaled(from, largest(from, count), map, codes, count);
}

/* One step after the other: for a block that is not whole. */
static void adamw_codes_apart(const float *gradient, float *master,
                              const hr_coded_moment moments[2], hr_bf16 *weight, int64_t count,
                              const hr_adamw_factors *factors)
{
    float values[2][HR_MOMENT_BLOCK] = { 0 };
    float *v = values[1];
    for (int k = 0; k < 2; k++)
        unpack_codes(moments[k].codes, moments[k].map, *moments[k].scale, values[k], count);
    for (int64_t i = 0; i < HR_MOMENT_BLOCK; i++) v[i] *= v[i];
    adamw(gradient, master, values[0], v, weight, count, factors);
    for (int64_t i = 0; i < count; i += VEC_LANES)
        vec_store_f32(v + i, vec_sqrt(vec_load_f32(v + i, VEC_LANES)), VEC_LANES);
    for (int k = 0; k < 2; k++)
        *moments[k].scale = pack_codes(values[k], moments[k].map, moments[k].codes, count);
}

/* A block between unpacking and packing. */
typedef struct {
    vec scale[2]; /* of the codes that are unpacked */
    float values[2][HR_MOMENT_BLOCK];
} coded_block;

VEC_INLINE void adamw_codes_group(const float *gradient, float *master,
                                  const hr_coded_moment moments[2], hr_bf16 *weight, int64_t i,
                                  const hr_adamw_factors *f, coded_block *block, vec_ints most[2])
{
    const hr_moment_map *maps = hr_moment_maps;
    /* Otherwise the tables are copied to the stack for every block. */
    __asm__("" : "+r"(maps));
    vec m[GROUP / VEC_LANES], v[GROUP / VEC_LANES];
    for (int k = 0; k < 2; k++) vec_prefetch(moments[k].codes + i + AHEAD);
    unpack_group(moments[0].codes + i, &maps[0], block->scale[0], m);
    unpack_group(moments[1].codes + i, &maps[1], block->scale[1], v);
    UNROLL for (int j = 0; j < GROUP / VEC_LANES; j++)
    {
        const int64_t at = i + j * VEC_LANES;
        v[j] = vec_mul(v[j], v[j]);
        const vec root = adamw_values(gradient + at, master + at, &m[j], &v[j],
                                      weight ? weight + at : NULL, f, VEC_LANES);
        vec_store_f32(block->values[0] + at, m[j], VEC_LANES);
        vec_store_f32(block->values[1] + at, root, VEC_LANES);
        most[0] = larger(most[0], m[j]);
        most[1] = larger(most[1], root);
    }
}

/* In one loop, because divisions and roots take place beside the look-ups. */
static void adamw_codes(const float *gradient, float *master, const hr_coded_moment moments[2],
                        hr_bf16 *weight, int64_t count, const hr_adamw_factors *factors)
{
    const hr_adamw_factors f = *factors;
    vec_ints most[2] = { { 0 }, { 0 } }; /* largest magnitudes */
    coded_block block;
    if (count < HR_MOMENT_BLOCK) {
        adamw_codes_apart(gradient, master, moments, weight, count, factors);
        return;
    }
    for (int k = 0; k < 2; k++) block.scale[k] = vec_set(*moments[k].scale);
    for (int64_t i = 0; i < HR_MOMENT_BLOCK; i += GROUP)
        adamw_codes_group(gradient, master, moments, weight, i, &f, &block, most);
    for (int k = 0; k < 2; k++)
        *moments[k].scale = pack_scaled(block.values[k], largest_of_lanes(most[k]), moments[k].map,
                                        moments[k].codes, count);
}

static void unpack_bf16(const hr_bf16 *from, float *to, int64_t count)
{
    int64_t i = 0;
    for (; i + VEC_LANES <= count; i += VEC_LANES) {
        vec_prefetch(from + i + AHEAD);
        vec_store_f32(to + i, vec_load_bf16(from + i, VEC_LANES), VEC_LANES);
    }
    if (i < count) vec_store_f32(to + i, vec_load_bf16(from + i, count - i), count - i);
}

/* Adds 16 random bits below the last place and cuts them off: the bits of a bf16 number. */
VEC_INLINE vec_bits moved(vec value, vec_bits random)
{
    const vec_ints bits = (vec_ints)value;
    const vec_ints nan = (bits & INT32_MAX) > 0x7f800000;
    const vec_ints up = (vec_ints)vec_bits_add((vec_bits)bits, random);
    return vec_bits_shift_right((vec_bits)((up & ~nan) | ((bits | 0x400000) & nan)), 16);
}

/* Elements that are rounded with one draw of random bits. */
enum { DRAWN = 8 * VEC_LANES };

VEC_INLINE void pack_drawn(const float *from, const hr_random_row *row, uint32_t first, hr_bf16 *to,
                           int64_t count)
{
    vec_bits random[8];
    vec_random_halves(row, first, random);
    UNROLL for (int h = 0; h < 8; h++)
    {
        const int64_t at = h * VEC_LANES, left = count - at;
        const int64_t lanes = left < VEC_LANES ? left : VEC_LANES;
        if (left > 0)
            vec_store_u16(to + at, moved(vec_load_f32(from + at, lanes), random[h]), lanes);
    }
}

static void pack_nearest(const float *from, hr_bf16 *to, int64_t count)
{
    int64_t i = 0;
    for (; i + VEC_LANES <= count; i += VEC_LANES)
        vec_store_bf16(to + i, vec_load_f32(from + i, VEC_LANES), VEC_LANES);
    if (i < count) vec_store_bf16(to + i, vec_load_f32(from + i, count - i), count - i);
}

static void pack_bf16(const float *from, const hr_random_row *row, uint32_t first, hr_bf16 *to,
                      int64_t count)
{
    int64_t i = 0;
    if (!row) {
        pack_nearest(from, to, count);
        return;
    }
    for (; i + DRAWN <= count; i += DRAWN)
        pack_drawn(from + i, row, first + (uint32_t)i, to + i, DRAWN);
    if (i < count) pack_drawn(from + i, row, first + (uint32_t)i, to + i, count - i);
}

VEC_INLINE vec joined(const hr_bf16 *weight, const uint16_t *codes, vec_ints tie, int64_t lanes)
{
    const vec_ints upper = (vec_ints)vec_load_bf16(weight, lanes);
    const vec_ints code = (vec_ints)vec_load_bf16(codes, lanes) >> 16; /* with its sign */
    const vec_ints down = code == -HR_RESIDUAL_TIE, up = code == tie;  /* 0 or -1 */
    const vec_ints plain = (code & ~up) | (-HR_RESIDUAL_TIE & up);
    return (vec)(upper + plain + (2 * HR_RESIDUAL_TIE & down));
}

/* Without a tie code no element is an up tie: 2^16 is no code. */
static void join(const hr_bf16 *weight, const uint16_t *codes, uint16_t tie, float *to,
                 int64_t count)
{
    const int32_t code = tie ? (int16_t)tie : 1 << 16;
    const vec_ints all = code - (vec_ints){ 0 };
    int64_t i = 0;
    for (; i + VEC_LANES <= count; i += VEC_LANES)
        vec_store_f32(to + i, joined(weight + i, codes + i, all, VEC_LANES), VEC_LANES);
    if (i < count) vec_store_f32(to + i, joined(weight + i, codes + i, all, count - i), count - i);
}

VEC_INLINE vec_ints parted(const float *from, hr_bf16 *weight, uint16_t *codes, int64_t lanes)
{
    const vec value = vec_load_f32(from, lanes);
    const vec_ints bits = (vec_ints)value;
    vec_store_bf16(weight, value, lanes);
    vec_store_u16(codes, (vec_bits)bits, lanes);
    return (bits & 0x1ffff) == 0x18000;
}

static bool part(const float *from, hr_bf16 *weight, uint16_t *codes, int64_t count)
{
    vec_ints up = { 0 };
    int32_t lanes[VEC_LANES], any = 0;
    int64_t i = 0;
    for (; i + VEC_LANES <= count; i += VEC_LANES)
        up |= parted(from + i, weight + i, codes + i, VEC_LANES);
    if (i < count) up |= parted(from + i, weight + i, codes + i, count - i);
    memcpy(lanes, &up, sizeof lanes);
    for (int64_t l = 0; l < VEC_LANES; l++) any |= lanes[l];
    return any != 0;
}

VEC_INLINE vec joined_bytes(const hr_bf16 *weight, const uint8_t *codes, int64_t lanes)
{
    const vec_lanes upper = (vec_lanes)vec_load_bf16(weight, lanes);
    const vec_lanes code = (vec_lanes)vec_load_u8(codes, lanes);
    return (vec)(upper - (code >> 7 << 16) + (code << 8));
}

static void join_bytes(const hr_bf16 *weight, const uint8_t *codes, float *to, int64_t count)
{
    int64_t i = 0;
    for (; i + VEC_LANES <= count; i += VEC_LANES)
        vec_store_f32(to + i, joined_bytes(weight + i, codes + i, VEC_LANES), VEC_LANES);
    if (i < count) vec_store_f32(to + i, joined_bytes(weight + i, codes + i, count - i), count - i);
}

VEC_INLINE void parted_bytes(const float *from, vec_lanes random, hr_bf16 *weight, uint8_t *codes,
                             int64_t lanes)
{
    const vec_lanes bits = (vec_lanes)vec_load_f32(from, lanes), exponent = bits & 0x7f800000;
    const vec_lanes broken = (vec_lanes)(exponent == 0x7f800000);
    const vec_lanes rounded = (bits + (random & 0xff)) >> 8;
    const vec_lanes quiet = (vec_lanes)((bits & 0x7fffff) != 0) & 0x40;
    const vec_lanes half = (((rounded + 0x80) >> 8) & ~broken) | (((bits >> 16) | quiet) & broken);
    vec_store_u16(weight, (vec_bits)half, lanes);
    vec_store_u8(codes, (vec_bits)(rounded & 0xff & ~broken), lanes);
}

static void part_bytes(const float *from, const hr_random_row *row, uint32_t first, hr_bf16 *weight,
                       uint8_t *codes, int64_t count)
{
    for (int64_t i = 0; i < count; i += DRAWN) {
        vec_bits random[8];
        vec_random_halves(row, first + (uint32_t)i, random);
        UNROLL for (int h = 0; h < 8; h++)
        {
            const int64_t at = i + h * VEC_LANES, left = count - at;
            const int64_t lanes = left < VEC_LANES ? left : VEC_LANES;
            if (left > 0)
                parted_bytes(from + at, (vec_lanes)random[h], weight + at, codes + at, lanes);
        }
    }
}

void FILL(hr_update_kernels *kernels)
{
    *kernels = (hr_update_kernels){ sumsq,      adamw,       sgd,         lion,      unpack_codes,
                                    pack_codes, adamw_codes, unpack_bf16, pack_bf16, join,
                                    part,       join_bytes,  part_bytes };
}
