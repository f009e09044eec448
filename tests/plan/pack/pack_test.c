/* SPDX-License-Identifier: Apache-2.0 */
/* pack_test.c - packing: no overlaps, never below the floor, at the floor if it is reachable. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/compile.h"
#include "support/storages.h"

static hr_storage again[STORAGES_MAX];

static void print_counts(const char *what, const int32_t counts[3], int32_t hard)
{
    const int32_t all = counts[0] + counts[1] + counts[2];
    printf("%s: %d of %d at the floor (%.1f %%), %d above with proof, %d open; %d searched\n", what,
           counts[HR_PACK_AT_FLOOR], all, 100.0 * counts[HR_PACK_AT_FLOOR] / all,
           counts[HR_PACK_PROVEN], counts[HR_PACK_OPEN], hard);
}

static void random_storages_never_overlap(void **state)
{
    (void)state;
    int32_t counts[3] = { 0 }, hard = 0;
    for (int32_t i = 0; i < 1200 * HR_COUNT; i++) {
        const int32_t count = make_random(60);
        const hr_pack_result result = pack(count, HR_COMPILE_PACK_WORK / 4);
        check(count, &result);
        counts[result.proof]++;
        hard += result.hard_count > 0;
    }
    print_counts("random lives", counts, hard);
    assert_true(counts[HR_PACK_OPEN] * 200 <= 1200 * HR_COUNT);
}

static void training_steps_pack_at_their_floor(void **state)
{
    (void)state;
    int32_t counts[3] = { 0 }, hard = 0;
    for (int32_t i = 0; i < 200 * HR_COUNT; i++) {
        const int32_t count = make_training((int32_t)draw(1, 12), (int32_t)draw(1, 8));
        const hr_pack_result result = pack(count, HR_COMPILE_PACK_WORK);
        check(count, &result);
        counts[result.proof]++;
        hard += result.hard_count > 0;
    }
    print_counts("training steps", counts, hard);
    assert_true(counts[HR_PACK_OPEN] * 200 <= 200 * HR_COUNT);
}

/* First by orders only, then with repair and search as for a plan, then again as for open plans. */
static void two_opposite_stacks_pack_at_their_floor(void **state)
{
    (void)state;
    int32_t alone[3] = { 0 }, first[3] = { 0 }, counts[3] = { 0 }, hard = 0;
    for (int32_t i = 0; i < 100 * HR_COUNT; i++) {
        const int32_t count = make_whole_batch((int32_t)draw(4, 24));
        hr_pack_result result = pack(count, 0);
        check(count, &result);
        alone[result.proof]++;
        assert_int_equal(result.nodes, 0);
        result = pack(count, HR_COMPILE_PACK_WORK);
        first[result.proof]++;
        hard += result.hard_count > 0;
        if (result.proof == HR_PACK_OPEN) result = pack(count, HR_COMPILE_PACK_WORK_MOST);
        check(count, &result);
        counts[result.proof]++;
    }
    print_counts("whole batches, orders only", alone, 0);
    print_counts("whole batches, as a plan at first", first, hard);
    print_counts("whole batches, open ones again", counts, first[HR_PACK_OPEN]);
    assert_true(alone[HR_PACK_AT_FLOOR] * 100 >= 70 * 100 * HR_COUNT);
    assert_true(first[HR_PACK_OPEN] * 50 <= 100 * HR_COUNT);
    assert_true(counts[HR_PACK_OPEN] * 200 <= 100 * HR_COUNT);
}

/* A packing keeps the best placement so far, so a plan may be packed again with more work. */
static void more_work_never_gives_a_larger_arena(void **state)
{
    (void)state;
    static const int64_t works[] = { STAGE, 3 * STAGE, 5 * STAGE, 6 * STAGE, 21 * STAGE };
    int32_t lower = 0, open = 0;
    for (int32_t i = 0; i < 120 * HR_COUNT; i++) {
        const int32_t count = i % 2 ? make_crowded() : make_whole_batch((int32_t)draw(4, 24));
        int64_t before = INT64_MAX, bound = 0;
        for (size_t k = 0; k < sizeof works / sizeof *works; k++) {
            const hr_pack_result result = pack(count, works[k]);
            assert_true(result.arena_bytes <= before && result.bound_bytes >= bound);
            lower += k > 0 && result.arena_bytes < before;
            open += k == 0 && result.proof == HR_PACK_OPEN;
            before = result.arena_bytes;
            bound = result.bound_bytes;
        }
    }
    printf("%d of %d open after a stage, %d times lower with more\n", open, 120 * HR_COUNT, lower);
    assert_true(lower > 0);
}

static void fifteen_thousand_storages_pack_at_their_floor(void **state)
{
    (void)state;
    const int32_t count = make_training(320, 12);
    const hr_pack_result result = pack(count, HR_PACK_WORK_DEFAULT);
    printf("%d storages: %lld bytes above the floor of %lld\n", count,
           (long long)(result.arena_bytes - result.floor_bytes), (long long)result.floor_bytes);
    check(count, &result);
    assert_int_equal(result.proof, HR_PACK_AT_FLOOR);
}

static void an_unreachable_floor_is_proven_unreachable(void **state)
{
    (void)state;
    const int32_t count = make_unreachable();
    const hr_pack_result result = pack(count, HR_PACK_WORK_DEFAULT);
    check(count, &result);
    assert_int_equal(result.floor_bytes, 5 * HR_ARENA_ALIGN);
    assert_int_equal(result.arena_bytes, 6 * HR_ARENA_ALIGN);
    assert_int_equal(result.bound_bytes, 6 * HR_ARENA_ALIGN);
    assert_int_equal(result.proof, HR_PACK_PROVEN);
}

/* Plans of a terabyte have more units than 32 bits can count. */
static void an_arena_of_terabytes_is_searched_like_any_other(void **state)
{
    (void)state;
    const int32_t count = make_unreachable();
    const int64_t times = (INT64_C(1) << 36) + 1;
    for (int32_t i = 0; i < count; i++) storages[i].bytes *= times;
    storages[0].bytes -= HR_ARENA_ALIGN; /* so that the sizes have no large common unit */
    const hr_pack_result result = pack(count, HR_PACK_WORK_DEFAULT);
    check(count, &result);
    assert_int_equal(result.proof, HR_PACK_PROVEN);
    assert_true(result.nodes > 0 && result.arena_bytes > result.floor_bytes);
}

/* Small random plans always reach their floor, so these are variants of one that does not. */
static void small_plans_are_as_low_as_the_best_of_all_orders(void **state)
{
    (void)state;
    int32_t above = 0;
    for (int32_t i = 0; i < 300 * HR_COUNT; i++) {
        int32_t count = make_unreachable();
        for (int64_t left = draw(0, 2); left > 0; left--) {
            hr_storage *storage = &storages[draw(0, count - 1)];
            if (draw(0, 1)) storage->bytes = draw(1, 4) * HR_ARENA_ALIGN;
            else if (draw(0, 1)) storage->step_first = (int32_t)draw(0, storage->step_last);
            else storage->step_last = (int32_t)draw(storage->step_first, 5);
        }
        const hr_pack_result result = pack(count, HR_PACK_WORK_DEFAULT);
        check(count, &result);
        assert_true(result.proof != HR_PACK_OPEN);
        assert_int_equal(result.arena_bytes, least_height(count));
        above += result.proof == HR_PACK_PROVEN;
    }
    printf("small plans: %d of %d above their floor, all proven\n", above, 300 * HR_COUNT);
    assert_true(above > 0);
}

static void equal_input_gives_equal_output(void **state)
{
    (void)state;
    for (int32_t i = 0; i < 50; i++) {
        const int32_t count = make_random(80);
        const hr_pack_result first = pack(count, 100000);
        memcpy(again, storages, sizeof again);
        const hr_pack_result second = pack(count, 100000);
        assert_memory_equal(&first, &second, sizeof first);
        for (int32_t k = 0; k < count; k++) assert_int_equal(storages[k].offset, again[k].offset);
    }
}

static void storages_live_at_every_step_come_first_in_their_order(void **state)
{
    (void)state;
    int32_t count = 0;
    add(&count, 0, 2, 5);
    add(&count, 0, 9, 3);
    add(&count, 3, 9, 5);
    add(&count, 0, 9, 2);
    const hr_pack_result result = pack(count, 0);
    check(count, &result);
    assert_int_equal(storages[1].offset, 0);
    assert_int_equal(storages[3].offset, 3 * HR_ARENA_ALIGN);
    assert_int_equal(storages[0].offset, 5 * HR_ARENA_ALIGN);
    assert_int_equal(storages[2].offset, 5 * HR_ARENA_ALIGN);
}

static void no_storages_need_no_bytes(void **state)
{
    (void)state;
    const hr_pack_result result = pack(0, 1000);
    assert_int_equal(result.arena_bytes, 0);
    assert_int_equal(result.proof, HR_PACK_AT_FLOOR);
}

static void hr_pack_floor_equals_the_floor_of_hr_pack(void **state)
{
    (void)state;
    for (int32_t i = 0; i < 100; i++) {
        const int32_t count = make_random(80);
        const hr_pack_result packed = pack(count, 0);
        hr_region scratch = hr_region_over(memory, hr_pack_scratch_bytes(count));
        hr_pack_result result;
        assert_int_equal(hr_pack_floor(storages, count, &scratch, &result, 0), HR_OK);
        assert_int_equal(result.floor_bytes, packed.floor_bytes);
        assert_int_equal(result.peak_step, packed.peak_step);
    }
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    hr_region scratch = hr_region_over(memory, memory_bytes);
    hr_pack_result result;
    hr_error err;
    storages[0] = storages[1] = (hr_storage){ INT64_MAX / 64 * 64, 0, 0, 0 };
    assert_int_equal(hr_pack(storages, 2, 0, &scratch, &result, &err), HR_NO_FIT);
    assert_string_equal(err.message, "the buffers of this plan add up to 2^63 bytes or more");
}

static void too_little_scratch_is_refused(void **state)
{
    (void)state;
    const int32_t count = make_random(60);
    const int64_t enough = hr_pack_scratch_bytes(count);
    int32_t refused = 0;
    for (int64_t at = 0; at < enough + 1000; at += 1000) {
        const int64_t bytes = at < enough ? at : enough;
        hr_region scratch = hr_region_over(memory, bytes);
        hr_pack_result result;
        hr_error err;
        const hr_status status = hr_pack(storages, count, 100000, &scratch, &result, &err);
        assert_true(status == HR_OK || status == HR_FAILURE);
        if (status == HR_FAILURE) assert_non_null(strstr(err.message, "packing needs more than"));
        assert_int_equal(scratch.used, 0);
        if (bytes == 0) assert_int_equal(status, HR_FAILURE);
        if (bytes == enough) assert_int_equal(status, HR_OK);
        refused += status == HR_FAILURE;
    }
    assert_true(refused > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_storages_never_overlap),
        cmocka_unit_test(training_steps_pack_at_their_floor),
        cmocka_unit_test(two_opposite_stacks_pack_at_their_floor),
        cmocka_unit_test(more_work_never_gives_a_larger_arena),
        cmocka_unit_test(fifteen_thousand_storages_pack_at_their_floor),
        cmocka_unit_test(an_unreachable_floor_is_proven_unreachable),
        cmocka_unit_test(an_arena_of_terabytes_is_searched_like_any_other),
        cmocka_unit_test(small_plans_are_as_low_as_the_best_of_all_orders),
        cmocka_unit_test(equal_input_gives_equal_output),
        cmocka_unit_test(storages_live_at_every_step_come_first_in_their_order),
        cmocka_unit_test(no_storages_need_no_bytes),
        cmocka_unit_test(hr_pack_floor_equals_the_floor_of_hr_pack),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(too_little_scratch_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
