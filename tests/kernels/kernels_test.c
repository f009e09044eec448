/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_test.c - every variant of tests/kernels/table.h against the reference: odd sizes, both
 * dtypes, one to three threads, arrays that end at an inaccessible page, poisoned outputs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/table.h"
#include "require.h"

enum { SEED = 20261124 };

#ifdef HR_EMULATE
static const char *const rungs[] = { "avx512bf16", "amx" };
#else
static const char *const rungs[] = { "avx2", "avx512", "avx512bf16", "amx" };
#endif
enum { RUNGS = sizeof rungs / sizeof *rungs };

/* Tails in every dimension, one element, no rows, more than one block of a reduction. */
static const kernel_sizes odd_sizes[] = {
    { 1, 1, 1 },    { 0, 5, 7 },    { 13, 3, 17 },    { 5, 16, 16 },
    { 12, 64, 32 }, { 25, 33, 48 }, { 7, 700, 31 },   { 3, 20, 530 },
    { 26, 530, 4 }, { 70, 31, 1 },  { 131, 17, 100 }, { 64, 128, 64 },
};

enum { SIZES = sizeof odd_sizes / sizeof *odd_sizes };

/* Returns how many rungs were compared. The draw of a case depends on its number alone, so that
 * machines with other rungs compare equal numbers. */
static int64_t compare(const kernel_entry *entry, kernel_sizes sizes, hr_dtype dtype,
                       const bool here[RUNGS], int64_t number)
{
    kernel_case c;
    int64_t compared = 0;
    kernel_open(&c, entry, sizes, dtype, false, SEED + (uint64_t)number);
    for (int32_t rung = 0; rung < RUNGS; rung++) {
        const uint32_t mask = (uint32_t)hr_cpu_mask_of(rungs[rung]);
        hr_kernels kernels;
        char why[KERNEL_TEXT_BYTES];
        if (!here[rung]) continue;
        hr_kernels_fill(&kernels, mask);
        if (!kernel_agrees(&c, &kernels, mask, 1 + (int32_t)((number + rung) % 3), why))
            fail_msg("%s, %s, %s, sizes %d %d %d: %s", entry->name, hr_dtype_name(dtype),
                     rungs[rung], (int)sizes.rows, (int)sizes.a, (int)sizes.b, why);
        compared++;
    }
    kernel_close(&c);
    return compared;
}

static void every_variant_agrees_with_the_reference(void **state)
{
    bool here[RUNGS];
    int64_t compared = 0, number = 0;
    (void)state;
    for (int32_t rung = 0; rung < RUNGS; rung++) here[rung] = hr_test_has(rungs[rung]);
    print_message("seed %d\n", SEED);
    for (int32_t e = 0; e < KERNEL_ENTRIES; e++)
        for (int32_t dtype = HR_F32; dtype <= (kernel_table[e].fp32_only ? HR_F32 : HR_F16);
             dtype++)
            for (int32_t s = 0; s < SIZES; s++)
                compared += compare(&kernel_table[e], odd_sizes[s], (hr_dtype)dtype, here,
                                    number++);
    print_message("%d operations, %lld comparisons\n", KERNEL_ENTRIES, (long long)compared);
    if (!compared) hr_test_skip("avx512", "this machine has none of the rungs");
}

/* Checks the comparison itself: one wrong element is found in every output. */
static void a_wrong_element_is_found_in_every_output(void **state)
{
    (void)state;
    for (int32_t e = 0; e < KERNEL_ENTRIES; e++) {
        kernel_case c;
        kernel_open(&c, &kernel_table[e], (kernel_sizes){ 13, 16, 32 }, HR_F32, false, SEED);
        for (int32_t i = 0; i < c.count; i++) {
            kernel_operand *o = &c.operands[i];
            char why[KERNEL_TEXT_BYTES];
            if (!o->output) continue;
            memcpy(o->at, o->expected, (size_t)o->bytes);
            assert_true(kernel_operand_agrees(o, why));
            const double was = kernel_get(o->at, o->count - 1, o->dtype);
            const double change = o->dtype == HR_U8 ? 2 : o->bound.norm ? 1 : 0.1;
            kernel_set(o->at, o->count - 1, o->dtype, was + change);
            if (kernel_operand_agrees(o, why)) fail_msg("%s: %s", kernel_table[e].name, o->name);
            kernel_set(o->at, o->count - 1, o->dtype, NAN);
            if (o->dtype == HR_I32 || o->dtype == HR_U8) continue;
            assert_false(kernel_operand_agrees(o, why));
        }
        kernel_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_variant_agrees_with_the_reference),
        cmocka_unit_test(a_wrong_element_is_found_in_every_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
