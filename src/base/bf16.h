/* SPDX-License-Identifier: Apache-2.0 */
/* base/bf16.h - bfloat16: the upper half of a float, with 8 bits of exponent and 7 of fraction. */
#ifndef HR_BASE_BF16_H
#define HR_BASE_BF16_H

#include <stdint.h>
#include <string.h>

typedef uint16_t hr_bf16;

static inline float hr_bf16_to_f32(hr_bf16 half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounds to nearest, ties to even. A NaN stays a (quiet) NaN. */
static inline hr_bf16 hr_bf16_from_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (hr_bf16)(bits >> 16 | 0x40u);
    return (hr_bf16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#endif
