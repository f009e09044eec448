/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/narrow.h - fp32 to F16 and F8_E4M3, rounded to nearest, ties to even. */
#ifndef HR_CHECKPOINT_NARROW_H
#define HR_CHECKPOINT_NARROW_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The code of a magnitude: `fraction_bits` bits of fraction below an exponent whose value 1 means
 * 2^least. Smaller magnitudes are subnormal. */
static inline uint32_t hr_narrow_magnitude(uint32_t magnitude, int32_t fraction_bits, int32_t least)
{
    const int32_t dropped = 23 - fraction_bits;
    const uint32_t exponent = (uint32_t)(127 + least) << 23;
    if (magnitude >= exponent)
        return ((magnitude + (1u << (dropped - 1)) - 1 + (magnitude >> dropped & 1)) -
                ((uint32_t)(126 + least) << 23)) >>
               dropped;
    /* Adding 2^23 to the number of steps rounds it to an integer. */
    const uint32_t steps_bits = (uint32_t)(127 + fraction_bits - least) << 23;
    float size, steps;
    memcpy(&size, &magnitude, sizeof size);
    memcpy(&steps, &steps_bits, sizeof steps);
    const float rounded = size * steps + 0x1p23f;
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    return bits & 0x7fffff;
}

/* False if the result would be infinite. */
static inline bool hr_f16_from_f32(float value, uint16_t *half)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t size = bits & 0x7fffffff;
    if (size >= 0x477ff000) return false; /* 65520 rounds to 65536, above the largest f16 */
    *half = (uint16_t)((bits >> 16 & 0x8000) | hr_narrow_magnitude(size, 10, -14));
    return true;
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
