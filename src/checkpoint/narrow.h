/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/narrow.h - fp32 to F16 and F8_E4M3, rounded to nearest, ties to even. */
#ifndef HR_CHECKPOINT_NARROW_H
#define HR_CHECKPOINT_NARROW_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/f16.h"

/* False if the result would be infinite. */
static inline bool hr_narrow_to_f16(float value, uint16_t *half)
{
    *half = hr_f16_from_f32(value);
    return (*half & 0x7c00) != 0x7c00;
}

/* Magnitudes above 448, the largest number of the format, become 448. */
static inline uint8_t hr_e4m3_from_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t most = 0x43e00000, size = bits & 0x7fffffff;
    return (uint8_t)((bits >> 24 & 0x80) | hr_narrow_magnitude(size < most ? size : most, 3, -6));
}

#endif
