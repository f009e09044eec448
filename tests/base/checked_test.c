/* SPDX-License-Identifier: Apache-2.0 */
/* checked_test.c - sums and products that overflow are refused, and nothing is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/checked.h"

static void a_sum_that_fits_is_the_sum(void **state)
{
    (void)state;
    int64_t sum = 0;
    assert_true(hr_checked_add(INT64_MAX - 1, 1, &sum) && sum == INT64_MAX);
    assert_true(hr_checked_add(INT64_MIN, INT64_MAX, &sum) && sum == -1);
}

static void a_sum_that_overflows_leaves_the_result_unchanged(void **state)
{
    (void)state;
    int64_t sum = 7;
    assert_false(hr_checked_add(INT64_MAX, 1, &sum));
    assert_false(hr_checked_add(INT64_MIN, -1, &sum));
    assert_true(sum == 7);
}

static void a_product_that_fits_is_the_product(void **state)
{
    (void)state;
    int64_t product = 0;
    assert_true(hr_checked_mul(INT64_C(1) << 31, INT64_C(1) << 31, &product));
    assert_true(product == INT64_C(1) << 62);
    assert_true(hr_checked_mul(-(INT64_C(1) << 32), INT64_C(1) << 31, &product));
    assert_true(product == INT64_MIN);
    assert_true(hr_checked_mul(INT64_MAX, 0, &product) && product == 0);
}

static void a_product_that_overflows_leaves_the_result_unchanged(void **state)
{
    (void)state;
    int64_t product = 7;
    assert_false(hr_checked_mul(INT64_C(1) << 32, INT64_C(1) << 31, &product));
    assert_false(hr_checked_mul(INT64_MIN, -1, &product));
    assert_true(product == 7);
}

static void rounding_up_gives_the_smallest_multiple_not_below(void **state)
{
    (void)state;
    for (int64_t unit = 1; unit <= 70; unit++)
        for (int64_t value = 0; value < 300; value++) {
            const int64_t rounded = hr_round_up(value, unit);
            assert_true(rounded % unit == 0 && rounded >= value && rounded < value + unit);
        }
}

static void min_and_max_return_the_smaller_and_the_larger(void **state)
{
    (void)state;
    assert_true(hr_min(-1, 1) == -1 && hr_min(1, -1) == -1 && hr_min(2, 2) == 2);
    assert_true(hr_max(-1, 1) == 1 && hr_max(1, -1) == 1 && hr_max(2, 2) == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_that_fits_is_the_sum),
        cmocka_unit_test(a_sum_that_overflows_leaves_the_result_unchanged),
        cmocka_unit_test(a_product_that_fits_is_the_product),
        cmocka_unit_test(a_product_that_overflows_leaves_the_result_unchanged),
        cmocka_unit_test(rounding_up_gives_the_smallest_multiple_not_below),
        cmocka_unit_test(min_and_max_return_the_smaller_and_the_larger),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
