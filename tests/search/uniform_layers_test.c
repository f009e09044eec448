/* SPDX-License-Identifier: Apache-2.0 */
/* uniform_layers_test.c - compares choices by counts with all choices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "search/uniform_layers.h"
#include "support/small_search.h"

enum { SEED = 20261122, SETS_MOST = 5, CASES = 100 * HR_COUNT };

/* Whether memory grows per layer by as much in both passes. Choices by counts are then exact. */
static bool has_equal_slopes(uint64_t turn)
{
    return draw(SEED, turn, 4) % 2;
}

/* Small numbers, so that ties and tight limits are common. */
static void open_search(small_search *s, uint64_t turn)
{
    uint32_t what = 100;
    const int64_t most = draw(SEED, turn, 0) % 3 ? 12 : 60;
    *s = (small_search){ .proxy.depth = { (int32_t)between(SEED, turn, 1, 5, LAYERS_MOST), false,
                                          3 } };
    s->set_count = (int32_t)between(SEED, turn, 2, 1, SETS_MOST);
    s->rest_count = (int32_t)between(SEED, turn, 3, 1, RESTS_MOST);
    for (int32_t pass = 0; pass < HR_PASSES; pass++) {
        s->slopes.step[pass] = between(SEED, turn, what++, -6, 6);
        for (int32_t place = 0; place < 3; place++)
            s->slopes.depth[place][pass] = between(SEED, turn, what++, 0, 5);
    }
    if (has_equal_slopes(turn)) s->slopes.step[1] = s->slopes.step[0];
    for (int32_t k = 0; k < s->set_count; k++) {
        s->sets[k].recompute_set = (uint16_t)k;
        s->sets[k].kept = between(SEED, turn, what++, 0, most);
        for (int32_t place = 0; place < 3; place++) {
            s->sets[k].ps[place] = between(SEED, turn, what++, 1, 40);
            for (int32_t pass = 0; pass < HR_PASSES; pass++)
                s->sets[k].work[place][pass] = between(SEED, turn, what++, 40, 40 + most);
        }
    }
    draw_rests(s, SEED, turn, what);
}

static void counts_find_what_every_choice_holds(void **state)
{
    hr_layers layers;
    void *memory = open_layers(&layers);
    int32_t exact = 0, bounds = 0;
    (void)state;
    for (uint64_t turn = 0; turn < CASES; turn++) {
        small_search s;
        open_search(&s, turn);
        for (int64_t limit = 40; limit < 40 + 60 * s.proxy.depth.layers; limit += 29) {
            uint16_t chosen[LAYERS_MOST];
            hr_uniform_best best;
            hr_layers_task task = { .proxy = &s.proxy,
                                    .sets = s.sets,
                                    .set_count = s.set_count,
                                    .slopes = &s.slopes,
                                    .limit = limit,
                                    .ps_most = INT64_MAX };
            const int64_t least = try_all(&s, limit);
            const bool any = hr_uniform_choose(&layers, &task, s.rests, s.rest_count, &best,
                                               chosen);
            const int64_t bound = hr_uniform_bound(&layers, &task, s.rests, s.rest_count);
            assert_false(best.out_of_room);
            assert_true(bound <= least);
            if (!any) {
                assert_int_equal(least, INT64_MAX);
                continue;
            }
            assert_int_equal(ps_of(&s, chosen, best.chunk), best.ps);
            if (has_equal_slopes(turn) || peak_of(&s, chosen, best.chunk) <= limit) {
                assert_true(peak_of(&s, chosen, best.chunk) <= limit);
                assert_int_equal(best.ps, least);
                exact++;
            } else {
                assert_true(best.ps <= least);
                bounds++;
            }
            task.ps_most = best.ps;
            assert_true(hr_uniform_choose(&layers, &task, s.rests, s.rest_count, &best, chosen));
            task.ps_most = best.ps - 1;
            assert_false(hr_uniform_choose(&layers, &task, s.rests, s.rest_count, &best, chosen));
        }
    }
    print_message("%d exact, %d bounds\n", exact, bounds);
    assert_true(exact > CASES);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_find_what_every_choice_holds),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
