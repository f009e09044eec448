/* SPDX-License-Identifier: Apache-2.0 */
/* parts_test.c - compares counts of layers that drop a part with an exhaustive search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "search/parts.h"
#include "support/small_search.h"

enum { SEED = 20261123, PARTS_MOST = 3, CASES = 100 * HR_COUNT };

/* Draws small numbers, so that ties and tight limits are common. Some sets cost more than the sum
 * of their parts, and some parts cost more in one place. */
static void open_search(small_search *s, uint64_t turn)
{
    uint32_t what = 100;
    const int64_t most = draw(SEED, turn, 0) % 3 ? 12 : 60;
    const bool more = draw(SEED, turn, 4) % 4 == 0, uneven = draw(SEED, turn, 5) % 4 == 0;
    const int32_t parts = (int32_t)between(SEED, turn, 2, 1, PARTS_MOST);
    int64_t saved[PARTS_MOST], ps[2][PARTS_MOST], base_work[HR_PROXY_PLACES_MOST][HR_PASSES];
    *s = (small_search){ .proxy.depth = { (int32_t)between(SEED, turn, 1, 5, LAYERS_MOST), false,
                                          3 } };
    if (parts == 3) s->proxy.depth.layers = 5;
    if (turn % 2) draw_kinds(s, SEED, turn, 90);
    const int32_t places = s->proxy.depth.places;
    s->set_count = 1 << parts;
    s->rest_count = (int32_t)between(SEED, turn, 3, 1, RESTS_MOST);
    for (int32_t pass = 0; pass < HR_PASSES; pass++) {
        s->slopes.step[pass] = between(SEED, turn, what++, 0, 6);
        for (int32_t place = 0; place < places; place++) {
            s->slopes.depth[place][pass] = between(SEED, turn, what++, 0, 5);
            base_work[place][pass] = between(SEED, turn, what++, 40, 40 + most);
        }
    }
    for (int32_t p = 0; p < parts; p++) {
        saved[p] = between(SEED, turn, what++, 0, most);
        ps[0][p] = between(SEED, turn, what++, 0, 9);
        ps[1][p] = between(SEED, turn, what++, 0, 9);
    }
    for (int32_t k = 0; k < s->set_count; k++) {
        s->sets[k] = (hr_proxy_set){ .recompute_set = (uint16_t)k, .kept = parts * most };
        for (int32_t place = 0; place < places; place++) {
            const int32_t kind = kind_of(s, place);
            s->sets[k].ps[place] = 20 + 7 * kind + (uneven && k == 1 && place == places - 1);
            for (int32_t p = 0; p < parts; p++)
                s->sets[k].ps[place] += k >> p & 1 ? ps[kind][p] : 0;
            if (more && k == 3) s->sets[k].ps[place] += 2;
            for (int32_t pass = 0; pass < HR_PASSES; pass++)
                s->sets[k].work[place][pass] = base_work[place][pass] +
                                               between(SEED, turn, what++, 0, most);
        }
        for (int32_t p = 0; p < parts; p++) s->sets[k].kept -= k >> p & 1 ? saved[p] : 0;
    }
    draw_rests(s, SEED, turn, what);
}

static void counts_of_parts_give_lower_bounds_and_often_answers(void **state)
{
    hr_layers layers;
    void *memory = open_layers(&layers);
    int32_t answers = 0, choices = 0, bounds = 0;
    (void)state;
    for (uint64_t turn = 0; turn < CASES; turn++) {
        small_search s;
        hr_parts parts;
        open_search(&s, turn);
        hr_parts_of(&s.proxy, s.sets, s.set_count, &parts);
        assert_true(parts.add_up);
        for (int64_t limit = 40; limit < 40 + 60 * s.proxy.depth.layers; limit += 29) {
            uint16_t chosen[LAYERS_MOST];
            hr_parts_best best;
            hr_layers_task task = { .proxy = &s.proxy,
                                    .sets = s.sets,
                                    .set_count = s.set_count,
                                    .slopes = &s.slopes,
                                    .limit = limit,
                                    .ps_most = INT64_MAX,
                                    .parts = &parts };
            const int64_t least = try_all(&s, limit);
            hr_parts_choose(&layers, &task, s.rests, s.rest_count, &best, chosen);
            assert_true(best.bound <= least);
            if (best.found) {
                assert_int_equal(ps_of(&s, chosen, best.chunk), best.ps);
                assert_true(peak_of(&s, chosen, best.chunk) <= limit);
                assert_true(best.ps >= least);
            }
            answers += best.found && best.ps == best.bound;
            choices += best.found && best.ps > best.bound;
            bounds += !best.found && least < INT64_MAX;
            if (least == INT64_MAX) continue;
            task.ps_most = least;
            hr_parts_choose(&layers, &task, s.rests, s.rest_count, &best, chosen);
            assert_true(best.bound <= least);
            task.ps_most = least - 1;
            hr_parts_choose(&layers, &task, s.rests, s.rest_count, &best, chosen);
            assert_false(best.found);
        }
    }
    print_message("%d answers, %d choices that may be beaten, %d bounds\n", answers, choices,
                  bounds);
    assert_true(answers > CASES && choices + bounds > 0);
    free(memory);
}

/* A product that makes two values is recomputed once for both. */
static void costs_of_parts_that_share_a_product_are_not_additive(void **state)
{
    small_search s;
    hr_parts parts;
    (void)state;
    s = (small_search){ .proxy.depth = { 5, false, 3 }, .set_count = 4 };
    for (int32_t k = 0; k < 4; k++) {
        s.sets[k].recompute_set = (uint16_t)k;
        s.sets[k].kept = 2 - (k & 1) - (k >> 1);
        for (int32_t place = 0; place < 3; place++) s.sets[k].ps[place] = 10 + 5 * (k > 0);
    }
    hr_parts_of(&s.proxy, s.sets, s.set_count, &parts);
    assert_false(parts.add_up);
    for (int32_t place = 0; place < 3; place++) s.sets[3].ps[place] = 20;
    hr_parts_of(&s.proxy, s.sets, s.set_count, &parts);
    assert_true(parts.add_up);
    hr_parts_of(&s.proxy, s.sets, 3, &parts);
    assert_false(parts.add_up);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_of_parts_give_lower_bounds_and_often_answers),
        cmocka_unit_test(costs_of_parts_that_share_a_product_are_not_additive),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
