/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/update_kernels.h - inner loops of the update: flat arrays, one thread. */
#ifndef HR_OPS_UPDATE_KERNELS_H
#define HR_OPS_UPDATE_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bf16.h"
#include "base/random.h"
#include "base/residual.h"
#include "ops/update/update_scratch.h"

enum { HR_SUMSQ_LANES = 16, HR_MOMENT_BLOCK = 256, HR_MOMENT_CODES = 256 };

/* g = scale gradient + pull w;  m = keep1 m + take1 g;  v = keep2 v + take2 g^2
 * w = w - (shrink w + rate m / (debias2 sqrt(v) + eps)) */
typedef struct {
    float scale, pull, keep1, take1, keep2, take2, shrink, rate, debias2, eps;
} hr_adamw_factors;

/* g = scale gradient + pull w;  m = keep m + g;  w = w - rate m */
typedef struct {
    float scale, pull, keep, rate;
} hr_sgd_factors;

/* g = scale gradient;  c = keep1 m + take1 g;  m = keep2 m + take2 g
 * w = w - (shrink w + rate sign(c)) */
typedef struct {
    float scale, keep1, take1, keep2, take2, shrink, rate;
} hr_lion_factors;

/* Writes the sum of squares of each run of HR_UPDATE_RUN_ELEMENTS (the last may be shorter) to
 * `runs`: element i of a run goes to lane i % 16, and the lanes are added in order. A product of
 * two floats is exact in double, so all variants are bit-identical. */
typedef void hr_sumsq_fn(const float *gradient, int64_t count, double *runs);

/* weight may be null. */
typedef void hr_adamw_fn(const float *gradient, float *master, float *m, float *v, hr_bf16 *weight,
                         int64_t count, const hr_adamw_factors *factors);
typedef void hr_sgd_fn(const float *gradient, float *master, float *m, hr_bf16 *weight,
                       int64_t count, const hr_sgd_factors *factors);
typedef void hr_lion_fn(const float *gradient, float *master, float *m, hr_bf16 *weight,
                        int64_t count, const hr_lion_factors *factors);

/* A map of 8-bit codes (moments.h), with what finds most codes without a search.
 *
 * Range i is of magnitudes from 4^(i-16) on, below 4^(i-15). A limit between two decades, or the
 * last one, ends it early: what is above that counts to the next range, and above the last limit
 * to range 0. Adding `ahead` to the bits of a magnitude moves the limit to the end of the range. In
 * the signed map bits are shifted by one place, with the sign below them, because a negative number
 * at a limit is beyond it.
 *
 * In a range, slope x + offset is 2^23 + 4 + 2^15 times the distance from the code of 0, up to
 * `top`: its lowest 23 bits are a number with 15 binary places. */
typedef struct {
    union {
        _Alignas(64) float values[HR_MOMENT_CODES]; /* ascending */
        uint32_t value_bits[HR_MOMENT_CODES];
    };
    _Alignas(64) uint8_t planes[4][HR_MOMENT_CODES]; /* the bytes of the values, lowest first */
    float limits[HR_MOMENT_CODES]; /* the largest number that rounds to this code or a lower one */
    _Alignas(64) int32_t ahead[16];
    float slopes[16], offsets[16], tops[16];
    int32_t zero; /* the code of 0 */
} hr_moment_map;

extern const hr_moment_map hr_moment_maps[2]; /* signed, unsigned */

/* One block of codes, count <= HR_MOMENT_BLOCK. */
typedef void hr_unpack_codes_fn(const uint8_t *codes, const hr_moment_map *map, float scale,
                                float *to, int64_t count);

/* Returns the scale. A NaN or an infinity among the values makes the block NaN. */
typedef float hr_pack_codes_fn(const float *from, const hr_moment_map *map, uint8_t *codes,
                               int64_t count);

/* One block of a moment. */
typedef struct {
    uint8_t *codes;
    float *scale;
    const hr_moment_map *map;
} hr_coded_moment;

/* Unpacks a block of both moments, updates it and packs it again; the codes of the second moment
 * are those of its root. Gives the bits of the functions above, one after the other. */
typedef void hr_adamw_codes_fn(const float *gradient, float *master,
                               const hr_coded_moment moments[2], hr_bf16 *weight, int64_t count,
                               const hr_adamw_factors *factors);

typedef void hr_unpack_bf16_fn(const hr_bf16 *from, float *to, int64_t count);

/* Rounds to nearest even; with `row`, stochastically with its halves from `first` on, a multiple of
 * 32. */
typedef void hr_pack_bf16_fn(const float *from, const hr_random_row *row, uint32_t first,
                             hr_bf16 *to, int64_t count);

/* fp32 numbers from bf16 and their codes (base/residual.h): at most one block.
 *   tie  of the block */
typedef void hr_join_fn(const hr_bf16 *weight, const uint16_t *codes, uint16_t tie, float *to,
                        int64_t count);

/* The inverse, with HR_RESIDUAL_TIE as the code of every tie. Returns whether any is rounded up. */
typedef bool hr_part_fn(const float *from, hr_bf16 *weight, uint16_t *codes, int64_t count);

/* The same with 8 bits; rounds up with the lower 8 bits of the halves of `row` from `first` on, a
 * multiple of 32. */
typedef void hr_join_bytes_fn(const hr_bf16 *weight, const uint8_t *codes, float *to,
                              int64_t count);
typedef void hr_part_bytes_fn(const float *from, const hr_random_row *row, uint32_t first,
                              hr_bf16 *weight, uint8_t *codes, int64_t count);

typedef struct {
    hr_sumsq_fn *sumsq;
    hr_adamw_fn *adamw;
    hr_sgd_fn *sgd;
    hr_lion_fn *lion;
    hr_unpack_codes_fn *unpack_codes;
    hr_pack_codes_fn *pack_codes;
    hr_adamw_codes_fn *adamw_codes;
    hr_unpack_bf16_fn *unpack_bf16;
    hr_pack_bf16_fn *pack_bf16;
    hr_join_fn *join;
    hr_part_fn *part;
    hr_join_bytes_fn *join_bytes;
    hr_part_bytes_fn *part_bytes;
} hr_update_kernels;

void hr_update_kernels_fill(hr_update_kernels *kernels, uint32_t cpu_mask);

/* One function per instruction set, each in its own file. */
void hr_update_fill_ref(hr_update_kernels *kernels);
void hr_update_fill_avx2(hr_update_kernels *kernels);
void hr_update_fill_avx512(hr_update_kernels *kernels);
void hr_update_fill_avx512bf16(hr_update_kernels *kernels);

#endif
