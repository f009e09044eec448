/* SPDX-License-Identifier: Apache-2.0 */
/* support/half.h - IEEE half precision in plain arithmetic: 5 bits of exponent, 10 of fraction. */
#ifndef HR_TESTS_HALF_H
#define HR_TESTS_HALF_H

#include <math.h>
#include <stdint.h>

static inline float half_value(uint16_t half)
{
    const int32_t exponent = half >> 10 & 31, fraction = half & 1023;
    const double size = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    if (exponent == 31) return fraction ? NAN : half >> 15 ? -INFINITY : INFINITY;
    return (float)(half >> 15 ? -size : size);
}

#endif
