/* SPDX-License-Identifier: Apache-2.0 */
/* base/e4m3.h - FP8 with 4 bits of exponent and 3 of fraction, as fp32. There is no Inf; the
 * largest magnitude is NaN. Largest number: 448. Smallest above zero: 2^-9. */
#ifndef HR_BASE_E4M3_H
#define HR_BASE_E4M3_H

#include <stdint.h>
#include <string.h>

enum { HR_E4M3_NAN = 0x7f }; /* without the sign */

/* The same number in fp32, exactly. */
static inline float hr_e4m3_to_f32(uint8_t code)
{
    const uint32_t rest = code & 0x7f;
    const uint32_t bits = rest == HR_E4M3_NAN ? 0x7fc00000 : (rest << 20) + (120u << 23);
    float value = (float)rest * 0x1p-9f; /* subnormal */
    if (rest >= 8) memcpy(&value, &bits, sizeof value);
    return code & 0x80 ? -value : value;
}

#endif
