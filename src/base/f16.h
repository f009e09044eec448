/* SPDX-License-Identifier: Apache-2.0 */
/* base/f16.h - IEEE half precision (5 bits of exponent, 10 of fraction) as fp32, and back. */
#ifndef HR_BASE_F16_H
#define HR_BASE_F16_H

#include <stdint.h>
#include <string.h>

/* The bits of the same number in fp32. Exact, also for subnormal numbers and in threads that flush
 * those of fp32 to zero: the product with 2^-24 is a normal number. */
static inline uint32_t hr_f16_to_f32_bits(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
    const float small = (float)rest * 0x1p-24f;
    uint32_t bits;
    memcpy(&bits, &small, sizeof bits);
    if (rest >= 0x400) bits = (rest << 13) + (112u << 23);
    if (rest >= 0x7c00) bits = rest << 13 | 0x7f800000;
    return sign | bits;
}

static inline float hr_f16_to_f32(uint16_t half)
{
    const uint32_t bits = hr_f16_to_f32_bits(half);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

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

/* Rounds to nearest even: from 65,520 on to infinity, and a NaN stays one. The bits of
 * vcvtps2ph. */
static inline uint16_t hr_f16_from_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (size >> 13 & 0x3ff));
    if (size >= 0x477ff000) return (uint16_t)(sign | 0x7c00);
    return (uint16_t)(sign | hr_narrow_magnitude(size, 10, -14));
}

#endif
