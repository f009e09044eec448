/* SPDX-License-Identifier: Apache-2.0 */
/* Packing: never an overlap, never below the floor, at the floor where it can be reached. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "plan/compile.h"
#include "plan/pack.h"

enum { SEED = 20241, STORAGES_MAX = 20000 };
enum { STAGE = 1 << 20, WORK = 21 * STAGE }; /* of the packer; WORK is three stages */

static uint64_t draws;

/* A number in [low, high]. */
static int64_t draw(int64_t low, int64_t high)
{
    return low + (int64_t)(hr_random_mix(SEED + ++draws) % (uint64_t)(high - low + 1));
}

static hr_storage storages[STORAGES_MAX], again[STORAGES_MAX];
static uint8_t *memory;
static int64_t memory_bytes;

static int set_up(void **state)
{
    (void)state;
    memory_bytes = hr_pack_scratch_bytes(STORAGES_MAX);
    memory = aligned_alloc(64, (size_t)(memory_bytes + 63) / 64 * 64);
    printf("seed %d\n", SEED);
    return memory ? 0 : 1;
}

static int tear_down(void **state)
{
    (void)state;
    free(memory);
    return 0;
}

static hr_pack_result pack(int32_t count, int64_t work)
{
    hr_region scratch = hr_region_over(memory, hr_pack_scratch_bytes(count));
    hr_pack_result result;
    hr_error err = { HR_OK, "" };
    assert_int_equal(hr_pack(storages, count, work, &scratch, &result, &err), HR_OK);
    assert_int_equal(scratch.used, 0);
    return result;
}

/* Every pair, every step: slow and plain. */
static void check(int32_t count, const hr_pack_result *result)
{
    int64_t end = 0, floor = 0;
    for (int32_t a = 0; a < count; a++) {
        const hr_storage *one = &storages[a];
        int64_t alive = 0;
        assert_true(one->offset >= 0 && one->offset % HR_ARENA_ALIGN == 0);
        if (one->offset + one->bytes > end) end = one->offset + one->bytes;
        for (int32_t b = 0; b < count; b++) {
            const hr_storage *two = &storages[b];
            if (two->step_first <= one->step_first && one->step_first <= two->step_last)
                alive += two->bytes;
            if (b <= a || two->step_first > one->step_last || one->step_first > two->step_last)
                continue;
            assert_true(two->offset >= one->offset + one->bytes ||
                        one->offset >= two->offset + two->bytes);
        }
        if (alive > floor) floor = alive;
    }
    assert_int_equal(result->arena_bytes, end);
    assert_int_equal(result->floor_bytes, floor);
    assert_true(result->bound_bytes >= floor && result->bound_bytes <= end);
    assert_true((result->proof == HR_PACK_AT_FLOOR) == (end == floor));
    assert_true((result->proof == HR_PACK_OPEN) == (end > result->bound_bytes));
}

static void add(int32_t *count, int64_t first, int64_t last, int64_t units)
{
    storages[(*count)++] = (hr_storage){ units * HR_ARENA_ALIGN, -1, (int32_t)first,
                                         (int32_t)last };
}

/* Lives without any order: the hardest kind. */
static int32_t make_random(int32_t most)
{
    const int32_t steps = (int32_t)draw(1, 40);
    const int64_t size_most = draw(0, 1) ? 8 : 4000, life_most = draw(0, 2) ? 6 : steps;
    int32_t count = 0;
    for (int64_t left = draw(1, most); left > 0; left--) {
        const int64_t first = draw(0, steps - 1), last = first + draw(0, life_most - 1);
        add(&count, first, last < steps ? last : steps - 1, draw(1, size_most));
    }
    return count;
}

/* A step of training: state that stays, values kept from forward to backward, brief ones. */
static int32_t make_training(int32_t layers, int32_t loss_steps)
{
    enum { FORWARD = 12, BACKWARD = 24, KEPT = 8 };
    const int32_t back = layers * FORWARD + loss_steps, end = back + layers * BACKWARD;
    const int64_t width = 16 * draw(1, 40), wide = width * draw(2, 4);
    int32_t count = 0;
    for (int32_t l = 0; l < layers; l++) {
        const int32_t forward = l * FORWARD, backward = back + (layers - 1 - l) * BACKWARD;
        for (int32_t k = 0; k < 4; k++) add(&count, 0, end - 1, draw(1, 9) * width);
        for (int32_t k = 0; k < KEPT; k++)
            add(&count, forward + draw(0, FORWARD - 1), backward + draw(0, BACKWARD - 1),
                draw(0, 3) ? width : wide);
        for (int32_t k = 0; k < FORWARD - 1; k++)
            add(&count, forward + k, forward + k + draw(0, 1), draw(0, 2) ? width : wide);
        for (int32_t k = 0; k < BACKWARD - 2; k++)
            add(&count, backward + k, backward + k + draw(0, 2), draw(0, 2) ? width : wide);
    }
    for (int32_t k = 0; k + 1 < loss_steps; k++)
        add(&count, layers * FORWARD + k, layers * FORWARD + k + 1, wide * draw(1, 6));
    return count;
}

/* A step without micro-batches: activations fall in a stack while gradients, which wait for the
 * update, grow into another, and every product needs one wide stretch between the two. */
static int32_t make_whole_batch(int32_t layers)
{
    enum { FORWARD = 8, BACKWARD = 14, KEPT = 6, GRADIENTS = 4 };
    const int32_t back = layers * FORWARD, update = back + layers * BACKWARD;
    const int64_t width = 8 * draw(8, 40), most = layers * width * draw(3, 6) / 4;
    int32_t count = 0;
    for (int32_t l = 0; l < layers; l++) {
        const int32_t forward = l * FORWARD, backward = back + (layers - 1 - l) * BACKWARD;
        for (int32_t k = 0; k < KEPT; k++)
            if (draw(0, 2))
                add(&count, forward + k, backward + BACKWARD - 2 * k - 1, draw(1, 4) * width);
        for (int32_t k = 0; k < GRADIENTS; k++)
            add(&count, backward + 3 * k + draw(0, 2), update + l * GRADIENTS + k,
                draw(1, 9) * width / 2);
        for (int32_t k = 0; k + 1 < FORWARD; k++) {
            add(&count, forward + k, forward + k + draw(0, 1), width);
            if (draw(0, 1)) add(&count, forward + k, forward + k, most + width * draw(0, 2));
        }
        for (int32_t k = 0; k + 3 < BACKWARD; k++) {
            add(&count, backward + k, backward + k + draw(1, 3), width);
            if (draw(0, 1)) add(&count, backward + k, backward + k, most + width * draw(0, 4));
        }
    }
    return count;
}

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
        const hr_pack_result result = pack(count, WORK / 4);
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
        const hr_pack_result result = pack(count, WORK);
        check(count, &result);
        counts[result.proof]++;
        hard += result.hard_count > 0;
    }
    print_counts("training steps", counts, hard);
    assert_true(counts[HR_PACK_OPEN] * 200 <= 200 * HR_COUNT);
}

/* Orders alone, and then with what mends and searches. */
static void two_stacks_that_meet_pack_at_their_floor(void **state)
{
    (void)state;
    int32_t alone[3] = { 0 }, counts[3] = { 0 }, hard = 0;
    for (int32_t i = 0; i < 100 * HR_COUNT; i++) {
        const int32_t count = make_whole_batch((int32_t)draw(4, 24));
        hr_pack_result result = pack(count, 0);
        check(count, &result);
        alone[result.proof]++;
        assert_int_equal(result.nodes, 0);
        result = pack(count, WORK);
        check(count, &result);
        counts[result.proof]++;
        hard += result.hard_count > 0;
    }
    print_counts("whole batches, orders only", alone, 0);
    print_counts("whole batches", counts, hard);
    assert_true(alone[HR_PACK_AT_FLOOR] * 100 >= 70 * 100 * HR_COUNT);
    assert_true(counts[HR_PACK_OPEN] * 200 <= 100 * HR_COUNT);
}

/* Many lives of any size at any time: the search does not see the end of them soon. */
static int32_t make_crowded(void)
{
    int32_t count = 0;
    for (int64_t left = draw(80, 200); left > 0; left--) {
        const int64_t first = draw(0, 29), last = first + draw(0, 9);
        add(&count, first, last < 30 ? last : 29, draw(1, 4000));
    }
    return count;
}

/* What a packing knows stays, so a plan may be packed again with more work at any time. */
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

/* Seven storages that overlap by 5 units at most and need 6. */
static int32_t make_unreachable(void)
{
    static const int64_t lives[7][3] = { { 0, 0, 3 }, { 0, 3, 1 }, { 1, 2, 2 }, { 2, 4, 2 },
                                         { 3, 5, 1 }, { 4, 4, 2 }, { 5, 5, 3 } };
    int32_t count = 0;
    for (int32_t i = 0; i < 7; i++) add(&count, lives[i][0], lives[i][1], lives[i][2]);
    return count;
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

static void a_floor_that_cannot_be_reached_is_proven_so(void **state)
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

/* Plans of a terabyte have more units than 32 bits count. */
static void an_arena_of_terabytes_is_searched_like_any_other(void **state)
{
    (void)state;
    const int32_t count = make_unreachable();
    const int64_t times = (INT64_C(1) << 36) + 1;
    for (int32_t i = 0; i < count; i++) storages[i].bytes *= times;
    storages[0].bytes -= HR_ARENA_ALIGN; /* so that they have no large unit */
    const hr_pack_result result = pack(count, HR_PACK_WORK_DEFAULT);
    check(count, &result);
    assert_int_equal(result.proof, HR_PACK_PROVEN);
    assert_true(result.nodes > 0 && result.arena_bytes > result.floor_bytes);
}

/* The least height over all orders in which storages can be put on top of each other. Every
 * placement that cannot be pushed down is one of these. */
static int64_t least_height(int32_t count)
{
    int32_t order[8];
    int64_t least = INT64_MAX, permutations = 1;
    for (int32_t i = 2; i <= count; i++) permutations *= i;
    for (int64_t p = 0; p < permutations; p++) {
        int64_t offset[8], height = 0, code = p;
        for (int32_t i = 0; i < count; i++) order[i] = i;
        for (int32_t i = 0; i < count; i++) {
            const int32_t j = i + (int32_t)(code % (count - i)), swap = order[i];
            code /= count - i;
            order[i] = order[j];
            order[j] = swap;
        }
        for (int32_t i = 0; i < count; i++) {
            const hr_storage *one = &storages[order[i]];
            offset[i] = 0;
            for (int32_t j = 0; j < i; j++) {
                const hr_storage *two = &storages[order[j]];
                if (two->step_first > one->step_last || one->step_first > two->step_last) continue;
                if (offset[j] + two->bytes > offset[i]) offset[i] = offset[j] + two->bytes;
            }
            if (offset[i] + one->bytes > height) height = offset[i] + one->bytes;
        }
        if (height < least) least = height;
    }
    return least;
}

/* Random small plans never stand above their floor, so these are neighbours of one that does. */
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

static void storages_that_outlive_every_step_come_first_in_their_order(void **state)
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

static void the_floor_alone_is_the_packer_s_floor(void **state)
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

static void sizes_that_add_up_to_too_much_are_refused(void **state)
{
    (void)state;
    hr_region scratch = hr_region_over(memory, memory_bytes);
    hr_pack_result result;
    hr_error err;
    storages[0] = storages[1] = (hr_storage){ INT64_MAX / 64 * 64, 0, 0, 0 };
    assert_int_equal(hr_pack(storages, 2, 0, &scratch, &result, &err), HR_NO_FIT);
    assert_string_equal(err.message, "the storages of this plan add up to 2^63 bytes or more");
}

static void too_little_scratch_is_refused(void **state)
{
    (void)state;
    const int32_t count = make_random(60);
    const int64_t enough = hr_pack_scratch_bytes(count);
    for (int64_t bytes = 0; bytes < enough; bytes += 1000) {
        hr_region scratch = hr_region_over(memory, bytes);
        hr_pack_result result;
        hr_error err;
        const hr_status status = hr_pack(storages, count, 100000, &scratch, &result, &err);
        assert_true(status == HR_OK || status == HR_FAILURE);
        if (status == HR_FAILURE)
            assert_non_null(strstr(err.message, "packing needs more scratch than the"));
        assert_int_equal(scratch.used, 0);
    }
}

/* Reads `id,lower,upper,size` with half-open lives. Zero when the file is not there. */
static int32_t read_instance(const char *name)
{
    char path[512], line[128];
    snprintf(path, sizeof path, "%s/packing/%s", HR_SHARED, name);
    FILE *file = fopen(path, "r");
    int32_t count = 0;
    long long id, lower, upper, size;
    if (!file) return 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "%lld,%lld,%lld,%lld", &id, &lower, &upper, &size) == 4)
            storages[count++] = (hr_storage){ size * HR_ARENA_ALIGN, -1, (int32_t)lower,
                                              (int32_t)upper - 1 };
    fclose(file);
    return count;
}

static hr_pack_result pack_within(int32_t count, const hr_pack_limits *limits)
{
    hr_region scratch = hr_region_over(memory, hr_pack_scratch_bytes(count));
    hr_pack_result result;
    hr_error err = { HR_OK, "" };
    assert_int_equal(hr_pack_within(storages, count, limits, &scratch, &result, &err), HR_OK);
    assert_int_equal(scratch.used, 0);
    check(count, &result);
    return result;
}

static void public_instances_fit_their_capacity(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t capacity; /* 0: the floor */
    } instances[] = { { "A.1048576.csv", 1048576 },  { "B.1048576.csv", 1048576 },
                      { "C.1048576.csv", 1048576 },  { "D.1048576.csv", 1048576 },
                      { "E.1048576.csv", 1048576 },  { "C.1048576.csv", 0 },
                      { "resnet50-training.csv", 0 } };
    for (size_t i = 0; i < sizeof instances / sizeof *instances; i++) {
        const int32_t count = read_instance(instances[i].name);
        if (count == 0) {
            printf("skip: no %s/packing/%s\n", HR_SHARED, instances[i].name);
            skip();
        }
        const hr_pack_limits limits = { .capacity_bytes = instances[i].capacity * HR_ARENA_ALIGN,
                                        .work = HR_PACK_WORK_DEFAULT };
        const hr_pack_result result = pack_within(count, &limits);
        const int64_t bound = instances[i].capacity ? limits.capacity_bytes : result.floor_bytes;
        assert_true(result.arena_bytes <= bound);
        printf("%s: arena %lld, floor %lld, %lld nodes\n", instances[i].name,
               (long long)result.arena_bytes / HR_ARENA_ALIGN,
               (long long)result.floor_bytes / HR_ARENA_ALIGN, (long long)result.nodes);
    }
}

static void a_capacity_is_reached_or_refuted(void **state)
{
    (void)state;
    for (int32_t i = 0; i < 200 * HR_COUNT; i++) {
        int32_t count = make_unreachable();
        storages[draw(0, count - 1)].bytes = draw(1, 4) * HR_ARENA_ALIGN;
        const int64_t lowest = least_height(count);
        for (int64_t capacity = lowest - 2 * HR_ARENA_ALIGN;
             capacity <= lowest + 2 * HR_ARENA_ALIGN; capacity += HR_ARENA_ALIGN) {
            const hr_pack_limits limits = { capacity, HR_PACK_WORK_DEFAULT };
            const hr_pack_result result = pack_within(count, &limits);
            assert_int_equal(result.arena_bytes <= capacity, capacity >= lowest);
            assert_int_equal(result.bound_bytes > capacity, capacity < lowest);
        }
    }
}

static bool count_down(void *context)
{
    int32_t *left = context;
    return --*left < 0;
}

static void whenever_it_is_stopped_the_placement_is_sound(void **state)
{
    (void)state;
    for (int32_t asks = 0; asks < 60; asks++) {
        const int32_t count = asks % 2 ? make_random(60) : make_unreachable();
        int32_t left = asks / 2;
        const hr_pack_limits limits = { 0, HR_PACK_WORK_DEFAULT, count_down, &left };
        pack_within(count, &limits);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_storages_never_overlap),
        cmocka_unit_test(training_steps_pack_at_their_floor),
        cmocka_unit_test(two_stacks_that_meet_pack_at_their_floor),
        cmocka_unit_test(more_work_never_gives_a_larger_arena),
        cmocka_unit_test(a_plan_that_is_open_is_packed_again_and_is_never_larger),
        cmocka_unit_test(what_is_known_or_too_large_is_not_packed_again),
        cmocka_unit_test(fifteen_thousand_storages_pack_at_their_floor),
        cmocka_unit_test(a_floor_that_cannot_be_reached_is_proven_so),
        cmocka_unit_test(an_arena_of_terabytes_is_searched_like_any_other),
        cmocka_unit_test(small_plans_are_as_low_as_the_best_of_all_orders),
        cmocka_unit_test(equal_input_gives_equal_output),
        cmocka_unit_test(storages_that_outlive_every_step_come_first_in_their_order),
        cmocka_unit_test(no_storages_need_no_bytes),
        cmocka_unit_test(the_floor_alone_is_the_packer_s_floor),
        cmocka_unit_test(sizes_that_add_up_to_too_much_are_refused),
        cmocka_unit_test(too_little_scratch_is_refused),
        cmocka_unit_test(public_instances_fit_their_capacity),
        cmocka_unit_test(a_capacity_is_reached_or_refuted),
        cmocka_unit_test(whenever_it_is_stopped_the_placement_is_sound),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
