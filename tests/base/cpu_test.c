/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_test.c - kernel rungs: names, masks, and the effect of a missing rung. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"

static const char *const names[] = { "ref", "avx2", "avx512", "avx512bf16", "amx" };

static void a_rung_name_and_its_mask_convert_both_ways(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        const int64_t mask = hr_cpu_mask_of(names[i]);
        assert_true(mask >= 0);
        assert_string_equal(hr_cpu_rung_name((uint32_t)mask), names[i]);
        assert_int_equal(hr_cpu_ladder((uint32_t)mask), mask);
    }
}

static void a_higher_rung_includes_every_bit_of_a_lower_one(void **state)
{
    (void)state;
    for (int i = 1; i < 5; i++) {
        const int64_t low = hr_cpu_mask_of(names[i - 1]), high = hr_cpu_mask_of(names[i]);
        assert_true((low & high) == low && low != high);
    }
}

static void an_unknown_rung_has_no_mask(void **state)
{
    (void)state;
    assert_true(hr_cpu_mask_of("avx") == -1);
    assert_true(hr_cpu_mask_of("AVX2") == -1);
    assert_true(hr_cpu_mask_of("") == -1);
}

static void a_missing_rung_disables_the_rungs_above_it(void **state)
{
    (void)state;
    assert_int_equal(hr_cpu_ladder(HR_CPU_AVX512 | HR_CPU_AVX512BF16 | HR_CPU_AMX), 0);
    assert_int_equal(hr_cpu_ladder(HR_CPU_AVX2 | HR_CPU_AVX512BF16 | HR_CPU_AMX), HR_CPU_AVX2);
    const uint32_t no_pairs = HR_CPU_AVX2 | HR_CPU_AVX512;
    assert_int_equal(hr_cpu_ladder(no_pairs | HR_CPU_AMX), no_pairs);
    assert_string_equal(hr_cpu_rung_name(hr_cpu_ladder(no_pairs | HR_CPU_AMX)), "avx512");
}

static void the_detected_mask_has_no_missing_rung_and_is_stable(void **state)
{
    (void)state;
    const uint32_t mask = hr_cpu_detect();
    assert_int_equal(hr_cpu_ladder(mask), mask);
    assert_int_equal(hr_cpu_detect(), mask);
    assert_int_equal(*hr_cpu_lacks() == 0, mask & HR_CPU_AVX2);
    print_message("this machine: %s\n", hr_cpu_rung_name(mask));
}

static void a_missing_rung_is_refused_with_the_option_that_named_it(void **state)
{
    (void)state;
    hr_error err;
    uint32_t mask = 7;
    assert_int_equal(hr_cpu_choose("train.kernels", "ref", hr_cpu_detect(), &mask, &err), HR_OK);
    assert_int_equal(mask, 0);
    assert_int_equal(hr_cpu_choose("train.kernels", "auto", hr_cpu_detect(), &mask, &err), HR_OK);
    assert_int_equal(mask, hr_cpu_detect());
    assert_int_equal(hr_cpu_choose("--kernels", NULL, hr_cpu_detect(), &mask, &err), HR_OK);
    assert_int_equal(mask, hr_cpu_detect());
    static const char *const typed[] = { "train.kernels", "--kernels" };
    for (int32_t i = 0; i < 2; i++) {
        char sentence[64];
        snprintf(sentence, sizeof sentence, "%s: this CPU has no mmx", typed[i]);
        assert_int_equal(hr_cpu_choose(typed[i], "mmx", hr_cpu_detect(), &mask, &err), HR_USAGE);
        assert_int_equal(strncmp(err.message, sentence, strlen(sentence)), 0);
        assert_int_equal(mask, hr_cpu_detect());
    }
}

static void denormals_are_zero_after_flush_is_set(void **state)
{
    (void)state;
    volatile float small = 0x1p-100f, smaller = 0x1p-130f;
    assert_true(small * 0x1p-30f != 0 && smaller * 0x1p30f != 0);
    hr_cpu_flush_denormals();
    assert_true(small * 0x1p-30f == 0 && smaller * 0x1p30f == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rung_name_and_its_mask_convert_both_ways),
        cmocka_unit_test(a_higher_rung_includes_every_bit_of_a_lower_one),
        cmocka_unit_test(an_unknown_rung_has_no_mask),
        cmocka_unit_test(a_missing_rung_disables_the_rungs_above_it),
        cmocka_unit_test(the_detected_mask_has_no_missing_rung_and_is_stable),
        cmocka_unit_test(a_missing_rung_is_refused_with_the_option_that_named_it),
        cmocka_unit_test(denormals_are_zero_after_flush_is_set),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
