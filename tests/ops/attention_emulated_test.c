/* SPDX-License-Identifier: Apache-2.0 */
/* Attention with emulated vdpbf16ps and AMX tiles, on any machine with AVX-512. */
#include "attention_cases.h"
#include "require.h"

#ifndef HR_COUNT
#define HR_COUNT 1
#endif

static const uint64_t seed = 20241122;
static const char *const names[] = { "avx512bf16", "amx" };

static void emulated_rungs_agree_with_the_reference(void **state)
{
    static const int64_t lengths[] = { 1, 7, 33, 64, 130 };
    static const int32_t widths[] = { 1, 16, 24, 80, 256 };
    case_random random = { .seed = seed };
    (void)state;
    hr_test_require("avx512");
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int round = 0; round < HR_COUNT; round++)
        for (int i = 0; i < 5; i++)
            for (int j = 0; j < 5; j++) {
                const uint32_t masks[] = { (uint32_t)hr_cpu_mask_of(names[0]),
                                           (uint32_t)hr_cpu_mask_of(names[1]) };
                case_check(case_around(&random, lengths[i], widths[j]), masks, 2, true, random);
            }
}

static void emulated_rungs_compute_every_pattern(void **state)
{
    case_random random = { .seed = seed + 1 };
    (void)state;
    hr_test_require("avx512");
    for (int kind = 0; kind < 4; kind++) {
        const uint32_t masks[] = { (uint32_t)hr_cpu_mask_of(names[0]),
                                   (uint32_t)hr_cpu_mask_of(names[1]) };
        attention_case c = case_of(300, 1, 1, 16, true, 0);
        c.attr.mask = (hr_attention_mask){ kind, 64, 1, 3 };
        c.attr.dropout = kind % 2 ? 0.5f : 0;
        case_check(c, masks, 2, true, random);
    }
}

static void emulated_rungs_compute_sliding_windows_of_any_length(void **state)
{
    case_random random = { .seed = seed + 3 };
    (void)state;
    hr_test_require("avx512");
    for (int i = 0; i < CASE_WINDOWS; i++) {
        const uint32_t masks[] = { (uint32_t)hr_cpu_mask_of(names[0]),
                                   (uint32_t)hr_cpu_mask_of(names[1]) };
        attention_case c = case_of(300, 2, 1, 16, false, 0);
        c.attr.mask = (hr_attention_mask){ HR_PATTERN_SLIDING, 64, case_windows[i], 1 };
        c.attr.dropout = i % 2 ? 0.5f : 0;
        case_check(c, masks, 2, true, random);
    }
}

static void a_shorter_sequence_has_the_bits_of_a_longer_one(void **state)
{
    (void)state;
    hr_test_require("avx512");
    for (int i = 0; i < 2; i++) {
        const uint32_t mask = (uint32_t)hr_cpu_mask_of(names[i]);
        attention_case c = case_of(90, 2, 1, 24, false, 0), early;
        attention_tensors whole, ended;
        c.dtype = HR_BF16;
        early = c;
        early.rows = 51;
        case_open(&c, &whole, (case_random){ .seed = seed + 2 });
        case_open(&early, &ended, (case_random){ .seed = seed + 2 });
        for (int tensor = 0; tensor < CASE_TENSORS; tensor++)
            if (tensor <= CASE_V || tensor == CASE_GRAD_O)
                memcpy(ended.at[tensor], whole.at[tensor], (size_t)ended.count[tensor] * 2);
        case_run(&c, &whole, mask, 1);
        case_run(&early, &ended, mask, 3);
        for (int tensor = CASE_O; tensor <= CASE_DQ; tensor++)
            assert_memory_equal(ended.at[tensor], whole.at[tensor],
                                (size_t)(ended.count[tensor] * case_bytes(&c, tensor)));
        case_close(&whole);
        case_close(&ended);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emulated_rungs_agree_with_the_reference),
        cmocka_unit_test(emulated_rungs_compute_every_pattern),
        cmocka_unit_test(emulated_rungs_compute_sliding_windows_of_any_length),
        cmocka_unit_test(a_shorter_sequence_has_the_bits_of_a_longer_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
