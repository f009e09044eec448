/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/moments.c - blocks of stored moments. */
#include "ops/update/moments.h"

#include <math.h>

enum { BLOCK = HR_MOMENT_BLOCK, ROW = HR_UPDATE_RUN_ELEMENTS, LANES = 16 };

const hr_moment_map *hr_moment_map_of(bool is_signed)
{
    return &hr_moment_maps[!is_signed];
}

/* In both, inner loops have 16 lanes, which compilers turn into vectors. */
static void take_squares(float *values, int64_t count)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int64_t l = 0; l < LANES; l++) values[i + l] *= values[i + l];
    for (; i < count; i++) values[i] *= values[i];
}

static void take_roots(const float *values, float *roots, int64_t count)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int64_t l = 0; l < LANES; l++) roots[i + l] = sqrtf(values[i + l]);
    for (; i < count; i++) roots[i] = sqrtf(values[i]);
}

void hr_moment_unpack(const hr_update_kernels *kernels, const hr_moment *moment, int64_t first,
                      int64_t count, float *values)
{
    if (!moment->scales) {
        kernels->unpack_bf16((const hr_bf16 *)moment->stored + first, values, count);
        return;
    }
    kernels->unpack_codes((const uint8_t *)moment->stored + first, moment->map,
                          moment->scales[first / BLOCK], values, count);
    if (moment->second) take_squares(values, count);
}

void hr_moment_pack(const hr_update_kernels *kernels, const hr_moment *moment, int64_t first,
                    int64_t count, const float *values)
{
    if (moment->scales) {
        float roots[BLOCK];
        if (moment->second) take_roots(values, roots, count);
        if (moment->second) values = roots;
        moment->scales[first / BLOCK] = kernels->pack_codes(
            values, moment->map, (uint8_t *)moment->stored + first, count);
        return;
    }
    const int64_t element = moment->element_first + first;
    const hr_random_row row = hr_random_row_of(moment->stream, 0, (uint32_t)(element / ROW));
    kernels->pack_bf16(values, moment->second ? &row : NULL, (uint32_t)(element % ROW),
                       (hr_bf16 *)moment->stored + first, count);
}
