/* SPDX-License-Identifier: Apache-2.0 */
/* pack_index_test.c - addresses in use over time: every answer equals that of a plain map of
 * sections and addresses. With too few runs an answer may be higher, but is still free. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "plan/pack/index.h"

enum { SEED = 77123, SECTIONS_MOST = 40, ADDRESSES = 64, SCRATCH = 1 << 24, RUNS_FEW = 2 };

static uint64_t draws;
static hr_region scratch;
static hr_pack_effort effort;
static hr_pack_index tree;
static bool map[SECTIONS_MOST][2 * ADDRESSES];

/* A number in [low, high]. */
static int32_t draw(int32_t low, int32_t high)
{
    return low + (int32_t)(hr_random_mix(SEED + ++draws) % (uint64_t)(high - low + 1));
}

static int set_up(void **state)
{
    (void)state;
    scratch = hr_region_over(aligned_alloc(64, SCRATCH), SCRATCH);
    effort = (hr_pack_effort){ .scratch = &scratch };
    printf("seed %d\n", SEED);
    return scratch.base ? 0 : 1;
}

static int tear_down(void **state)
{
    (void)state;
    free(scratch.base);
    return 0;
}

static bool is_free(int32_t first, int32_t last, int64_t low, int64_t bytes)
{
    for (int32_t s = first; s <= last; s++)
        for (int64_t at = low; at < low + bytes; at++)
            if (map[s][at]) return false;
    return true;
}

static void open_empty(int32_t sections, int32_t items)
{
    scratch.used = 0;
    memset(map, 0, sizeof map);
    hr_pack_index_open(&tree, sections, items, &effort);
    assert_true(scratch.used <= hr_pack_index_bytes(items < sections ? sections : items));
}

/* Some are placed where they fit, others at given addresses. */
static void take(int32_t first, int32_t last, int64_t low, int64_t bytes)
{
    hr_pack_index_add(&tree, first, last, low, low + bytes);
    for (int32_t s = first; s <= last; s++) memset(&map[s][low], true, (size_t)bytes);
}

static void answers_equal_those_of_a_plain_map(void **state)
{
    (void)state;
    int64_t none = 0, found = 0;
    for (int32_t turn = 0; turn < 3000 * HR_COUNT; turn++) {
        const int32_t sections = draw(1, SECTIONS_MOST), items = draw(1, 60);
        open_empty(sections, items);
        for (int32_t i = 0; i < items; i++) {
            const int32_t first = draw(0, sections - 1);
            const int32_t last = draw(0, 1) ? first : draw(first, sections - 1);
            const int32_t bytes = draw(1, 9), ceiling = draw(0, ADDRESSES);
            int64_t lowest = 0, highest = ceiling - bytes;
            while (!is_free(first, last, lowest, bytes)) lowest++;
            while (highest >= 0 && !is_free(first, last, highest, bytes)) highest--;
            assert_int_equal(hr_pack_index_lowest(&tree, first, last, bytes), lowest);
            const int64_t high = hr_pack_index_highest(&tree, first, last, bytes, ceiling);
            if (highest >= 0) assert_int_equal(high, highest);
            else assert_true(high < 0);
            none += highest < 0;
            found += highest >= 0;
            const int64_t at = draw(0, 3) == 0          ? draw(0, ADDRESSES - 10)
                               : draw(0, 1) || high < 0 ? lowest
                                                        : high;
            if (at + bytes <= ADDRESSES) take(first, last, at, bytes);
        }
        assert_false(tree.coarse);
    }
    assert_true(none > 0 && found > 0);
}

static void with_too_few_runs_the_offsets_found_are_free(void **state)
{
    (void)state;
    int64_t coarse = 0;
    for (int32_t turn = 0; turn < 1000 * HR_COUNT; turn++) {
        const int32_t sections = draw(1, SECTIONS_MOST);
        open_empty(sections, 60);
        tree.run_most = tree.run_count + draw(0, RUNS_FEW);
        for (int32_t i = 0; i < 60; i++) {
            const int32_t first = draw(0, sections - 1);
            const int32_t last = draw(0, 1) ? first : draw(first, sections - 1);
            const int32_t bytes = draw(1, 9);
            const int64_t lowest = hr_pack_index_lowest(&tree, first, last, bytes);
            const int64_t high = hr_pack_index_highest(&tree, first, last, bytes, ADDRESSES);
            assert_true(lowest + bytes >= 2 * ADDRESSES || is_free(first, last, lowest, bytes));
            if (high >= 0) assert_true(is_free(first, last, high, bytes));
            const int64_t at = draw(0, 1) ? draw(0, ADDRESSES - 10) : high < 0 ? lowest : high;
            if (at + bytes <= ADDRESSES) take(first, last, at, bytes);
        }
        coarse += tree.coarse;
    }
    printf("%lld of %d tables full\n", (long long)coarse, 1000 * HR_COUNT);
    assert_true(coarse > 0);
}

/* Adding to a list with many runs does not scan them: new runs are near the last one added. */
static void a_stack_among_many_holes_grows_without_a_scan(void **state)
{
    (void)state;
    enum { HOLES = 10000, STACK = 2000, GAP = 3 * STACK };
    const int64_t middle = HOLES, above = middle + GAP;
    scratch.used = 0;
    hr_pack_index_open(&tree, 1, HOLES, &effort);
    for (int64_t i = 0; i < HOLES; i++) {
        const int64_t at = 2 * i < middle ? 2 * i : 2 * i + GAP;
        hr_pack_index_add(&tree, 0, 0, at, at + 1);
    }
    const int64_t before = tree.looks;
    for (int64_t i = 0; i < STACK; i++) {
        hr_pack_index_add(&tree, 0, 0, middle + i, middle + i + 1);
        hr_pack_index_add(&tree, 0, 0, above - i - 1, above - i);
    }
    printf("%lld looks to fill, %lld for %d in the middle\n", (long long)before,
           (long long)(tree.looks - before), 2 * STACK);
    assert_int_equal(hr_pack_index_lowest(&tree, 0, 0, 2), middle + STACK);
    assert_true(tree.looks - before < 16 * STACK + 4 * HOLES);
}

/* Half of the items leave holes between them that are too small for the others. */
static void first_fit_gives_up_with_too_many_holes(void **state)
{
    (void)state;
    enum { ITEMS = 20000 };
    static hr_pack_item items[ITEMS];
    static int32_t order[ITEMS];
    static int64_t known[ITEMS], offsets[ITEMS];
    const hr_pack_part part = { .items = items, .count = ITEMS, .last = ITEMS / 2 };
    for (int32_t i = 0; i < ITEMS; i++) {
        const bool is_free = i >= ITEMS / 2;
        order[i] = i;
        known[i] = is_free ? -1 : 2 * i;
        items[i] = (hr_pack_item){ .bytes = is_free ? 2 : 1,
                                   .first = is_free ? i - ITEMS / 2 : 0,
                                   .last = is_free ? i - ITEMS / 2 : ITEMS / 2 };
    }
    scratch.used = 0;
    hr_pack_effort few = { .scratch = &scratch, .work = INT64_MAX };
    const int64_t height = hr_pack_first_fit(&part, order, known, HR_PACK_HANG_NOTHING, 0,
                                             INT64_MAX, &few, offsets);
    printf("%lld of work\n", (long long)(INT64_MAX - few.work));
    assert_int_equal(height, INT64_MAX);
    assert_true(INT64_MAX - few.work > 1 << 20);
    assert_true(INT64_MAX - few.work < 1 << 22);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_equal_those_of_a_plain_map),
        cmocka_unit_test(with_too_few_runs_the_offsets_found_are_free),
        cmocka_unit_test(a_stack_among_many_holes_grows_without_a_scan),
        cmocka_unit_test(first_fit_gives_up_with_too_many_holes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
