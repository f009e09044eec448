/* SPDX-License-Identifier: Apache-2.0 */
/* search/layers.c - builds Pareto lists of (kept, time), layer by layer. */
#include "search/layers.h"

#include <string.h>

#include "base/checked.h"

enum {
    STATES_ALL = 1 << 19,                /* of all layers together: 12 MiB */
    COARSE_MERGED = 8 * HR_LAYERS_COARSE /* of one layer, while its sets are merged coarsely */
};

static int64_t room_of(int32_t layers)
{
    return hr_min((int64_t)layers * HR_LAYERS_STATES, STATES_ALL);
}

int64_t hr_layers_bytes(int32_t layers)
{
    return (room_of(layers) + 3 * HR_LAYERS_STATES) * (int64_t)sizeof(hr_layers_state) +
           2 * (layers + 1) * (int64_t)sizeof(int64_t) + HR_LAYERS_UNIFORM_BYTES + 5 * 64;
}

hr_status hr_layers_place(hr_layers *layers, int32_t count, hr_region *region, hr_error *err)
{
    layers->most = room_of(count);
    layers->work = 0;
    layers->work_most = HR_LAYERS_WORK_MOST;
    layers->states = hr_region_take(region, layers->most, sizeof *layers->states);
    layers->first = hr_region_take(region, 2 * ((int64_t)count + 1), sizeof *layers->first);
    layers->spare = hr_region_take(region, 3 * HR_LAYERS_STATES, sizeof *layers->spare);
    layers->uniform = hr_region_take(region, HR_LAYERS_UNIFORM_BYTES, 1);
    if (layers->states && layers->first && layers->spare && layers->uniform) return HR_OK;
    return hr_fail(err, HR_FAILURE, "out of memory for the search over %d layers", count);
}

/* True if a sorts before b in a frontier: it keeps less, or as much in no more time. */
static bool comes_first(const hr_layers_state *a, const hr_layers_state *b)
{
    return a->kept != b->kept ? a->kept < b->kept : a->ps <= b->ps;
}

/* ---- a bound ---- */

/* The lower convex envelope of (kept, time) of the sets in middle layers. */
typedef struct {
    int64_t kept[HR_FIT_SETS_MOST], ps[HR_FIT_SETS_MOST];
    double slope[HR_FIT_SETS_MOST]; /* to the next point */
    int32_t count;
} envelope;

/* True if the point (kept, ps) makes the last point of the envelope redundant: the last lies on
 * or above the line from the point before it to the new one. */
static bool is_above(const envelope *e, int64_t kept, int64_t ps)
{
    const int32_t last = e->count - 1;
    const double run = (double)(kept - e->kept[last - 1]), rise = (double)(ps - e->ps[last - 1]);
    const double at = (double)(e->kept[last] - e->kept[last - 1]) / run * rise;
    return (double)(e->ps[last] - e->ps[last - 1]) >= at;
}

static void close_envelope(envelope *e)
{
    for (int32_t i = 0; i + 1 < e->count; i++)
        e->slope[i] = (double)(e->ps[i + 1] - e->ps[i]) / (double)(e->kept[i + 1] - e->kept[i]);
}

/* In place: an envelope is too large for the stack. */
static void envelope_of(const hr_proxy_set *sets, int32_t set_count, int32_t place, envelope *e)
{
    int64_t after = INT64_MIN;
    e->count = 0;
    for (;;) {
        /* Visits the sets by rising kept bytes; of equal ones only the fastest counts. */
        int64_t kept = INT64_MAX, ps = INT64_MAX;
        for (int32_t k = 0; k < set_count; k++) {
            if (sets[k].kept <= after || sets[k].kept > kept) continue;
            ps = sets[k].kept < kept ? sets[k].ps[place] : hr_min(ps, sets[k].ps[place]);
            kept = sets[k].kept;
        }
        if (kept == INT64_MAX) break;
        after = kept;
        if (e->count && ps >= e->ps[e->count - 1]) continue;
        while (e->count >= 2 && is_above(e, kept, ps)) e->count--;
        e->kept[e->count] = kept;
        e->ps[e->count++] = ps;
    }
    close_envelope(e);
}

static int64_t fastest_of(const hr_layers_task *task, int32_t place)
{
    int64_t least = INT64_MAX;
    for (int32_t k = 0; k < task->set_count; k++) least = hr_min(least, task->sets[k].ps[place]);
    return least;
}

static int64_t leanest_of(const hr_layers_task *task)
{
    int64_t least = INT64_MAX;
    for (int32_t k = 0; k < task->set_count; k++) least = hr_min(least, task->sets[k].kept);
    return least;
}

/* The envelope of each middle place; of every place in a model that is its own proxy. */
typedef struct {
    envelope of[HR_PROXY_PLACES_MOST];
    int32_t count;
} envelopes;

static void envelop(const hr_layers_task *task, envelopes *middle)
{
    const hr_proxy_depth *depth = &task->proxy->depth;
    middle->count = depth->exact ? depth->places : hr_proxy_groups(task->proxy);
    for (int32_t i = 0; i < middle->count; i++)
        envelope_of(task->sets, task->set_count, depth->exact ? i : 1 + i, &middle->of[i]);
}

/* Lower bound on the cost of the remaining layers: the envelope of all middle layers together, the
 * lines of each sorted by the time that a byte saves. */
typedef struct {
    int64_t kept[HR_PROXY_PLACES_MOST * HR_FIT_SETS_MOST],
        ps[HR_PROXY_PLACES_MOST * HR_FIT_SETS_MOST];
    double slope[HR_PROXY_PLACES_MOST * HR_FIT_SETS_MOST]; /* to the next point */
    int32_t count;
    int64_t room;    /* bytes that the middle layers may keep if the layers below keep nothing */
    int64_t ends_ps; /* time of the other layers */
    int32_t at;      /* index in the envelope, from the previous query */
} outlook;

/* Returns the index of a layer's envelope; HR_NONE for layers without one. */
static int32_t middle_of(const hr_proxy_model *proxy, int32_t layer)
{
    const int32_t place = hr_proxy_place(proxy, layer);
    if (proxy->depth.exact) return place;
    return place == 0 || place == proxy->depth.places - 1 ? HR_NONE : place - 1;
}

static void join(const envelopes *middle, const int64_t *layers, outlook *ahead)
{
    int32_t at[HR_PROXY_PLACES_MOST] = { 0 };
    ahead->count = 1;
    ahead->kept[0] = ahead->ps[0] = 0;
    for (int32_t i = 0; i < middle->count; i++) {
        ahead->kept[0] += layers[i] * middle->of[i].kept[0];
        ahead->ps[0] += layers[i] * middle->of[i].ps[0];
    }
    for (;; ahead->count++) {
        int32_t best = HR_NONE;
        for (int32_t i = 0; i < middle->count; i++) {
            const envelope *e = &middle->of[i];
            if (layers[i] == 0 || at[i] + 1 == e->count) continue;
            if (best == HR_NONE || e->slope[at[i]] < middle->of[best].slope[at[best]]) best = i;
        }
        if (best == HR_NONE) break;
        const envelope *e = &middle->of[best];
        const int32_t from = at[best]++, last = ahead->count - 1;
        ahead->slope[last] = e->slope[from];
        ahead->kept[last + 1] = ahead->kept[last] +
                                layers[best] * (e->kept[from + 1] - e->kept[from]);
        ahead->ps[last + 1] = ahead->ps[last] + layers[best] * (e->ps[from + 1] - e->ps[from]);
    }
    ahead->at = ahead->count - 1;
}

static void look_ahead(const hr_layers_task *task, const envelopes *middle, int32_t next,
                       outlook *ahead)
{
    int64_t layers[HR_PROXY_PLACES_MOST] = { 0 };
    ahead->room = task->limit - task->head;
    ahead->ends_ps = 0;
    for (int32_t l = next; l < task->proxy->depth.layers; l++) {
        const int32_t i = middle_of(task->proxy, l);
        if (i != HR_NONE) {
            layers[i]++;
            continue;
        }
        ahead->ends_ps += fastest_of(task, hr_proxy_place(task->proxy, l));
        ahead->room -= leanest_of(task);
    }
    join(middle, layers, ahead);
}

/* Returns the bound in picoseconds, lowered slightly to be safe from rounding; INT64_MAX if
 * `kept` leaves too little room. Fast when `kept` rises from query to query. */
static int64_t ps_ahead(outlook *ahead, int64_t kept)
{
    const int64_t room = ahead->room - kept;
    const int32_t last = ahead->count - 1;
    if (room < ahead->kept[0]) return INT64_MAX;
    if (room >= ahead->kept[last]) return ahead->ends_ps + ahead->ps[last];
    if (ahead->at == last || room >= ahead->kept[ahead->at + 1]) ahead->at = last - 1;
    while (room < ahead->kept[ahead->at]) ahead->at--;
    const double ps = (double)ahead->ps[ahead->at] +
                      ahead->slope[ahead->at] * (double)(room - ahead->kept[ahead->at]);
    return ahead->ends_ps + (int64_t)(ps * (1 - 1e-9));
}

/* Too large for the stack: in the memory of the searches over counts, which do not run then. */
typedef struct {
    envelopes middle;
    outlook ahead;
} bounding;

_Static_assert(sizeof(bounding) <= HR_LAYERS_UNIFORM_BYTES, "placed there");

int64_t hr_layers_bound(hr_layers *layers, const hr_layers_task *task)
{
    bounding *b = layers->uniform;
    envelop(task, &b->middle);
    look_ahead(task, &b->middle, 0, &b->ahead);
    return ps_ahead(&b->ahead, 0);
}

/* ---- the lists ---- */

/* Appends a state unless the last one is at least as good. Returns false if the list is full. */
static bool append(hr_layers_state *list, int32_t *count, const hr_layers_state *state)
{
    if (*count && list[*count - 1].ps <= state->ps) return true;
    if (*count == HR_LAYERS_STATES) return false;
    list[(*count)++] = *state;
    return true;
}

/* Adds one set to every previous state. Drops states that cannot end within the limits. */
static int32_t extend(outlook *ahead, int64_t ps_most, const hr_layers_state *before,
                      int32_t before_count, const hr_layers_state *added, hr_layers_state *to)
{
    int32_t count = 0;
    for (int32_t j = 0; j < before_count; j++) {
        hr_layers_state next = *added;
        next.kept += before[j].kept;
        next.ps += before[j].ps;
        next.from = j;
        const int64_t ps = ps_ahead(ahead, next.kept);
        if (ps != INT64_MAX && next.ps <= ps_most - ps) to[count++] = next;
    }
    return count;
}

/* Merges two frontiers into one. */
static int32_t merge(const hr_layers_state *a, int32_t a_count, const hr_layers_state *b,
                     int32_t b_count, hr_layers_state *to, bool *thinned)
{
    int32_t i = 0, j = 0, count = 0;
    while (i < a_count || j < b_count) {
        const bool first = j == b_count || (i < a_count && comes_first(&a[i], &b[j]));
        if (append(to, &count, first ? &a[i++] : &b[j++])) continue;
        *thinned = true;
        break;
    }
    return count;
}

/* Returns how many states, counted from the front, leave room for `work`. */
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

/* Reduces a list to `most` states at even intervals, including both ends. */
static int32_t thin(hr_layers_state *list, int32_t count, int32_t most, bool *thinned)
{
    if (count <= most) return count;
    for (int32_t i = 0; i < most; i++)
        list[i] = list[(int64_t)i * (count - 1) / hr_max(most - 1, 1)];
    *thinned = true;
    return most;
}

int32_t hr_layers_choose(hr_layers *layers, const hr_layers_task *task, int32_t states_most,
                         const hr_layers_state **frontier)
{
    static const hr_layers_state start = { 0, 0, 0, 0 };
    const hr_layers_state *before = &start;
    const int32_t depth = task->proxy->depth.layers;
    bounding *b = layers->uniform;
    envelop(task, &b->middle);
    int32_t before_count = 1;
    int64_t used = 0;
    layers->thinned = false;
    for (int32_t l = 0; l < depth; l++) {
        const int32_t place = hr_proxy_place(task->proxy, l);
        look_ahead(task, &b->middle, l + 1, &b->ahead);
        /* Divides the remaining room among the remaining layers, so that every layer gets some. */
        const int64_t wanted = hr_layers_spent(layers) ? hr_min(states_most, HR_LAYERS_COARSE)
                                                       : states_most;
        const int64_t share = hr_min((layers->most - used) / (depth - l), wanted);
        hr_layers_state *list = layers->spare, *other = layers->spare + HR_LAYERS_STATES;
        hr_layers_state *extended = other + HR_LAYERS_STATES;
        int32_t count = 0;
        for (int32_t k = 0; k < task->set_count; k++) {
            const hr_proxy_set *set = &task->sets[k];
            const int64_t work = hr_proxy_work(task->proxy, set, task->slopes, l);
            const int32_t fit = fitting(before, before_count, task->limit, work);
            const hr_layers_state added = { set->kept, set->ps[place], 0, (uint16_t)k };
            const int32_t more = extend(&b->ahead, task->ps_most, before, fit, &added, extended);
            layers->work += fit + more;
            if (more == 0) continue;
            layers->work += count;
            count = merge(list, count, extended, more, other, &layers->thinned);
            hr_layers_state *swap = list;
            list = other;
            other = swap;
            if (wanted <= HR_LAYERS_COARSE)
                count = thin(list, count, COARSE_MERGED, &layers->thinned);
        }
        count = thin(list, count, (int32_t)share, &layers->thinned);
        layers->first[l] = used;
        memcpy(layers->states + used, list, (size_t)count * sizeof *list);
        before = layers->states + used;
        before_count = count;
        used += count;
    }
    layers->first[depth] = used;
    *frontier = before;
    return before_count;
}

void hr_layers_read(const hr_layers *layers, const hr_layers_task *task, int32_t state,
                    uint16_t *chosen)
{
    for (int32_t l = task->proxy->depth.layers - 1; l >= 0; l--) {
        const hr_layers_state *at = &layers->states[layers->first[l] + state];
        chosen[l] = at->set;
        state = at->from;
    }
}

/* Sorts indices of sets by kept bytes; the order of equal ones stays. */
static void sort_by_kept(const hr_proxy_set *sets, int32_t set_count, uint16_t *order)
{
    for (int32_t k = 0; k < set_count; k++) {
        int32_t i = k;
        for (; i > 0 && sets[order[i - 1]].kept > sets[k].kept; i--) order[i] = order[i - 1];
        order[i] = (uint16_t)k;
    }
}

/* Tells whether some choice is within the limit. Each layer takes the set with the fewest kept
 * bytes whose work fits: keeping less below never hurts the layers above. */
static bool possible(const hr_proxy_model *proxy, const hr_proxy_set *sets, int32_t set_count,
                     const uint16_t *order, const hr_proxy_slopes *slopes, int64_t head,
                     int64_t limit, uint16_t *chosen)
{
    int64_t kept = 0;
    for (int32_t l = 0; l < proxy->depth.layers; l++) {
        int32_t i = 0;
        while (i < set_count && kept + hr_proxy_work(proxy, &sets[order[i]], slopes, l) > limit)
            i++;
        if (i == set_count) return false;
        if (chosen) chosen[l] = order[i];
        kept += sets[order[i]].kept;
    }
    return kept + head <= limit;
}

bool hr_layers_have_room(const hr_layers_task *task)
{
    uint16_t order[HR_FIT_SETS_MOST];
    sort_by_kept(task->sets, task->set_count, order);
    return task->head <= task->limit && possible(task->proxy, task->sets, task->set_count, order,
                                                 task->slopes, task->head, task->limit, NULL);
}

int64_t hr_layers_least(const hr_proxy_model *proxy, const hr_proxy_set *sets, int32_t set_count,
                        const hr_proxy_slopes *slopes, int64_t head, uint16_t *chosen)
{
    uint16_t order[HR_FIT_SETS_MOST];
    int64_t low = head, high = head + 1;
    sort_by_kept(sets, set_count, order);
    while (!possible(proxy, sets, set_count, order, slopes, head, high, NULL)) {
        low = high;
        if (high > INT64_MAX / 4) return INT64_MAX;
        high *= 2;
    }
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (possible(proxy, sets, set_count, order, slopes, head, middle, NULL)) high = middle;
        else low = middle + 1;
    }
    if (chosen) (void)possible(proxy, sets, set_count, order, slopes, head, high, chosen);
    return high;
}

static bool beats(const hr_proxy_model *proxy, const hr_proxy_set *a, const hr_proxy_set *b)
{
    if (a->kept > b->kept) return false;
    for (int32_t place = 0; place < proxy->depth.places; place++) {
        if (a->ps[place] > b->ps[place]) return false;
        for (int32_t pass = 0; pass < HR_PASSES; pass++)
            if (a->work[place][pass] > b->work[place][pass]) return false;
    }
    return true;
}

/* Sorts a set that beats another before it; equal sets keep their order. */
static int compare_sets(const hr_proxy_model *proxy, const hr_proxy_set *a, const hr_proxy_set *b)
{
    if (a->kept != b->kept) return a->kept < b->kept ? -1 : 1;
    for (int32_t place = 0; place < proxy->depth.places; place++) {
        if (a->ps[place] != b->ps[place]) return a->ps[place] < b->ps[place] ? -1 : 1;
        for (int32_t pass = 0; pass < HR_PASSES; pass++)
            if (a->work[place][pass] != b->work[place][pass])
                return a->work[place][pass] < b->work[place][pass] ? -1 : 1;
    }
    return 0;
}

/* Merge sort of indices, bottom-up. */
static void sort_sets(const hr_proxy_model *proxy, const hr_proxy_set *sets, int32_t count,
                      uint16_t *order)
{
    uint16_t other[HR_FIT_SETS_MOST];
    for (int32_t k = 0; k < count; k++) order[k] = (uint16_t)k;
    for (int32_t run = 1; run < count; run *= 2) {
        for (int32_t first = 0; first < count; first += 2 * run) {
            const int32_t middle = (int32_t)hr_min(first + run, count);
            const int32_t end = (int32_t)hr_min(first + 2 * run, count);
            int32_t i = first, j = middle;
            for (int32_t to = first; to < end; to++) {
                const bool left = j == end || (i < middle && compare_sets(proxy, &sets[order[i]],
                                                                          &sets[order[j]]) <= 0);
                other[to] = left ? order[i++] : order[j++];
            }
        }
        memcpy(order, other, (size_t)count * sizeof *order);
    }
}

/* Beating is transitive, so comparing with the remaining sets is enough. The set that beat the
 * previous one often beats this one too, so it is tried first. */
int32_t hr_layers_prune(const hr_proxy_model *proxy, hr_proxy_set *sets, int32_t set_count)
{
    uint16_t order[HR_FIT_SETS_MOST], *left = order; /* what is left takes the place of what was */
    uint64_t stays[HR_FIT_SETS_MOST / 64] = { 0 };
    int32_t left_count = 0, recent = 0, count = 0;
    sort_sets(proxy, sets, set_count, order);
    for (int32_t i = 0; i < set_count; i++) {
        const uint16_t here = order[i];
        const hr_proxy_set *set = &sets[here];
        bool beaten = left_count && beats(proxy, &sets[left[recent]], set);
        for (int32_t k = 0; k < left_count && !beaten; k++) {
            beaten = beats(proxy, &sets[left[k]], set);
            if (beaten) recent = k;
        }
        if (beaten) continue;
        stays[here / 64] |= UINT64_C(1) << here % 64;
        left[left_count++] = here;
    }
    for (int32_t k = 0; k < set_count; k++) {
        if (!(stays[k / 64] >> k % 64 & 1)) continue;
        if (count < k) sets[count] = sets[k];
        count++;
    }
    return count;
}
