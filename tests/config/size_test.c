/* SPDX-License-Identifier: Apache-2.0 */
/* size_test.c - sizes, counts and durations: how they are read and printed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"
#include "config/config.h"

static void sizes_are_read_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = { { "0", 0 },
                 { "1", 1 },
                 { "700MiB", 734003200 },
                 { "700 MiB", 734003200 },
                 { "733MB", 733000000 },
                 { "4GiB", 4294967296 },
                 { "1.5GiB", 1610612736 },
                 { "0.1KiB", 102 },
                 { "12kB", 12000 },
                 { "2TiB", 2199023255552 },
                 { "7B", 7 },
                 { "999999999999999999", 999999999999999999 } };
    static const char *const bad[] = { "",
                                       "-1",
                                       "MiB",
                                       "1.5",
                                       "700M",
                                       "4 Gib",
                                       "1e9",
                                       "0x10",
                                       "1_0",
                                       "1.",
                                       ".5GiB",
                                       " 1",
                                       "1  MiB",
                                       "1MiB ",
                                       "4GiB4",
                                       "1.0000000GiB",
                                       "1000000000000000000" };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t bytes = -1;
        assert_int_equal(hr_bytes_parse(good[i].text, &bytes, NULL), HR_OK);
        assert_int_equal(bytes, good[i].bytes);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t bytes = -1;
        hr_error err;
        assert_int_equal(hr_bytes_parse(bad[i], &bytes, &err), HR_USAGE);
        assert_int_equal(bytes, -1);
        assert_non_null(strstr(err.message, "is not a size: write 700MiB, 733MB, 1.5GiB or plain "
                                            "bytes"));
    }
    int64_t bytes = -1;
    hr_error err;
    assert_int_equal(hr_bytes_parse("8388608TiB", &bytes, &err), HR_USAGE);
    assert_string_equal(err.message, "\"8388608TiB\" is more than 9223372036854775807 bytes");
    assert_int_equal(hr_bytes_parse("8388607.999999TiB", &bytes, &err), HR_OK);
}

static void sizes_are_printed_exactly_with_a_unit_that_suits_them(void **state)
{
    (void)state;
    char text[64];
    assert_string_equal(hr_bytes_print(0, text), "0 bytes");
    assert_string_equal(hr_bytes_print(1, text), "1 byte");
    assert_string_equal(hr_bytes_print(999, text), "999 bytes");
    assert_string_equal(hr_bytes_print(734003200, text), "734,003,200 bytes (700.0 MiB)");
    assert_string_equal(hr_bytes_print(-1000, text), "-1,000 bytes");
    assert_string_equal(hr_bytes_print(5 << 20, text), "5,242,880 bytes (5.0 MiB)");
    assert_string_equal(hr_bytes_print(INT64_C(20) << 30, text), "21,474,836,480 bytes (20.0 GiB)");
    assert_string_equal(hr_bytes_print(INT64_MAX, text),
                        "9,223,372,036,854,775,807 bytes (8,589,934,592.0 GiB)");
    assert_string_equal(hr_bytes_print(INT64_MIN, text),
                        "-9,223,372,036,854,775,808 bytes (-8,589,934,592.0 GiB)");
}

static void a_size_has_one_form_wherever_it_is_printed(void **state)
{
    (void)state;
    char text[HR_COUNT_BYTES];
    const int64_t gib = INT64_C(1) << 30, mib = 1 << 20;
    assert_string_equal(hr_size_print(20 * gib, text), "20.0 GiB");
    assert_string_equal(hr_size_print(10 * gib - 1, text), "10,240.0 MiB");
    assert_string_equal(hr_size_print(mib, text), "1.0 MiB");
    assert_string_equal(hr_size_print(mib - 1, text), "1,024.0 KiB");
    assert_string_equal(hr_size_print(1023, text), "1.0 KiB");
    assert_string_equal(hr_size_print(0, text), "0.0 KiB");
    assert_string_equal(hr_size_print(-mib, text), "-1.0 MiB");
    assert_string_equal(hr_size_print(64, text), "0.1 KiB");
    assert_string_equal(hr_size_print(16, text), "<0.1 KiB");
    assert_string_equal(hr_size_print(INT64_MIN, text), "-8,589,934,592.0 GiB");
    assert_string_equal(hr_count_print(INT64_MIN, text), "-9,223,372,036,854,775,808");
    assert_string_equal(hr_count_print(-100, text), "-100");
    assert_string_equal(hr_count_print(1000, text), "1,000");
}

static void durations_have_the_two_units_that_matter(void **state)
{
    static const struct {
        double seconds;
        const char *text;
    } cases[] = {
        { 0, "0 s" },
        { 0.78521, "785.2 ms" },
        { 3.0911, "3.091 s" },
        { 119.4, "119.4 s" },
        { 119.6, "2 min 0 s" },
        { 754, "12 min 34 s" },
        { 3599.7, "1 h 0 min" },
        { 12000, "3 h 20 min" },
        { 172799, "2 days 0 h" },
        { 1.6e6, "18 days 12 h" },
        { 1.622e9, "18,773 days 4 h" },
        { 1e15, "?" },
        { -1, "?" },
        { NAN, "?" },
    };
    (void)state;
    char text[HR_COUNT_BYTES];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(hr_duration_print(cases[i].seconds, text), cases[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_read_exactly),
        cmocka_unit_test(sizes_are_printed_exactly_with_a_unit_that_suits_them),
        cmocka_unit_test(a_size_has_one_form_wherever_it_is_printed),
        cmocka_unit_test(durations_have_the_two_units_that_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
