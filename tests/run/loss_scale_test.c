/* SPDX-License-Identifier: Apache-2.0 */
/* loss_scale_test.c - the loss scale over steps with and without overflows, up to its limits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/loss_scale.h"

static void count(hr_loss_scale *scale, bool overflowed, int32_t steps)
{
    for (int32_t i = 0; i < steps; i++) hr_loss_scale_count(scale, overflowed);
}

static void good_steps_double_and_overflows_halve(void **state)
{
    (void)state;
    hr_config config;
    hr_loss_scale scale = { 0 };
    hr_config_default(&config);
    config.train.dtype = HR_FORMAT_FP16;
    assert_true(hr_loss_scale_of(&config, &scale) == 65536);
    count(&scale, false, 1999);
    assert_true(hr_loss_scale_of(&config, &scale) == 65536);
    count(&scale, false, 1);
    assert_true(hr_loss_scale_of(&config, &scale) == 131072);
    count(&scale, false, 1999);
    count(&scale, true, 2); /* the steps before it no longer count */
    assert_true(hr_loss_scale_of(&config, &scale) == 32768 && scale.overflows == 2);
    count(&scale, false, 1999);
    assert_true(hr_loss_scale_of(&config, &scale) == 32768 && scale.overflows == 0);
    count(&scale, false, 1 + 40 * 2000);
    assert_true(hr_loss_scale_of(&config, &scale) == 0x1p32);
}

static void other_formats_have_no_scale(void **state)
{
    (void)state;
    hr_config config;
    hr_loss_scale scale = { .factor = 1024, .good_steps = 7 }; /* of a run that was fp16 */
    hr_config_default(&config);
    assert_true(hr_loss_scale_of(&config, &scale) == 1);
    count(&scale, false, 2000);
    assert_true(scale.factor == 0 && scale.good_steps == 0);
    assert_false(hr_loss_scale_overflows(&scale, 1, INFINITY));
}

static void only_a_broken_gradient_is_an_overflow(void **state)
{
    (void)state;
    const hr_loss_scale scale = { .factor = 2 };
    assert_true(hr_loss_scale_overflows(&scale, 1, INFINITY));
    assert_true(hr_loss_scale_overflows(&scale, 1, NAN));
    assert_false(hr_loss_scale_overflows(&scale, 1, 1));
    assert_false(hr_loss_scale_overflows(&scale, NAN, NAN));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_steps_double_and_overflows_halve),
        cmocka_unit_test(other_formats_have_no_scale),
        cmocka_unit_test(only_a_broken_gradient_is_an_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
