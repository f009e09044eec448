/* SPDX-License-Identifier: Apache-2.0 */
/* pack_core_test.c - cores: folded items are placed without overlap, and if a core does not fit,
 * the part does not. Blocks of items with equal lifetimes split into their members. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"
#include "plan/pack/part.h"

enum { SEED = 20251, ITEMS_MOST = 64, SCRATCH = 1 << 24 };

static uint64_t draws;
static hr_pack_item items[ITEMS_MOST];
static hr_region scratch;
static hr_pack_effort effort;

/* A number in [low, high]. */
static int32_t draw(int32_t low, int32_t high)
{
    return low + (int32_t)(hr_random_mix(SEED + ++draws) % (uint64_t)(high - low + 1));
}

static int set_up(void **state)
{
    (void)state;
    scratch = hr_region_over(aligned_alloc(64, SCRATCH), SCRATCH);
    printf("seed %d\n", SEED);
    return scratch.base ? 0 : 1;
}

static int tear_down(void **state)
{
    (void)state;
    free(scratch.base);
    return 0;
}

static int64_t alive_at(const hr_pack_part *part, int32_t section)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < part->count; i++)
        if (part->items[i].first <= section && section <= part->items[i].last)
            bytes += part->items[i].bytes;
    return bytes;
}

static void set_loads(const hr_pack_part *part)
{
    for (int32_t i = 0; i < part->count; i++) {
        items[i].load = 0;
        for (int32_t s = items[i].first; s <= items[i].last; s++) {
            const int64_t bytes = alive_at(part, s);
            if (bytes > items[i].load) items[i].load = bytes;
        }
    }
}

/* Random lifetimes sorted by start, many of one section. */
static hr_pack_part random_part(int32_t sections)
{
    hr_pack_part part = { .items = items, .first = draw(0, 3), .unit = 1 };
    part.last = part.first + sections - 1;
    part.peak = part.first;
    for (int32_t s = part.first; s <= part.last; s++)
        for (int32_t k = draw(0, 3); k > 0 && part.count < ITEMS_MOST; k--) {
            const int32_t last = draw(0, 1) ? s : draw(s, part.last);
            items[part.count] = (hr_pack_item){ .bytes = draw(1, 9),
                                                .first = s,
                                                .last = last,
                                                .steps = draw(1, 9),
                                                .storage = part.count };
            part.count++;
        }
    set_loads(&part);
    scratch.used = 0;
    effort = (hr_pack_effort){ .scratch = &scratch, .work = INT64_C(1) << 40 };
    return part;
}

/* Asserts that overlapping lifetimes share no byte; negative offsets are not placed. Returns the
 * height. */
static int64_t height_of(const hr_pack_part *part, const int64_t *offsets)
{
    int64_t height = 0;
    for (int32_t i = 0; i < part->count; i++) {
        const hr_pack_item *a = &part->items[i];
        if (offsets[i] < 0) continue;
        if (offsets[i] + a->bytes > height) height = offsets[i] + a->bytes;
        for (int32_t k = i + 1; k < part->count; k++) {
            const hr_pack_item *b = &part->items[k];
            if (offsets[k] < 0 || a->first > b->last || b->first > a->last) continue;
            assert_true(offsets[i] >= offsets[k] + b->bytes || offsets[k] >= offsets[i] + a->bytes);
        }
    }
    return height;
}

static void place(const hr_pack_part *part, int64_t *offsets)
{
    static int32_t order[ITEMS_MOST];
    hr_pack_sort(part, HR_PACK_BY_LOAD, &effort, order);
    hr_pack_first_fit(part, order, NULL, HR_PACK_HANG_NOTHING, 0, INT64_MAX, &effort, offsets);
}

static void a_placement_of_a_core_extends_to_the_part(void **state)
{
    (void)state;
    int64_t folded = 0;
    for (int32_t turn = 0; turn < 2000 * HR_COUNT; turn++) {
        const hr_pack_part part = random_part(draw(1, 16));
        int64_t offsets[ITEMS_MOST], whole[ITEMS_MOST];
        hr_pack_core core;
        if (part.count == 0) continue;
        hr_pack_core_make(&core, &part, 0, &effort);
        place(&core.part, offsets);
        hr_pack_core_expand(&core, offsets, part.count, whole);
        for (int32_t i = 0; i < part.count; i++) assert_true(whole[i] >= 0);
        assert_int_equal(height_of(&part, whole), height_of(&core.part, offsets));
        assert_int_equal(core.part.count + core.fold_count, part.count);
        assert_true(core.part.last < core.part.count);
        folded += core.fold_count;
    }
    printf("%lld items folded\n", (long long)folded);
    assert_true(folded > 0);
}

static void a_core_has_the_items_with_the_largest_load(void **state)
{
    (void)state;
    for (int32_t turn = 0; turn < 500 * HR_COUNT; turn++) {
        const hr_pack_part part = random_part(draw(2, 16));
        int64_t offsets[ITEMS_MOST], whole[ITEMS_MOST], most = 0;
        hr_pack_core core;
        for (int32_t i = 0; i < part.count; i++) most = items[i].load > most ? items[i].load : most;
        if (part.count == 0) continue;
        const int64_t least = draw(1, (int32_t)most);
        hr_pack_core_make(&core, &part, least, &effort);
        place(&core.part, offsets);
        hr_pack_core_expand(&core, offsets, part.count, whole);
        for (int32_t i = 0; i < part.count; i++)
            assert_int_equal(whole[i] >= 0, items[i].load >= least);
        height_of(&part, whole);
        int64_t peak = 0;
        for (int32_t s = 0; s <= core.part.last; s++)
            if (alive_at(&core.part, s) > peak) peak = alive_at(&core.part, s);
        assert_int_equal(peak, most);
        assert_int_equal(alive_at(&core.part, core.part.peak), most);
    }
}

static void known_offsets_are_kept(void **state)
{
    (void)state;
    for (int32_t turn = 0; turn < 500 * HR_COUNT; turn++) {
        const hr_pack_part part = random_part(draw(2, 16));
        int64_t offsets[ITEMS_MOST], known[ITEMS_MOST];
        int32_t order[ITEMS_MOST];
        if (part.count == 0) continue;
        place(&part, known);
        for (int32_t i = 0; i < part.count; i++)
            if (draw(0, 1)) known[i] = -1;
        hr_pack_sort(&part, HR_PACK_BY_SIZE, &effort, order);
        hr_pack_first_fit(&part, order, known, (hr_pack_hang)draw(0, HR_PACK_HANGS - 1), 100,
                          INT64_MAX, &effort, offsets);
        height_of(&part, offsets);
        for (int32_t i = 0; i < part.count; i++)
            if (known[i] >= 0) assert_int_equal(offsets[i], known[i]);
    }
}

static void blocks_of_equal_lifetimes_split_into_their_members(void **state)
{
    (void)state;
    int64_t glued_away = 0;
    for (int32_t turn = 0; turn < 500 * HR_COUNT; turn++) {
        const hr_pack_part part = random_part(draw(1, 8));
        int64_t blocks[ITEMS_MOST], offsets[ITEMS_MOST];
        int32_t order[ITEMS_MOST];
        hr_pack_part glued;
        if (part.count == 0) continue;
        hr_pack_glue(&part, &glued, order, false, &effort);
        place(&glued, blocks);
        hr_pack_unglue(&part, &glued, order, blocks, 40, offsets);
        assert_int_equal(height_of(&part, offsets), height_of(&glued, blocks));
        glued_away += part.count - glued.count;
    }
    assert_true(glued_away > 0);
}

/* Items that live through all of a part fit at its bottom, so joining them does not change the
 * answer. */
static void gluing_at_the_bottom_loses_no_placement(void **state)
{
    (void)state;
    int64_t answers[HR_PACK_TOO_LARGE + 1] = { 0 }, glued_away = 0;
    for (int32_t turn = 0; turn < 300 * HR_COUNT; turn++) {
        hr_pack_part part = random_part(draw(1, 5));
        int64_t blocks[ITEMS_MOST], offsets[ITEMS_MOST], most = 0;
        int32_t order[ITEMS_MOST], ranking[ITEMS_MOST];
        hr_pack_part glued;
        if (part.count == 0 || part.count > 12) continue;
        for (int32_t i = 0; i < part.count; i++)
            if (draw(0, 3) == 0) {
                items[i].first = part.first;
                items[i].last = part.last;
            }
        set_loads(&part);
        for (int32_t i = 0; i < part.count; i++) most = items[i].load > most ? items[i].load : most;
        const int64_t capacity = most + draw(-1, 1);
        hr_pack_glue(&part, &glued, order, true, &effort);
        for (int32_t b = 0; b < glued.count; b++) {
            const hr_pack_item *block = &glued.items[b];
            const int32_t end = b + 1 < glued.count ? glued.items[b + 1].storage : part.count;
            if (end - block->storage > 1)
                assert_true(block->first == part.first && block->last == part.last);
        }
        hr_pack_sort(&part, HR_PACK_BY_LOAD, &effort, ranking);
        const hr_pack_answer plain = hr_pack_search(&part, ranking, capacity, effort.work, &effort,
                                                    offsets);
        hr_pack_sort(&glued, HR_PACK_BY_LOAD, &effort, ranking);
        const hr_pack_answer answer = hr_pack_search(&glued, ranking, capacity, effort.work,
                                                     &effort, blocks);
        assert_int_equal(answer, plain);
        answers[answer]++;
        glued_away += part.count - glued.count;
        if (answer != HR_PACK_FOUND) continue;
        hr_pack_unglue(&part, &glued, order, blocks, capacity, offsets);
        assert_true(height_of(&part, offsets) <= capacity);
    }
    printf("%lld placements, %lld times none\n", (long long)answers[HR_PACK_FOUND],
           (long long)answers[HR_PACK_IMPOSSIBLE]);
    assert_true(glued_away > 0);
    assert_true(answers[HR_PACK_FOUND] > 0 && answers[HR_PACK_IMPOSSIBLE] > 0);
}

/* Every ranking answers the same question, so short searches give the answer of one long search or
 * none, also when they start from a known placement. */
static void many_short_searches_agree_with_one_long_search(void **state)
{
    (void)state;
    int64_t answers[HR_PACK_TOO_LARGE + 1] = { 0 };
    for (int32_t turn = 0; turn < 300 * HR_COUNT; turn++) {
        const hr_pack_part part = random_part(draw(2, 6));
        int64_t offsets[ITEMS_MOST], most = 0;
        int32_t ranking[ITEMS_MOST];
        hr_pack_attempt a;
        if (part.count == 0 || part.count > 14) continue;
        for (int32_t i = 0; i < part.count; i++) most = items[i].load > most ? items[i].load : most;
        const int64_t capacity = most + draw(-1, 1);
        hr_pack_sort(&part, HR_PACK_BY_LOAD, &effort, ranking);
        const hr_pack_answer plain = hr_pack_search(&part, ranking, capacity, effort.work, &effort,
                                                    offsets);
        hr_pack_attempt_open(&a, &part, draw(0, 6), &effort);
        const hr_pack_answer answer = hr_pack_dive(&a, capacity, draw(0, 3) ? 100000 : 1, &effort);
        answers[answer]++;
        if (answer == HR_PACK_GAVE_UP) continue;
        assert_int_equal(answer, plain);
        if (answer != HR_PACK_FOUND) continue;
        assert_true(a.height <= capacity && height_of(&part, a.offsets) == a.height);
        hr_pack_attempt again;
        hr_pack_attempt_open(&again, &part, 0, &effort);
        again.known = a.offsets;
        assert_int_equal(hr_pack_dive(&again, capacity, effort.work, &effort), HR_PACK_FOUND);
    }
    printf("%lld placements, %lld times none, %lld given up\n", (long long)answers[HR_PACK_FOUND],
           (long long)answers[HR_PACK_IMPOSSIBLE], (long long)answers[HR_PACK_GAVE_UP]);
    for (int32_t k = 0; k < HR_PACK_TOO_LARGE; k++) assert_true(answers[k] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_placement_of_a_core_extends_to_the_part),
        cmocka_unit_test(a_core_has_the_items_with_the_largest_load),
        cmocka_unit_test(known_offsets_are_kept),
        cmocka_unit_test(blocks_of_equal_lifetimes_split_into_their_members),
        cmocka_unit_test(gluing_at_the_bottom_loses_no_placement),
        cmocka_unit_test(many_short_searches_agree_with_one_long_search),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
