/* SPDX-License-Identifier: Apache-2.0 */
/* search/parts.c - builds Pareto lists of (excess bytes, time) over bundles of layers that
 * recompute a part. */
#include "search/parts.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

enum {
    BUNDLES_MOST = HR_PARTS_MOST * 32, /* of 1, 2, 4 ... layers */
    /* the first guess: the best time exceeds the bound by this fraction of it */
    GAP_FIRST = 1 << 18,
    GAP_GROWTH = 8,
    SHRINKS_MOST = 3
};

/* The option to recompute a part in `layers` more layers. */
typedef struct {
    int32_t part;
    int64_t layers, saved, ps;
} bundle;

/* The remaining bundles of one part: one line of a convex function of the bytes to save. */
typedef struct {
    int64_t saved, ps; /* sums over the previous lines */
    double slope;
} line;

typedef struct {
    const hr_layers_task *task;
    const hr_proxy_rest *rests;
    int32_t rest_count;
    int64_t ps_most;
    bundle bundles[BUNDLES_MOST];
    int32_t bundle_count;
    int32_t by_price[HR_PARTS_MOST], priced; /* parts by rising time per byte saved */
    int64_t to_come[HR_PARTS_MOST];          /* layers that may still recompute each part */
    line lines[HR_PARTS_MOST + 1];
    int32_t line_count, at;
    hr_layers_state *nodes, *lists[2];
    int64_t node_count, node_most, list_most;
    int32_t ends[HR_FIT_SETS_MOST * HR_FIT_CHUNKS_MOST]; /* chunk and last set of each root node */
    hr_layers *layers;                                   /* where visited states are counted */
    bool out_of_room;
} search;

/* True if a layer in `place` may belong to the group. */
static bool is_of(const hr_proxy_model *proxy, int32_t place, int32_t group)
{
    if (!hr_proxy_is_mixed(proxy)) return true;
    const int32_t last = proxy->depth.places - 1;
    const int32_t layer = place == 0 ? 0 : proxy->depth.layers - 1;
    return (place == 0 || place == last ? hr_proxy_group(proxy, layer) : place - 1) == group;
}

/* Adds what the parts save and cost in the layers of one group. */
static void add_group(const hr_proxy_model *proxy, const hr_proxy_set *sets, int32_t set_count,
                      int32_t group, hr_parts *parts)
{
    const int32_t first = parts->count;
    int64_t layers = 0;
    for (int32_t l = 0; l < proxy->depth.layers - 1; l++)
        layers += hr_proxy_group(proxy, l) == group;
    for (int32_t k = 1; k < set_count && parts->add_up; k *= 2) {
        const int32_t i = parts->count++;
        int64_t least = INT64_MAX;
        for (int32_t place = 0; place < proxy->depth.places; place++)
            if (is_of(proxy, place, group))
                least = hr_min(least, sets[k].ps[place] - sets[0].ps[place]);
        parts->parts[i].recompute_set = sets[k].recompute_set;
        parts->parts[i].group = group;
        parts->parts[i].layers = layers;
        parts->parts[i].saved = sets[0].kept - sets[k].kept;
        parts->parts[i].ps = least;
        parts->add_up &= parts->parts[i].saved >= 0 && least >= 0;
    }
    for (int32_t k = 1; k < set_count && parts->add_up; k++) {
        hr_intermediates together = 0;
        int64_t saved = 0, ps = 0;
        for (int32_t i = first; i < parts->count; i++) {
            if (!(k >> (i - first) & 1)) continue;
            together |= parts->parts[i].recompute_set;
            saved += parts->parts[i].saved;
            ps += parts->parts[i].ps;
        }
        parts->add_up &= sets[k].recompute_set == together && sets[k].kept >= sets[0].kept - saved;
        for (int32_t place = 0; place < proxy->depth.places; place++)
            parts->add_up &= !is_of(proxy, place, group) ||
                             sets[k].ps[place] >= sets[0].ps[place] + ps;
    }
}

void hr_parts_of(const hr_proxy_model *proxy, const hr_proxy_set *sets, int32_t set_count,
                 hr_parts *parts)
{
    parts->count = 0;
    parts->add_up = sets[0].recompute_set == 0 && set_count > 1 &&
                    (set_count & (set_count - 1)) == 0;
    parts->kept = sets[0].kept;
    for (int32_t place = 0; place < proxy->depth.places; place++)
        parts->ps[place] = sets[0].ps[place];
    for (int32_t group = 0; group < hr_proxy_groups(proxy) && parts->add_up; group++)
        add_group(proxy, sets, set_count, group, parts);
}

/* ---- bounds on the remaining bundles */

/* Sorts the parts that save bytes by their price: time per byte. A part that saves none has no
 * price. */
static void sort_by_price(search *s)
{
    const hr_parts *all = s->task->parts;
    s->priced = 0;
    for (int32_t p = 0; p < all->count; p++) {
        int32_t i = s->priced;
        if (all->parts[p].saved == 0) continue;
        for (; i > 0; i--) {
            const int32_t other = s->by_price[i - 1];
            if ((double)all->parts[other].ps * (double)all->parts[p].saved <=
                (double)all->parts[p].ps * (double)all->parts[other].saved)
                break;
            s->by_price[i] = other;
        }
        s->by_price[i] = p;
        s->priced++;
    }
}

static void look_ahead(search *s)
{
    const hr_parts *all = s->task->parts;
    int64_t saved = 0, ps = 0;
    s->line_count = s->at = 0;
    for (int32_t i = 0; i < s->priced; i++) {
        const int32_t p = s->by_price[i];
        if (s->to_come[p] == 0) continue;
        s->lines[s->line_count++] = (line){
            saved, ps, (double)all->parts[p].ps / (double)all->parts[p].saved
        };
        saved += s->to_come[p] * all->parts[p].saved;
        ps += s->to_come[p] * all->parts[p].ps;
    }
    s->lines[s->line_count] = (line){ saved, ps, 0 };
}

/* Returns a lower bound on the time of saving `bytes` with the remaining bundles, lowered
 * slightly to be safe from rounding; INT64_MAX if they cannot save enough. `bytes` must not fall
 * from query to query. */
static inline int64_t ps_ahead(search *s, int64_t bytes)
{
    if (bytes <= 0) return 0;
    if (bytes > s->lines[s->line_count].saved) return INT64_MAX;
    while (bytes > s->lines[s->at + 1].saved) s->at++;
    const line *l = &s->lines[s->at];
    const double more = l->slope * (double)(bytes - l->saved);
    return hr_max(0, l->ps + (int64_t)(more - 1e-13 * ((double)l->ps + more)) - 1);
}

/* ---- the lists */

/* Encodes a chunk and the set of the last layer in one number. */
static int32_t end_of(int32_t chunk, int32_t set)
{
    return chunk * HR_FIT_SETS_MOST + set;
}

static int32_t add_node(search *s, int32_t from, int32_t what)
{
    if (s->node_count == s->node_most) {
        s->out_of_room = true;
        return 0;
    }
    s->nodes[s->node_count] = (hr_layers_state){ .from = from, .set = (uint16_t)what };
    return (int32_t)s->node_count++;
}

/* Adds a state unless another one is at least as good in both bytes and time. Along the list,
 * bytes rise and time falls. */
static int32_t put(search *s, int32_t count, const hr_layers_state *state)
{
    hr_layers_state *list = s->lists[0];
    int32_t low = count, high;
    while (low > 0 && list[low - 1].kept > state->kept) low--;
    if (low > 0 && list[low - 1].ps <= state->ps) return count;
    if (low > 0 && list[low - 1].kept == state->kept) low--;
    for (high = low; high < count && list[high].ps >= state->ps;) high++;
    if (high == low && count == s->list_most) {
        s->out_of_room = true;
        return count;
    }
    memmove(&list[low + 1], &list[high], (size_t)(count - high) * sizeof *list);
    list[low] = *state;
    return count + 1 - (high - low);
}

/* Lists excess bytes and time of every last layer and every chunk, when no other layer
 * recomputes anything. */
static int32_t start(search *s)
{
    const hr_layers_task *task = s->task;
    const int32_t last = task->proxy->depth.layers - 1;
    hr_layers_state *list = s->lists[0];
    int32_t count = 0;
    int64_t ps = 0;
    for (int32_t l = 0; l < last; l++) ps += task->parts->ps[hr_proxy_place(task->proxy, l)];
    for (int32_t k = 0; k < task->set_count; k++) {
        const hr_proxy_set *set = &task->sets[k];
        const int64_t work = hr_proxy_work(task->proxy, set, task->slopes, last);
        for (int32_t c = 0; c < s->rest_count; c++) {
            const int64_t room = task->limit - hr_max(work, s->rests[c].head + set->kept);
            const hr_layers_state state = { last * task->parts->kept - room,
                                            ps + set->ps[task->proxy->depth.places - 1] +
                                                s->rests[c].ps,
                                            end_of(c, k), 0 };
            if (s->rests[c].other <= task->limit && room >= 0) count = put(s, count, &state);
        }
    }
    for (int32_t i = 0; i < count; i++) {
        s->ends[i] = list[i].from;
        list[i].from = add_node(s, HR_NONE, i);
    }
    return count;
}

/* Extends the list: every state with the bundle and without it. */
static int64_t add_bundle(search *s, int32_t b, int64_t old_count)
{
    const bundle *more = &s->bundles[b];
    const hr_layers_state *old = s->lists[0];
    hr_layers_state *made = s->lists[1];
    int64_t i = 0, j = 0, count = 0, least = INT64_MAX;
    while (i < old_count) {
        const bool taken = j < old_count && old[j].kept - more->saved < old[i].kept;
        const hr_layers_state *from = taken ? &old[j++] : &old[i++];
        hr_layers_state state = *from;
        if (taken) {
            state.kept -= more->saved;
            state.ps += more->ps;
        }
        if (state.ps >= least) continue;
        const int64_t ps = ps_ahead(s, state.kept);
        if (ps == INT64_MAX) break;
        if (state.ps > s->ps_most - ps) continue;
        if (count == s->list_most) {
            s->out_of_room = true;
            break;
        }
        least = state.ps;
        if (taken) state.from = add_node(s, from->from, b);
        made[count++] = state;
    }
    s->lists[1] = s->lists[0];
    s->lists[0] = made;
    s->layers->work += i + j;
    s->out_of_room |= hr_layers_spent(s->layers);
    return count;
}

/* Splits the parts into bundles. Parts whose price is far from `worth`, the value of a byte,
 * come first: they leave the fewest open choices. */
static void bundle_up(search *s, double worth)
{
    const hr_parts *all = s->task->parts;
    int32_t order[HR_PARTS_MOST];
    double far[HR_PARTS_MOST];
    s->bundle_count = 0;
    for (int32_t p = 0; p < all->count; p++) {
        int32_t i = p;
        far[p] = fabs((double)all->parts[p].ps - worth * (double)all->parts[p].saved);
        for (; i > 0 && far[order[i - 1]] < far[p]; i--) order[i] = order[i - 1];
        order[i] = p;
    }
    for (int32_t i = 0; i < all->count; i++) {
        const int32_t p = order[i];
        int64_t left = all->parts[p].layers;
        /* Each bundle is at most one more than the sum of those after it, so every number of
         * layers can be reached. */
        for (int64_t size; left > 0 && all->parts[p].saved > 0; left -= size) {
            size = (left + 1) / 2;
            s->bundles[s->bundle_count++] = (bundle){ p, size, size * all->parts[p].saved,
                                                      size * all->parts[p].ps };
        }
    }
}

static bool run(search *s, hr_layers_state *best)
{
    s->out_of_room = false;
    s->node_count = 0;
    int64_t count = start(s);
    for (int32_t p = 0; p < s->task->parts->count; p++)
        s->to_come[p] = s->task->parts->parts[p].layers;
    for (int32_t b = 0; b < s->bundle_count && count > 0 && !s->out_of_room; b++) {
        s->to_come[s->bundles[b].part] -= s->bundles[b].layers;
        look_ahead(s);
        count = add_bundle(s, b, count);
    }
    if (s->out_of_room || count == 0) return false;
    if (s->bundle_count == 0) { /* no part saves bytes */
        while (count && s->lists[0][count - 1].kept > 0) count--;
        if (count == 0) return false;
    }
    *best = s->lists[0][count - 1];
    return true;
}

/* ---- the layers */

/* Returns the index of the set with exactly these parts, or of one that beats it in all but
 * work; HR_NONE if there is none. */
static int32_t set_of(const hr_layers_task *task, hr_intermediates recompute_set, int32_t group,
                      int64_t kept, int64_t ps)
{
    int32_t found = HR_NONE;
    for (int32_t k = 0; k < task->set_count; k++) {
        const hr_proxy_set *set = &task->sets[k];
        if (set->recompute_set == recompute_set) return k;
        if (set->kept <= kept && set->ps[1 + group] <= ps) found = k;
    }
    return found;
}

/* Assigns sets to layers, those that recompute most at the bottom: they leave the least to the
 * layers above. Returns the bytes by which the peak exceeds the limit, 0 if it does not, or
 * INT64_MAX if a set is missing. */
static int64_t lay_out(const search *s, const hr_layers_state *best, int64_t limit,
                       hr_parts_best *result, uint16_t *chosen)
{
    const hr_layers_task *task = s->task;
    const hr_parts *all = task->parts;
    int64_t layers[HR_PARTS_MOST] = { 0 }, kept = 0, peak = 0;
    int32_t below[HR_LAYER_KINDS_MOST] = { 0 }, group_before = HR_NONE;
    int32_t node = best->from, k = HR_NONE;
    hr_intermediates before = 0;
    for (; s->nodes[node].from != HR_NONE; node = s->nodes[node].from)
        layers[s->bundles[s->nodes[node].set].part] += s->bundles[s->nodes[node].set].layers;
    const int32_t end = s->ends[s->nodes[node].set], last = task->proxy->depth.layers - 1;
    result->chunk = end / HR_FIT_SETS_MOST;
    result->ps = s->rests[result->chunk].ps;
    for (int32_t l = 0; l < task->proxy->depth.layers; l++) {
        hr_intermediates recompute_set = 0;
        const int32_t group = hr_proxy_group(task->proxy, l);
        int64_t kept_here = all->kept, ps = all->ps[1 + group];
        for (int32_t p = 0; p < all->count; p++) {
            if (all->parts[p].group != group || layers[p] <= below[group]) continue;
            recompute_set |= all->parts[p].recompute_set;
            kept_here -= all->parts[p].saved;
            ps += all->parts[p].ps;
        }
        if (l == last) k = end % HR_FIT_SETS_MOST;
        else if (group != group_before || recompute_set != before)
            k = set_of(task, recompute_set, group, kept_here, ps);
        if (k == HR_NONE) return INT64_MAX;
        before = recompute_set;
        group_before = group;
        below[group]++;
        chosen[l] = (uint16_t)k;
        peak = hr_max(peak, kept + hr_proxy_work(task->proxy, &task->sets[k], task->slopes, l));
        kept += task->sets[k].kept;
        result->ps += task->sets[k].ps[hr_proxy_place(task->proxy, l)];
    }
    peak = hr_max(peak, kept + s->rests[result->chunk].head);
    return hr_max(0, peak - limit);
}

static int64_t bound_of(search *s, double *worth)
{
    int64_t least = INT64_MAX;
    *worth = 0;
    s->node_count = 0;
    for (int32_t p = 0; p < s->task->parts->count; p++)
        s->to_come[p] = s->task->parts->parts[p].layers;
    look_ahead(s);
    const int32_t count = start(s);
    for (int32_t i = 0; i < count; i++) {
        const hr_layers_state *state = &s->lists[0][i];
        const int64_t ps = ps_ahead(s, state->kept);
        if (ps == INT64_MAX || state->ps + ps >= least) continue;
        least = state->ps + ps;
        *worth = state->kept > 0 ? s->lines[s->at].slope : 0;
    }
    return least;
}

_Static_assert(sizeof(search) <= HR_LAYERS_UNIFORM_BYTES, "the search has its place in hr_layers");

/* Finds the fastest choice in counts within the task's limit. Returns false if there is none or
 * it is unknown; *bound is then what is proven. */
static bool solve(search *s, int64_t ps_most, hr_layers_state *state, int64_t *bound)
{
    double worth = 0;
    s->out_of_room = false;
    *bound = bound_of(s, &worth);
    if (s->out_of_room) *bound = 0;
    if (s->out_of_room || *bound > ps_most) return false;
    bundle_up(s, worth);
    const int64_t least = *bound, most = ps_most - least;
    for (int64_t gap = hr_min(least / GAP_FIRST + 1, most);;) {
        s->ps_most = least + gap;
        if (run(s, state)) {
            *bound = state->ps;
            return true;
        }
        if (s->out_of_room) return false;
        *bound = s->ps_most == INT64_MAX ? INT64_MAX : s->ps_most + 1;
        if (gap == most) return false;
        gap = gap >= most / GAP_GROWTH ? most : gap * GAP_GROWTH;
    }
}

void hr_parts_choose(hr_layers *layers, const hr_layers_task *task, const hr_proxy_rest *rests,
                     int32_t rest_count, hr_parts_best *best, uint16_t *chosen)
{
    search *s = layers->uniform;
    hr_layers_task shrunk = *task;
    hr_layers_state state;
    *best = (hr_parts_best){ .bound = 0 };
    s->task = &shrunk;
    s->layers = layers;
    s->rests = rests;
    s->rest_count = rest_count;
    s->node_most = layers->most / 2;
    s->list_most = layers->most / 4;
    s->nodes = layers->states;
    s->lists[0] = s->nodes + s->node_most;
    s->lists[1] = s->lists[0] + s->list_most;
    sort_by_price(s);
    if (!solve(s, task->ps_most, &state, &best->bound)) return;
    /* If working memory exceeds the limit, solves again with a smaller limit. That result is a
     * choice, but no bound. */
    for (int32_t iteration = 0;; iteration++) {
        int64_t bound;
        const int64_t over = lay_out(s, &state, task->limit, best, chosen);
        best->found = over == 0 && best->ps <= task->ps_most;
        if (over == 0 || over == INT64_MAX || iteration == SHRINKS_MOST) return;
        shrunk.limit -= over;
        if (!solve(s, task->ps_most, &state, &bound)) return;
    }
}
