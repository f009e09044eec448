/* SPDX-License-Identifier: Apache-2.0 */
/* base/f16.h - IEEE half precision (5 bits of exponent, 10 of fraction) as fp32. */
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

#endif
