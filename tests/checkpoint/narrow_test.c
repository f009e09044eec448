/* SPDX-License-Identifier: Apache-2.0 */
/* narrow_test.c - every number of F16 and F8_E4M3, the middle of every two, and the floats beside
 * them, rounded to nearest with ties to even. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "checkpoint/narrow.h"
#include "support/e4m3.h"

static float f16_value(uint16_t half)
{
    const int32_t exponent = half >> 10 & 31, fraction = half & 1023;
    const double size = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return (float)(half >> 15 ? -size : size);
}

static void is_f16(float value, uint32_t expected)
{
    for (uint32_t sign = 0; sign < 2; sign++) {
        uint16_t half = 7;
        assert_true(hr_narrow_to_f16(sign ? -value : value, &half));
        assert_int_equal(half, expected | sign << 15);
    }
}

static void f16_is_the_nearest(void **state)
{
    (void)state;
    uint16_t half;
    for (uint32_t i = 0; i < 0x7c00; i++) {
        const float value = f16_value((uint16_t)i);
        is_f16(value, i);
        const float middle = i < 0x7bff ? (value + f16_value((uint16_t)(i + 1))) / 2 : 65520;
        is_f16(nextafterf(middle, 0), i);
        if (i == 0x7bff) continue;
        is_f16(middle, i + i % 2);
        is_f16(nextafterf(middle, INFINITY), i + 1);
    }
    assert_false(hr_narrow_to_f16(65520, &half));
    assert_false(hr_narrow_to_f16(-65520, &half));
    is_f16(1e-40f, 0);
}

static void is_e4m3(float value, uint32_t expected)
{
    assert_int_equal(hr_e4m3_from_f32(value), expected);
    assert_int_equal(hr_e4m3_from_f32(-value), expected | 0x80);
}

static void e4m3_is_the_nearest_and_saturates(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 0x7f; i++) {
        const float value = e4m3_value((uint8_t)i);
        is_e4m3(value, i);
        if (i == 0x7e) continue;
        const float middle = (value + e4m3_value((uint8_t)(i + 1))) / 2;
        is_e4m3(nextafterf(middle, 0), i);
        is_e4m3(middle, i + i % 2);
        is_e4m3(nextafterf(middle, INFINITY), i + 1);
    }
    is_e4m3(449, 0x7e);
    is_e4m3(1e30f, 0x7e);
    is_e4m3(1e-40f, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f16_is_the_nearest),
        cmocka_unit_test(e4m3_is_the_nearest_and_saturates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
