/* SPDX-License-Identifier: Apache-2.0 */
/* bf16_test.c - bf16 rounding against its definition in double arithmetic: nearest, ties to
 * even. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bf16.h"

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The value of a finite or infinite pattern, from its fields. Infinity counts as 2^128, the next
 * number after the largest finite one, because rounding compares with that. */
static double value_of(hr_bf16 half)
{
    const int exponent = half >> 7 & 0xff, fraction = half & 0x7f;
    const double size = exponent ? ldexp(1 + fraction / 128.0, exponent - 127)
                                 : ldexp(fraction / 128.0, -126);
    return half >> 15 ? -size : size;
}

static bool is_nan(hr_bf16 half)
{
    return (half & 0x7fff) > 0x7f80;
}

static void every_pattern_converts_to_fp32_and_back_unchanged(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 0x10000; half++) {
        const float value = hr_bf16_to_f32((hr_bf16)half);
        const uint32_t quiet = is_nan((hr_bf16)half) ? 0x40 : 0;
        assert_int_equal(hr_bf16_from_f32(value), half | quiet);
        if ((half & 0x7fff) < 0x7f80) assert_true((double)value == value_of((hr_bf16)half));
    }
}

/* For every bf16 number: the fp32 numbers around it, and around the midpoint to the next one. */
static void rounding_is_to_nearest_with_ties_to_even(void **state)
{
    (void)state;
    static const uint32_t offsets[] = { 0, 1, 0x4000, 0x7fff, 0x8000, 0x8001, 0xc000, 0xffff };
    for (uint32_t half = 0; half < 0x10000; half++) {
        if ((half & 0x7fff) >= 0x7f80) continue;
        for (int i = 0; i < 8; i++) {
            const float value = float_of(half << 16 | offsets[i]);
            const double below = fabs(value - value_of((hr_bf16)half));
            const double above = fabs(value_of((hr_bf16)(half + 1)) - value);
            const bool up = above < below || (above == below && half % 2);
            assert_int_equal(hr_bf16_from_f32(value), half + up);
        }
    }
}

static void infinity_stays_and_a_nan_stays_a_quiet_nan(void **state)
{
    (void)state;
    assert_int_equal(hr_bf16_from_f32(float_of(0x7f800000)), 0x7f80);
    assert_int_equal(hr_bf16_from_f32(float_of(0xff800000)), 0xff80);
    assert_int_equal(hr_bf16_from_f32(float_of(0x7f800001)), 0x7fc0); /* all NaN payload bits are
                                                                       * cut */
    assert_int_equal(hr_bf16_from_f32(float_of(0xffffffff)), 0xffff); /* rounding would wrap
                                                                       * around */
    assert_int_equal(hr_bf16_from_f32(float_of(0x7f7fffff)), 0x7f80); /* largest finite: becomes
                                                                       * infinity */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_converts_to_fp32_and_back_unchanged),
        cmocka_unit_test(rounding_is_to_nearest_with_ties_to_even),
        cmocka_unit_test(infinity_stays_and_a_nan_stays_a_quiet_nan),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
