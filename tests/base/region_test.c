/* SPDX-License-Identifier: Apache-2.0 */
/* region_test.c - a region allocates from its start, never past its end, and counts the bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/region.h"

enum { BYTES = 1024 };

static _Alignas(64) uint8_t memory[BYTES];

static void blocks_are_zeroed_aligned_and_disjoint(void **state)
{
    (void)state;
    memset(memory, 0xa5, sizeof memory);
    hr_region region = hr_region_over(memory, BYTES);
    const uint8_t *first = hr_region_take(&region, 3, 7);
    const uint8_t *second = hr_region_take(&region, 65, 1);
    assert_ptr_equal(first, memory);
    assert_ptr_equal(second, memory + 64);
    for (int i = 0; i < 21; i++) assert_int_equal(first[i], 0);
    for (int i = 0; i < 65; i++) assert_int_equal(second[i], 0);
    assert_int_equal(first[21], 0xa5);
    assert_int_equal(second[65], 0xa5);
    assert_int_equal(region.used, 64 + 65);
}

static void the_last_byte_can_be_allocated_and_no_more(void **state)
{
    (void)state;
    hr_region region = hr_region_over(memory, BYTES);
    assert_null(hr_region_take(&region, BYTES + 1, 1));
    region.used = 0;
    assert_non_null(hr_region_take(&region, BYTES, 1));
    assert_null(hr_region_take(&region, 1, 1));
    assert_int_equal(region.used, BYTES);
}

static void a_region_with_an_unaligned_end_is_not_overrun(void **state)
{
    (void)state;
    hr_region region = hr_region_over(memory, 100);
    assert_non_null(hr_region_take(&region, 65, 1));
    assert_null(hr_region_take(&region, 1, 1)); /* would start at 128 */
    assert_int_equal(region.used_most, 65);
}

static void counts_and_sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    hr_region region = hr_region_over(memory, BYTES);
    assert_null(hr_region_take(&region, INT64_C(1) << 32, INT64_C(1) << 32));
    assert_null(hr_region_take(&region, INT64_MAX, 1));
    assert_null(hr_region_take(&region, -1, 8));
    assert_null(hr_region_take(&region, 8, -1));
    assert_int_equal(region.used_most, 0);
    region.used = 0;
    assert_non_null(hr_region_take(&region, 1, 1));
    assert_null(hr_region_take(&region, INT64_MAX, 1)); /* 64 + INT64_MAX */
}

static void after_a_failed_allocation_all_others_fail(void **state)
{
    (void)state;
    hr_region region = hr_region_over(memory, BYTES);
    assert_null(hr_region_take(&region, BYTES + 1, 1));
    assert_null(hr_region_take(&region, 1, 1));
    assert_null(hr_region_take_raw(&region, 1, 1));
    region.used = 0;
    assert_non_null(hr_region_take(&region, 1, 1));
}

static void the_high_water_mark_includes_freed_blocks(void **state)
{
    (void)state;
    hr_region region = hr_region_over(memory, BYTES);
    hr_region_take(&region, 100, 1);
    const int64_t before = region.used;
    hr_region_take(&region, 200, 1);
    region.used = before;
    assert_int_equal(region.used_most, 128 + 200);
    assert_ptr_equal(hr_region_take(&region, 1, 1), memory + 128);
    assert_int_equal(region.used_most, 128 + 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_zeroed_aligned_and_disjoint),
        cmocka_unit_test(the_last_byte_can_be_allocated_and_no_more),
        cmocka_unit_test(a_region_with_an_unaligned_end_is_not_overrun),
        cmocka_unit_test(counts_and_sizes_that_overflow_are_refused),
        cmocka_unit_test(after_a_failed_allocation_all_others_fail),
        cmocka_unit_test(the_high_water_mark_includes_freed_blocks),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
