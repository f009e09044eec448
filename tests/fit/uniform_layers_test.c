/* SPDX-License-Identifier: Apache-2.0 */
/* uniform_layers_test.c - compares choices by counts of sets with an exhaustive search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "fit/uniform_layers.h"
#include "support/random_config.h"

enum { SEED = 20261122, LAYERS_MOST = 7, SETS_MOST = 5, RESTS_MOST = 3, CASES = 100 * HR_COUNT };

typedef struct {
    hr_proxy_model proxy;
    hr_proxy_set sets[HR_FIT_SETS_MOST];
    hr_proxy_rest rests[RESTS_MOST];
    hr_proxy_slopes slopes;
    int32_t set_count, rest_count;
    bool one_clock;
} scene;

/* Draws small numbers, so that ties and tight limits are common. */
static void open_scene(scene *s, uint64_t turn)
{
    uint32_t what = 100;
    const int64_t most = draw(SEED, turn, 0) % 3 ? 12 : 60;
    *s = (scene){ .proxy.depth = { (int32_t)between(SEED, turn, 1, 5, LAYERS_MOST), false, 3 } };
    s->set_count = (int32_t)between(SEED, turn, 2, 1, SETS_MOST);
    s->rest_count = (int32_t)between(SEED, turn, 3, 1, RESTS_MOST);
    s->one_clock = draw(SEED, turn, 4) % 2;
    for (int32_t pass = 0; pass < HR_PASSES; pass++) {
        s->slopes.step[pass] = between(SEED, turn, what++, -6, 6);
        for (int32_t place = 0; place < 3; place++)
            s->slopes.depth[place][pass] = between(SEED, turn, what++, 0, 5);
    }
    if (s->one_clock) s->slopes.step[1] = s->slopes.step[0];
    for (int32_t k = 0; k < s->set_count; k++) {
        s->sets[k].recompute_set = (uint16_t)k;
        s->sets[k].kept = between(SEED, turn, what++, 0, most);
        for (int32_t place = 0; place < 3; place++) {
            s->sets[k].ps[place] = between(SEED, turn, what++, 1, 40);
            for (int32_t pass = 0; pass < HR_PASSES; pass++)
                s->sets[k].work[place][pass] = between(SEED, turn, what++, 40, 40 + most);
        }
    }
    for (int32_t c = 0; c < s->rest_count; c++)
        s->rests[c] = (hr_proxy_rest){ between(SEED, turn, what++, 0, 80),
                                       between(SEED, turn, what++, 0, 120),
                                       between(SEED, turn, what++, 0, 30) };
}

static int64_t peak_of(const scene *s, const uint16_t *chosen, int32_t rest)
{
    int64_t kept = 0, peak = s->rests[rest].other;
    for (int32_t l = 0; l < s->proxy.depth.layers; l++) {
        const hr_proxy_set *set = &s->sets[chosen[l]];
        peak = hr_max(peak, kept + hr_proxy_work(&s->proxy, set, &s->slopes, l));
        kept += set->kept;
    }
    return hr_max(peak, kept + s->rests[rest].head);
}

static int64_t ps_of(const scene *s, const uint16_t *chosen, int32_t rest)
{
    int64_t ps = s->rests[rest].ps;
    for (int32_t l = 0; l < s->proxy.depth.layers; l++)
        ps += s->sets[chosen[l]].ps[hr_proxy_place(&s->proxy, l)];
    return ps;
}

/* The least time within a limit; INT64_MAX if nothing fits. */
static int64_t try_all(const scene *s, int64_t limit)
{
    int64_t best = INT64_MAX, count = s->rest_count;
    for (int32_t l = 0; l < s->proxy.depth.layers; l++) count *= s->set_count;
    for (int64_t i = 0; i < count; i++) {
        uint16_t chosen[LAYERS_MOST];
        int64_t at = i;
        for (int32_t l = 0; l < s->proxy.depth.layers; l++, at /= s->set_count)
            chosen[l] = (uint16_t)(at % s->set_count);
        const int64_t ps = ps_of(s, chosen, (int32_t)at);
        if (ps < best && peak_of(s, chosen, (int32_t)at) <= limit) best = ps;
    }
    return best;
}

static void counts_match_an_exhaustive_search(void **state)
{
    hr_error err;
    hr_layers layers;
    const int64_t bytes = hr_layers_bytes(LAYERS_MOST);
    void *memory = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
    int32_t exact = 0, bounds = 0;
    (void)state;
    assert_non_null(memory);
    hr_region region = hr_region_over(memory, bytes);
    assert_int_equal(hr_layers_place(&layers, LAYERS_MOST, &region, &err), HR_OK);
    for (uint64_t turn = 0; turn < CASES; turn++) {
        scene s;
        open_scene(&s, turn);
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
            if (s.one_clock || peak_of(&s, chosen, best.chunk) <= limit) {
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
        cmocka_unit_test(counts_match_an_exhaustive_search),
    };
    return cmocka_run_group_tests(tests, 0, 0);
}
