/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/moments.h - moments of the optimizer that are stored in less than 32 bits, in blocks
 * of elements: unpacked, updated in fp32 and packed again while in the first-level cache.
 *
 *     codes   8 bits: element = values[code] * scale, with scale = the largest magnitude of the
 *             block. packed: the code whose value is nearest to element * (1 / scale), the lower
 *             one of two. A largest magnitude below 2^-126 is stored as zeros. The codes of the
 *             second moment are those of its square root: it has twice as many decades as the map,
 *             and an element far below the largest of its block would become zero, which makes the
 *             next steps of its weight several times too large
 *     bf16    the first moment, and the momentum of sgd and lion: rounded to nearest even. The
 *             second moment: rounded up with the probability of the bits that are lost. With
 *             beta2 = 0.999 its changes are less than half of its last place, and nearest rounding
 *             would keep it from ever falling
 *
 * The dynamic map has seven decades below 1. Decade i, from 10^(i-7) to 10^(i-6), is divided into
 * 2^i equal parts (unsigned: 2^(i+1)), whose centers are values, with both signs if it is signed;
 * the others are 0 and 1.
 *
 * Numerics every instruction set has the same bits: the scale is a maximum, the product is rounded
 *          once, and the code is the number of limits below it.
 * Repeat   the bits that round bf16 are those of (seed, step, parameter, moment, element), so they
 *          do not depend on threads, pieces or resuming.
 * Source   Dettmers et al. 2022, arXiv:2110.02861, section 2.2; maps as bitsandbytes 0.50 has them
 *          (tests/oracles/make_moments.py). */
#ifndef HR_OPS_UPDATE_MOMENTS_H
#define HR_OPS_UPDATE_MOMENTS_H

#include <stdbool.h>

#include "base/random.h"
#include "ops/update/update_kernels.h"

/* A moment of a parameter. */
typedef struct {
    void *stored;
    float *scales;            /* [blocks]; null: bf16 */
    const hr_moment_map *map; /* of codes */
    hr_random_stream stream;  /* of the bits that round bf16 */
    bool second;
    int64_t element_first; /* of `stored` in the parameter */
} hr_moment;

/* The block of codes from element `first` on. */
static inline hr_coded_moment hr_moment_block(const hr_moment *moment, int64_t first)
{
    return (hr_coded_moment){ (uint8_t *)moment->stored + first,
                              moment->scales + first / HR_MOMENT_BLOCK, moment->map };
}

/* The signed map, or the unsigned one. */
const hr_moment_map *hr_moment_map_of(bool is_signed);

/* Elements [first, first + count) of a moment in fp32; count <= HR_MOMENT_BLOCK, and `first` is a
 * multiple of it. */
void hr_moment_unpack(const hr_update_kernels *kernels, const hr_moment *moment, int64_t first,
                      int64_t count, float *values);

/* The inverse. */
void hr_moment_pack(const hr_update_kernels *kernels, const hr_moment *moment, int64_t first,
                    int64_t count, const float *values);

#endif
