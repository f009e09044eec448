/* SPDX-License-Identifier: Apache-2.0 */
/* pack_open_test.c - packing again, with more work, a plan that was not proven optimal. */
#include "plan/compile.h"
#include "support/storages.h"

/* A plan of these storages in a given state of packing, without a program. */
static hr_compiled compiled_of(int32_t count, hr_pack_result packing)
{
    return (hr_compiled){ .plan = { .storages = storages,
                                    .storage_count = count,
                                    .spaces[HR_SPACE_HOST].storage_count = count,
                                    .arena_bytes = packing.arena_bytes,
                                    .floor_bytes = packing.floor_bytes },
                          .packing = packing };
}

/* The first packing has one stage instead of three, so that many plans stay open at first. */
static void a_plan_that_is_packed_again_with_more_work_is_never_larger(void **state)
{
    (void)state;
    int32_t open = 0, lower = 0;
    for (int32_t i = 0; i < 400 && open < 3; i++) {
        const int32_t count = i % 2 ? make_whole_batch((int32_t)draw(4, 24)) : make_random(60);
        const hr_pack_result before = pack(count, STAGE);
        if (before.proof != HR_PACK_OPEN) continue;
        open++;
        hr_compiled c = compiled_of(count, before);
        hr_region region = hr_region_over(memory, hr_pack_scratch_bytes(count));
        assert_int_equal(hr_compile_pack(&region, HR_COMPILE_PACK_WORK_MOST, &c, NULL), HR_OK);
        check(count, &c.packing);
        assert_int_equal(c.plan.arena_bytes, c.packing.arena_bytes);
        assert_true(c.plan.arena_bytes <= before.arena_bytes);
        assert_true(c.packing.bound_bytes >= before.bound_bytes);
        lower += c.plan.arena_bytes < before.arena_bytes;
    }
    printf("%d plans packed again, %d lower\n", open, lower);
    assert_true(lower > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_that_is_packed_again_with_more_work_is_never_larger),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
