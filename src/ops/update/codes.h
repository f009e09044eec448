/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/codes.h - what the vector kernels share that find 8-bit codes (update_kernels.h). */
#ifndef HR_OPS_UPDATE_CODES_H
#define HR_OPS_UPDATE_CODES_H

#include "ops/update/update_kernels.h"

/* Limits are rounded, and so is a line: within NEAR places of a limit the distance may be one less
 * or more. */
enum { PLACES = 15, NEAR = 4, BETWEEN = (1 << PLACES) - 2 * NEAR };

/* Codes next to the right ones become the number of limits below x. */
static __attribute__((noinline)) void mend_codes(const float *x, const hr_moment_map *map,
                                                 int32_t count, uint8_t *codes)
{
    for (int32_t i = 0; i < count; i++) {
        uint8_t code = codes[i];
        if (code > 0 && !(x[i] > map->limits[code - 1])) code--;
        if (x[i] > map->limits[code]) code++;
        codes[i] = code;
    }
}

#endif
