/* SPDX-License-Identifier: Apache-2.0 */
/* fit/layers.c - Pareto lists of (kept, time), one layer after the other. */
#include "fit/layers.h"

#include <string.h>

#include "base/checked.h"

enum { STATES_ALL = 1 << 19 }; /* of all layers together: 12 MiB */

static int64_t room_of(int32_t layers)
{
    return hr_min((int64_t)layers * HR_LAYERS_STATES, STATES_ALL);
}

int64_t hr_layers_bytes(int32_t layers)
{
    return (room_of(layers) + 2 * HR_LAYERS_STATES) * (int64_t)sizeof(hr_layers_state) +
           (layers + 1) * (int64_t)sizeof(int64_t) + 4 * 64;
}

hr_status hr_layers_place(hr_layers *layers, int32_t count, hr_region *region, hr_error *err)
{
    layers->most = room_of(count);
    layers->states = hr_region_take(region, layers->most, sizeof *layers->states);
    layers->first = hr_region_take(region, count + 1, sizeof *layers->first);
    layers->spare = hr_region_take(region, 2 * HR_LAYERS_STATES, sizeof *layers->spare);
    if (layers->states && layers->first && layers->spare) return HR_OK;
    return hr_fail(err, HR_FAILURE, "no room to choose for %d layers", count);
}

/* a never after b in a frontier: less kept, or as much in less time. */
static bool comes_first(const hr_layers_state *a, const hr_layers_state *b)
{
    return a->kept != b->kept ? a->kept < b->kept : a->ps <= b->ps;
}

/* Appends unless it is no better than the last. False: no room. */
static bool append(hr_layers_state *list, int32_t *count, const hr_layers_state *state,
                   int32_t most)
{
    if (*count && list[*count - 1].ps <= state->ps) return true;
    if (*count == most) return false;
    list[(*count)++] = *state;
    return true;
}

/* Merges two frontiers, one of them the states before with a set added, into `to`. */
static int32_t merge(const hr_layers_state *a, int32_t a_count, const hr_layers_state *before,
                     int32_t before_count, const hr_layers_state *added, int64_t ps_most,
                     hr_layers_state *to, int32_t most, bool *thinned)
{
    int32_t i = 0, j = 0, count = 0;
    while (i < a_count || j < before_count) {
        hr_layers_state next = *added;
        if (j < before_count) {
            next.kept += before[j].kept;
            next.ps += before[j].ps;
            next.from = j;
        }
        const bool first = j == before_count || (i < a_count && comes_first(&a[i], &next));
        if (first) next = a[i++];
        else j++;
        if (next.ps > ps_most) continue;
        if (!append(to, &count, &next, most)) {
            *thinned = true;
            break;
        }
    }
    return count;
}

/* States of `before` that leave room for so much work: those in front. */
static int32_t fitting(const hr_layers_state *before, int32_t count, int64_t limit, int64_t work)
{
    int32_t low = 0, high = count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (before[middle].kept + work <= limit) low = middle + 1;
        else high = middle;
    }
    return low;
}

static int64_t fastest_of(const hr_twin_set *sets, int32_t set_count, int32_t place)
{
    int64_t least = INT64_MAX;
    for (int32_t k = 0; k < set_count; k++) least = hr_min(least, sets[k].ps[place]);
    return least;
}

int32_t hr_layers_choose(hr_layers *layers, const hr_twin *twin, const hr_twin_set *sets,
                         int32_t set_count, const hr_twin_slopes *slopes, int64_t limit,
                         int64_t ps_most, const hr_layers_state **frontier)
{
    const hr_layers_state start = { 0, 0, 0, 0 };
    const hr_layers_state *before = &start;
    int32_t before_count = 1;
    int64_t used = 0, ps_later = 0;
    layers->thinned = false;
    for (int32_t l = 0; l < twin->depth.layers; l++)
        ps_later += fastest_of(sets, set_count, hr_twin_place(twin, l));
    for (int32_t l = 0; l < twin->depth.layers; l++) {
        const int32_t place = hr_twin_place(twin, l);
        /* What is left is shared by the layers that come, so that none starves. */
        const int64_t share = (layers->most - used) / (twin->depth.layers - l);
        const int32_t most = (int32_t)hr_min(share, HR_LAYERS_STATES);
        hr_layers_state *list = layers->spare, *other = layers->spare + HR_LAYERS_STATES;
        int32_t count = 0;
        ps_later -= fastest_of(sets, set_count, place);
        for (int32_t k = 0; k < set_count; k++) {
            const int64_t work = hr_twin_work(twin, &sets[k], slopes, l);
            const int32_t fit = fitting(before, before_count, limit, work);
            const hr_layers_state added = { sets[k].kept, sets[k].ps[place], 0, (uint8_t)k };
            count = merge(list, count, before, fit, &added, ps_most - ps_later, other, most,
                          &layers->thinned);
            hr_layers_state *swap = list;
            list = other;
            other = swap;
        }
        layers->first[l] = used;
        memcpy(layers->states + used, list, (size_t)count * sizeof *list);
        before = layers->states + used;
        before_count = count;
        used += count;
    }
    layers->first[twin->depth.layers] = used;
    *frontier = before;
    return before_count;
}

void hr_layers_read(const hr_layers *layers, const hr_twin *twin, const hr_twin_set *sets,
                    int32_t state, uint8_t *dropped)
{
    for (int32_t l = twin->depth.layers - 1; l >= 0; l--) {
        const hr_layers_state *chosen = &layers->states[layers->first[l] + state];
        dropped[l] = sets[chosen->set].dropped;
        state = chosen->from;
    }
}

/* Keeping least below is never worse for the layers above. */
static bool possible(const hr_twin *twin, const hr_twin_set *sets, int32_t set_count,
                     const hr_twin_slopes *slopes, int64_t head, int64_t limit)
{
    int64_t kept = 0;
    for (int32_t l = 0; l < twin->depth.layers; l++) {
        int64_t least = INT64_MAX;
        for (int32_t k = 0; k < set_count; k++)
            if (kept + hr_twin_work(twin, &sets[k], slopes, l) <= limit)
                least = hr_min(least, sets[k].kept);
        if (least == INT64_MAX) return false;
        kept += least;
    }
    return kept + head <= limit;
}

int64_t hr_layers_least(const hr_twin *twin, const hr_twin_set *sets, int32_t set_count,
                        const hr_twin_slopes *slopes, int64_t head)
{
    int64_t low = head, high = head + 1;
    while (!possible(twin, sets, set_count, slopes, head, high)) {
        low = high;
        if (high > INT64_MAX / 4) return INT64_MAX;
        high *= 2;
    }
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (possible(twin, sets, set_count, slopes, head, middle)) high = middle;
        else low = middle + 1;
    }
    return high;
}

static bool beats(const hr_twin *twin, const hr_twin_set *a, const hr_twin_set *b)
{
    if (a->kept > b->kept) return false;
    for (int32_t place = 0; place < twin->depth.places; place++) {
        if (a->ps[place] > b->ps[place]) return false;
        for (int32_t pass = 0; pass < HR_PASSES; pass++)
            if (a->work[place][pass] > b->work[place][pass]) return false;
    }
    return true;
}

int32_t hr_layers_prune(const hr_twin *twin, hr_twin_set *sets, int32_t set_count)
{
    int32_t left = 0;
    for (int32_t k = 0; k < set_count; k++) {
        bool beaten = false;
        for (int32_t other = 0; other < set_count && !beaten; other++)
            beaten = other != k && beats(twin, &sets[other], &sets[k]) &&
                     (other < k || !beats(twin, &sets[k], &sets[other]));
        if (!beaten) sets[left++] = sets[k];
    }
    return left;
}
