/* SPDX-License-Identifier: Apache-2.0 */
/* pack_open_test.c - a plan that stayed open is packed again, and no other. */
#include "plan/compile.h"
#include "support/storages.h"

static hr_storage again[STORAGES_MAX];

/* A plan of these storages, as far as it is packed, without a program. */
static hr_compiled compiled_of(int32_t count, hr_pack_result packing)
{
    return (hr_compiled){ .plan = { .storages = storages,
                                    .storage_count = count,
                                    .arena_bytes = packing.arena_bytes,
                                    .floor_bytes = packing.floor_bytes },
                          .packing = packing };
}

/* Packed with one stage where a plan has three, so that many are open and soon no more. */
static void a_plan_that_is_open_is_packed_again_and_is_never_larger(void **state)
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
        assert_int_equal(hr_compile_pack_open(&region, &c, NULL), HR_OK);
        check(count, &c.packing);
        assert_int_equal(c.plan.arena_bytes, c.packing.arena_bytes);
        assert_true(c.plan.arena_bytes <= before.arena_bytes);
        assert_true(c.packing.bound_bytes >= before.bound_bytes);
        lower += c.plan.arena_bytes < before.arena_bytes;
        /* as with all the work that a plan is worth */
        const hr_pack_result all = pack(count, HR_COMPILE_PACK_WORK_MOST);
        assert_int_equal(c.plan.arena_bytes, all.arena_bytes);
    }
    printf("%d plans packed again, %d lower\n", open, lower);
    assert_true(lower > 0);
}

/* There is no room to pack in: who packs fails. */
static void what_is_known_or_too_large_is_not_packed_again(void **state)
{
    enum { STORAGES_MOST = 1 << 16 };
    (void)state;
    const int32_t count = make_unreachable();
    const hr_pack_proof proofs[] = { HR_PACK_AT_FLOOR, HR_PACK_PROVEN, HR_PACK_OPEN };
    hr_pack_result packing = pack(count, 0);
    hr_error err;
    for (size_t k = 0; k < sizeof proofs / sizeof *proofs; k++) {
        const bool is_open = proofs[k] == HR_PACK_OPEN;
        packing.proof = proofs[k];
        hr_region none = hr_region_over(memory, 0);
        hr_compiled c = compiled_of(count, packing);
        memcpy(again, storages, sizeof again);
        assert_int_equal(hr_compile_pack_open(&none, &c, &err), is_open ? HR_FAILURE : HR_OK);
        assert_memory_equal(again, storages, sizeof again);
        assert_int_equal(c.plan.arena_bytes, packing.arena_bytes);
        c.plan.storages = calloc(STORAGES_MOST + 1, sizeof *storages);
        c.plan.storage_count = STORAGES_MOST;
        assert_int_equal(hr_compile_pack_open(&none, &c, &err), is_open ? HR_FAILURE : HR_OK);
        c.plan.storage_count = STORAGES_MOST + 1;
        assert_int_equal(hr_compile_pack_open(&none, &c, &err), HR_OK);
        assert_int_equal(c.plan.arena_bytes, packing.arena_bytes);
        free(c.plan.storages);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_that_is_open_is_packed_again_and_is_never_larger),
        cmocka_unit_test(what_is_known_or_too_large_is_not_packed_again),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
