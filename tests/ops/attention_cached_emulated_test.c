/* SPDX-License-Identifier: Apache-2.0 */
/* Attention over a KV cache with emulated vdpbf16ps and AMX tiles. */
#include "attention_cached_cases.h"
#include "require.h"

static void pieces_have_the_bits_of_the_whole_sequence_on_emulated_rungs(void **state)
{
    (void)state;
    hr_test_require("avx512");
    const uint32_t masks[] = { (uint32_t)hr_cpu_mask_of("avx512bf16"),
                               (uint32_t)hr_cpu_mask_of("amx") };
    cached_check_all(masks, 2, true, (case_random){ .seed = 20261122 });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_have_the_bits_of_the_whole_sequence_on_emulated_rungs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
