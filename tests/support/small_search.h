/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/small_search.h - a choice of recompute sets per layer, small enough to try all. */
#ifndef HR_TESTS_SUPPORT_SMALL_SEARCH_H
#define HR_TESTS_SUPPORT_SMALL_SEARCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/checked.h"
#include "search/layers.h"
#include "support/random_config.h"

enum { LAYERS_MOST = 7, RESTS_MOST = 3 };

typedef struct {
    hr_proxy_model proxy;
    hr_proxy_set sets[HR_FIT_SETS_MOST];
    hr_proxy_rest rests[RESTS_MOST];
    hr_proxy_slopes slopes;
    int32_t set_count, rest_count;
    uint8_t place[LAYERS_MOST];
} small_search;

/* Memory for hr_layers of LAYERS_MOST layers; the caller frees it. */
static inline void *open_layers(hr_layers *layers)
{
    hr_error err;
    const int64_t bytes = hr_layers_bytes(LAYERS_MOST);
    void *memory = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
    assert_non_null(memory);
    hr_region region = hr_region_over(memory, bytes);
    assert_int_equal(hr_layers_place(layers, LAYERS_MOST, &region, &err), HR_OK);
    return memory;
}

/* Layers of two kinds, each of them between the first and the last layer. */
static inline void draw_kinds(small_search *s, uint64_t seed, uint64_t turn, uint32_t what)
{
    const int32_t last = s->proxy.depth.layers - 1;
    uint8_t *kinds = s->proxy.kinds;
    s->proxy.depth.places = 4;
    s->proxy.depth.place = s->place;
    for (int32_t l = 1; l < last; l++)
        s->place[l] = (uint8_t)(l < 3 ? l : between(seed, turn, what + (uint32_t)l, 1, 2));
    s->place[last] = 3;
    kinds[2] = kinds[3] = 1; /* of the larger proxy: first, both, the second again, last */
    kinds[0] = draw(seed, turn, what) % 2;
    kinds[4] = draw(seed, turn, what + 1) % 2;
}

/* The kind of the layers in a place. */
static inline int32_t kind_of(const small_search *s, int32_t place)
{
    if (!hr_proxy_is_mixed(&s->proxy)) return 0;
    return s->proxy.kinds[place == 3 ? 4 : place];
}

static inline void draw_rests(small_search *s, uint64_t seed, uint64_t turn, uint32_t what)
{
    for (int32_t c = 0; c < s->rest_count; c++)
        s->rests[c] = (hr_proxy_rest){ between(seed, turn, what++, 0, 80),
                                       between(seed, turn, what++, 0, 120),
                                       between(seed, turn, what++, 0, 30) };
}

static inline int64_t peak_of(const small_search *s, const uint16_t *chosen, int32_t rest)
{
    int64_t kept = 0, peak = s->rests[rest].other;
    for (int32_t l = 0; l < s->proxy.depth.layers; l++) {
        const hr_proxy_set *set = &s->sets[chosen[l]];
        peak = hr_max(peak, kept + hr_proxy_work(&s->proxy, set, &s->slopes, l));
        kept += set->kept;
    }
    return hr_max(peak, kept + s->rests[rest].head);
}

static inline int64_t ps_of(const small_search *s, const uint16_t *chosen, int32_t rest)
{
    int64_t ps = s->rests[rest].ps;
    for (int32_t l = 0; l < s->proxy.depth.layers; l++)
        ps += s->sets[chosen[l]].ps[hr_proxy_place(&s->proxy, l)];
    return ps;
}

/* The least time within a limit; INT64_MAX if nothing fits. */
static inline int64_t try_all(const small_search *s, int64_t limit)
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

#endif
