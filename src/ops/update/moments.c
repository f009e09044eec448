/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/moments.c - blocks of stored moments. */
#include "ops/update/moments.h"

enum { BLOCK = HR_MOMENT_BLOCK, ROW = HR_UPDATE_RUN_ELEMENTS };

const hr_moment_map *hr_moment_map_of(bool is_signed)
{
    return &hr_moment_maps[!is_signed];
}

void hr_moment_unpack(const hr_update_kernels *kernels, const hr_moment *moment, int64_t first,
                      int64_t count, float *values)
{
    if (moment->scales)
        kernels->unpack_codes((const uint8_t *)moment->stored + first, moment->map->values,
                              moment->scales[first / BLOCK], values, count);
    else kernels->unpack_bf16((const hr_bf16 *)moment->stored + first, values, count);
}

void hr_moment_pack(const hr_update_kernels *kernels, const hr_moment *moment, int64_t first,
                    int64_t count, const float *values)
{
    if (moment->scales) {
        moment->scales[first / BLOCK] = kernels->pack_codes(
            values, moment->map, (uint8_t *)moment->stored + first, count);
        return;
    }
    const int64_t element = moment->element_first + first;
    const hr_random_row row = hr_random_row_of(moment->stream, 0, (uint32_t)(element / ROW));
    kernels->pack_bf16(values, moment->stochastic ? &row : NULL, (uint32_t)(element % ROW),
                       (hr_bf16 *)moment->stored + first, count);
}
