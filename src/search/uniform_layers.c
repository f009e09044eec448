/* SPDX-License-Identifier: Apache-2.0 */
/* search/uniform_layers.c - builds Pareto lists of (kept, time), by number of layers done and by
 * sets allowed so far. */
#include "search/uniform_layers.h"

#include <string.h>

#include "base/checked.h"

enum {
    ENDS_MOST = HR_UNIFORM_SETS_MOST * HR_FIT_CHUNKS_MOST,
    SEGMENTS_MOST = HR_UNIFORM_SETS_MOST + ENDS_MOST,
    /* the first guess: the best time exceeds the bound by this fraction of it */
    GAP_FIRST = 1 << 14,
    GAP_GROWTH = 4,
    HALVINGS_MOST = 2
};

/* The last layer together with the head. `room` is the number of bytes that all layers before
 * may keep. */
typedef struct {
    int64_t room, ps;
    int32_t chunk;
    uint16_t set;
} end;

/* One segment of a convex function of room: its bytes and time per remaining layer, and once for
 * the end. */
typedef struct {
    int64_t layer_bytes, layer_ps, end_bytes, end_ps;
    double slope;
} segment;

/* Lower bound on the cost of the remaining layers with the sets from some position of the order
 * on. */
typedef struct {
    segment segments[SEGMENTS_MOST];
    int32_t count;
    int64_t layer_bytes, layer_ps; /* of the set that keeps the fewest bytes */
} envelope;

/* The same bound for a known number of layers: the corners of a convex function. */
typedef struct {
    int64_t room[SEGMENTS_MOST + 1], ps[SEGMENTS_MOST + 1];
    const segment *segments;
    int32_t count, at;
} outlook;

/* A corner of a lower convex envelope. */
typedef struct {
    int64_t bytes, ps;
} corner;

typedef struct {
    const hr_layers_task *task;
    int64_t ps_most;
    int32_t middles;
    int32_t clock; /* the pass that decides the order; HR_PASSES: both */
    /* place: position of each set in the order */
    int32_t order[HR_UNIFORM_SETS_MOST], place[HR_UNIFORM_SETS_MOST];
    int32_t by_kept[HR_UNIFORM_SETS_MOST];
    end ends[ENDS_MOST]; /* by rising room and rising time */
    int32_t end_count, corner_count;
    corner corners[ENDS_MOST]; /* of the ends */
    envelope after;            /* of the sets from the current position on */
    outlook ahead;
    hr_layers_state *nodes, *lists[2]; /* from: in a list, its node; in a node, the previous node */
    int64_t *first[2];                 /* [middles + 2] */
    int64_t node_count, node_most, list_most;
    hr_layers *layers; /* where visited states are counted */
    bool out_of_room;
} search;

/* ---- the order ---- */

/* Work of a set in one pass of middle layer l. */
static int64_t work_in(const hr_layers_task *task, const hr_proxy_set *set, int32_t pass, int32_t l)
{
    const int64_t beyond = task->proxy->depth.layers - task->proxy->depth.places;
    return hr_max(0, set->work[1][pass] + beyond * task->slopes->depth[1][pass] +
                         (l - 1) * task->slopes->step[pass]);
}

/* Returns the pass that decides the order: the one with more work. HR_PASSES: both change
 * equally. */
static int32_t clock_of(const hr_layers_task *task)
{
    const int64_t *step = task->slopes->step;
    double more = 0;
    if (step[HR_PASS_FORWARD] == step[HR_PASS_BACKWARD]) return HR_PASSES;
    for (int32_t k = 0; k < task->set_count; k++)
        for (int32_t l = 1; l < task->proxy->depth.layers - 1; l += task->proxy->depth.layers - 3)
            more += (double)(work_in(task, &task->sets[k], HR_PASS_FORWARD, l) -
                             work_in(task, &task->sets[k], HR_PASS_BACKWARD, l));
    return more > 0 ? HR_PASS_FORWARD : HR_PASS_BACKWARD;
}

/* Work of a set in middle layer l, in the pass that decides the order. */
static int64_t work_at(const search *s, const hr_proxy_set *set, int32_t l)
{
    const hr_layers_task *task = s->task;
    if (s->clock == HR_PASSES) return hr_proxy_work(task->proxy, set, task->slopes, l);
    return work_in(task, set, s->clock, l);
}

/* True if placing a before b leaves more room. Sets that release bytes come first, by rising
 * work. Sets that take bytes follow, by falling work after they are done. */
static bool goes_first(const search *s, const hr_proxy_set *a, const hr_proxy_set *b)
{
    const int64_t step = s->task->slopes->step[s->clock == HR_PASSES ? 0 : s->clock];
    const int64_t a_moves = a->kept + step, b_moves = b->kept + step;
    const int64_t a_work = work_at(s, a, 1), b_work = work_at(s, b, 1);
    if ((a_moves < 0) != (b_moves < 0)) return a_moves < 0;
    if (a_moves < 0) return a_work < b_work;
    return a_work - a_moves > b_work - b_moves;
}

static void put_in_order(search *s)
{
    for (int32_t k = 0; k < s->task->set_count; k++) {
        int32_t i = k;
        for (; i > 0; i--) {
            if (!goes_first(s, &s->task->sets[k], &s->task->sets[s->order[i - 1]])) break;
            s->order[i] = s->order[i - 1];
        }
        s->order[i] = k;
    }
}

/* ---- the ends ---- */

static void add_end(search *s, const end *e)
{
    int32_t low = 0, high;
    while (low < s->end_count && s->ends[low].room < e->room) low++;
    for (high = low; high < s->end_count; high++)
        if (s->ends[high].ps <= e->ps) return;
    for (high = low; high < s->end_count && s->ends[high].room == e->room;) high++;
    while (low > 0 && s->ends[low - 1].ps >= e->ps) low--;
    memmove(&s->ends[low + 1], &s->ends[high], (size_t)(s->end_count - high) * sizeof *e);
    s->ends[low] = *e;
    s->end_count += 1 - (high - low);
}

/* Lists every pair of last layer and head: the room for the layers before, and the time. */
static void list_ends(search *s, const hr_proxy_rest *rests, int32_t rest_count)
{
    const hr_layers_task *task = s->task;
    const int32_t last = task->proxy->depth.layers - 1;
    s->end_count = 0;
    for (int32_t c = 0; c < rest_count; c++)
        for (int32_t k = 0; k < task->set_count && rests[c].other <= task->limit; k++) {
            const hr_proxy_set *set = &task->sets[k];
            const int64_t head = rests[c].head + set->kept;
            const int64_t work = hr_proxy_work(task->proxy, set, task->slopes, last);
            const end e = { task->limit - hr_max(head, work), set->ps[2] + rests[c].ps, c,
                            (uint16_t)k };
            if (e.room >= 0) add_end(s, &e);
        }
}

/* ---- bounds ---- */

/* Appends a corner and drops those that it makes redundant. Bytes must rise. Returns the new
 * count. */
static int32_t add_corner(corner *c, int32_t count, int64_t bytes, int64_t ps)
{
    if (count && ps >= c[count - 1].ps) return count;
    while (count >= 2) {
        const double run = (double)(bytes - c[count - 2].bytes);
        const double at = (double)(c[count - 1].bytes - c[count - 2].bytes) / run *
                          (double)(ps - c[count - 2].ps);
        if ((double)(c[count - 1].ps - c[count - 2].ps) < at) break;
        count--;
    }
    c[count] = (corner){ bytes, ps };
    return count + 1;
}

/* Builds the envelope of the ends and of the sets from position `first` on: segments sorted by
 * the time that a byte saves. */
static void envelop(search *s, int32_t first)
{
    const hr_layers_task *task = s->task;
    const corner *ends = s->corners;
    const int32_t end_count = s->corner_count;
    envelope *e = &s->after;
    corner layer[HR_UNIFORM_SETS_MOST];
    int32_t count = 0, i = 0, j = 0;
    for (int32_t n = 0; n < task->set_count; n++) {
        const hr_proxy_set *set = &task->sets[s->by_kept[n]];
        if (s->place[s->by_kept[n]] >= first)
            count = add_corner(layer, count, set->kept, set->ps[1]);
    }
    e->count = 0;
    e->layer_bytes = layer[0].bytes;
    e->layer_ps = layer[0].ps;
    while (i + 1 < count || j + 1 < end_count) {
        const double of_layer = i + 1 < count ? (double)(layer[i + 1].ps - layer[i].ps) /
                                                    (double)(layer[i + 1].bytes - layer[i].bytes)
                                              : 0;
        const double of_end = j + 1 < end_count ? (double)(ends[j + 1].ps - ends[j].ps) /
                                                      (double)(ends[j + 1].bytes - ends[j].bytes)
                                                : 0;
        segment *line = &e->segments[e->count++];
        if (i + 1 < count && (j + 1 >= end_count || of_layer <= of_end)) {
            *line = (segment){ .layer_bytes = layer[i + 1].bytes - layer[i].bytes,
                               .layer_ps = layer[i + 1].ps - layer[i].ps,
                               .slope = of_layer };
            i++;
        } else {
            *line = (segment){ .end_bytes = ends[j + 1].bytes - ends[j].bytes,
                               .end_ps = ends[j + 1].ps - ends[j].ps,
                               .slope = of_end };
            j++;
        }
    }
}

/* Prepares the tables that all envelopes use. */
static void prepare(search *s)
{
    const hr_proxy_set *sets = s->task->sets;
    for (int32_t k = 0; k < s->task->set_count; k++) {
        int32_t i = k;
        for (; i > 0; i--) {
            const hr_proxy_set *before = &sets[s->by_kept[i - 1]];
            if (before->kept < sets[k].kept ||
                (before->kept == sets[k].kept && before->ps[1] <= sets[k].ps[1]))
                break;
            s->by_kept[i] = s->by_kept[i - 1];
        }
        s->by_kept[i] = k;
        s->place[s->order[k]] = k;
    }
    /* The bytes of an end are its room subtracted from the largest room. */
    const int64_t most = s->ends[s->end_count - 1].room;
    for (int32_t i = s->end_count - 1; i >= 0; i--)
        s->corner_count = add_corner(s->corners, s->corner_count, most - s->ends[i].room,
                                     s->ends[i].ps);
}

/* Computes the bound for `layers` remaining layers from the current envelope. Valid until the
 * next call. */
static outlook *look_ahead(search *s, int32_t layers)
{
    const envelope *e = &s->after;
    outlook *ahead = &s->ahead;
    ahead->segments = e->segments;
    ahead->count = ahead->at = e->count;
    ahead->room[0] = layers * e->layer_bytes - s->ends[s->end_count - 1].room;
    ahead->ps[0] = layers * e->layer_ps + s->ends[s->end_count - 1].ps;
    for (int32_t i = 0; i < e->count; i++) {
        const segment *line = &e->segments[i];
        ahead->room[i + 1] = ahead->room[i] + layers * line->layer_bytes + line->end_bytes;
        ahead->ps[i + 1] = ahead->ps[i] + layers * line->layer_ps + line->end_ps;
    }
    return ahead;
}

/* Returns a lower bound on the remaining time, lowered slightly to be safe from rounding;
 * INT64_MAX if `kept` leaves too little room. `kept` must not fall from query to query. */
static inline int64_t ps_ahead(outlook *ahead, int64_t kept)
{
    while (ahead->at > 0 && -kept < ahead->room[ahead->at]) ahead->at--;
    const int32_t at = ahead->at;
    if (at == 0 && -kept < ahead->room[0]) return INT64_MAX;
    double saved = 0;
    if (at < ahead->count) saved = ahead->segments[at].slope * (double)(-kept - ahead->room[at]);
    return ahead->ps[at] + (int64_t)(saved - 1e-13 * (double)ahead->ps[0]) - 1;
}

/* ---- the lists ---- */

static int32_t add_node(search *s, int32_t from, uint16_t set)
{
    if (s->node_count == s->node_most) {
        s->out_of_room = true;
        return 0;
    }
    s->nodes[s->node_count] = (hr_layers_state){ .from = from, .set = set };
    return (int32_t)s->node_count++;
}

/* Lists the sets of the first layer by kept bytes. */
static int32_t start(search *s, hr_layers_state *list)
{
    const hr_layers_task *task = s->task;
    int32_t count = 0;
    for (int32_t k = 0; k < task->set_count; k++) {
        const hr_proxy_set *set = &task->sets[k];
        const hr_layers_state state = { set->kept, set->ps[0], 0, (uint16_t)k };
        int32_t low = 0, beaten = 0;
        if (hr_proxy_work(task->proxy, set, task->slopes, 0) > task->limit) continue;
        while (low < count && list[low].kept <= state.kept) low++;
        if (low && list[low - 1].ps <= state.ps) continue;
        while (low && list[low - 1].kept == state.kept) low--;
        while (low + beaten < count && list[low + beaten].ps >= state.ps) beaten++;
        memmove(&list[low + 1], &list[low + beaten], (size_t)(count - low - beaten) * sizeof *list);
        list[low] = state;
        count += 1 - beaten;
    }
    for (int32_t i = 0; i < count; i++) list[i].from = add_node(s, HR_NONE, list[i].set);
    return count;
}

/* Merges the states without the set and those that use it in their last layer. */
static int64_t join(search *s, outlook *ahead, const hr_layers_state *without,
                    int64_t without_count, const hr_layers_state *before, int64_t before_count,
                    const hr_proxy_set *set, uint16_t k, hr_layers_state *to, int64_t room)
{
    int64_t i = 0, j = 0, count = 0, least = INT64_MAX;
    while (i < without_count || j < before_count) {
        const bool taken = j < before_count &&
                           (i == without_count || before[j].kept + set->kept < without[i].kept);
        const hr_layers_state *from = taken ? &before[j++] : &without[i++];
        hr_layers_state state = *from;
        if (taken) {
            state.kept += set->kept;
            state.ps += set->ps[1];
        }
        if (state.ps >= least) continue;
        const int64_t ps = ps_ahead(ahead, state.kept);
        if (ps == INT64_MAX) break;
        if (state.ps > s->ps_most - ps) continue;
        if (count == room) {
            s->out_of_room = true;
            break;
        }
        least = state.ps;
        if (taken) state.from = add_node(s, from->from, k);
        to[count++] = state;
    }
    return count;
}

/* Returns how many states, counted from the front, keep at most `room` bytes. */
static int64_t fitting(const hr_layers_state *list, int64_t count, int64_t room)
{
    while (count && list[count - 1].kept > room) count--;
    return count;
}

/* Allows one more set. Returns false if no state is left or the work limit is reached. */
static bool add_set(search *s, int32_t position)
{
    const hr_layers_task *task = s->task;
    const int32_t k = s->order[position];
    const hr_layers_state *old = s->lists[0];
    hr_layers_state *made = s->lists[1];
    const int64_t *old_first = s->first[0];
    int64_t *first = s->first[1], used = 0;
    envelop(s, position);
    for (int32_t j = 0; j <= s->middles && !s->out_of_room; j++) {
        const int64_t without = old_first[j + 1] - old_first[j];
        int64_t before = j ? used - first[j - 1] : 0;
        first[j] = used;
        if (before)
            before = fitting(made + first[j - 1], before,
                             task->limit - work_at(s, &task->sets[k], j));
        if (without == 0 && before == 0) continue;
        used += join(s, look_ahead(s, s->middles - j), old + old_first[j], without,
                     made + (j ? first[j - 1] : 0), before, &task->sets[k], (uint16_t)k,
                     made + used, s->list_most - used);
    }
    first[s->middles + 1] = used;
    s->layers->work += old_first[s->middles + 1] + used;
    s->out_of_room |= hr_layers_spent(s->layers);
    s->lists[0] = made;
    s->lists[1] = (hr_layers_state *)old;
    s->first[1] = s->first[0];
    s->first[0] = first;
    return used > 0 && !s->out_of_room;
}

/* Finds the best combination of an end and a state of all layers but the last. */
static bool finish(const search *s, hr_uniform_best *best, int32_t *node, uint16_t *last)
{
    const hr_layers_state *list = s->lists[0];
    bool any = false;
    int32_t e = 0;
    for (int64_t i = s->first[0][s->middles]; i < s->first[0][s->middles + 1]; i++) {
        while (e < s->end_count && s->ends[e].room < list[i].kept) e++;
        if (e == s->end_count) break;
        const int64_t ps = list[i].ps + s->ends[e].ps;
        if (ps > s->ps_most || (any && ps >= best->ps)) continue;
        any = true;
        best->ps = ps;
        best->chunk = s->ends[e].chunk;
        *last = s->ends[e].set;
        *node = list[i].from;
    }
    return any;
}

static bool run(search *s, hr_uniform_best *best, uint16_t *chosen)
{
    int32_t node = 0;
    s->out_of_room = false;
    s->node_count = 0;
    s->first[0][0] = 0;
    s->first[0][1] = start(s, s->lists[0]);
    for (int32_t j = 1; j <= s->middles; j++) s->first[0][j + 1] = s->first[0][1];
    for (int32_t i = 0; i < s->task->set_count; i++)
        if (!add_set(s, i)) return false;
    if (!finish(s, best, &node, &chosen[s->middles + 1])) return false;
    for (int32_t l = s->middles; l >= 0; l--, node = s->nodes[node].from)
        chosen[l] = s->nodes[node].set;
    return true;
}

/* Lower bound on the time of any choice. */
static int64_t bound_of(search *s)
{
    int64_t least = INT64_MAX;
    const int32_t count = start(s, s->lists[0]);
    envelop(s, 0);
    outlook *ahead = look_ahead(s, s->middles);
    for (int32_t i = 0; i < count; i++) {
        const int64_t ps = ps_ahead(ahead, s->lists[0][i].kept);
        if (ps != INT64_MAX) least = hr_min(least, s->lists[0][i].ps + ps);
    }
    return least;
}

_Static_assert(sizeof(search) <= HR_LAYERS_UNIFORM_BYTES, "the search has its place in hr_layers");

static search *open_search(hr_layers *layers, const hr_layers_task *task,
                           const hr_proxy_rest *rests, int32_t rest_count)
{
    search *s = layers->uniform;
    s->end_count = s->corner_count = 0;
    s->out_of_room = false;
    s->node_count = 0;
    s->layers = layers;
    s->task = task;
    s->middles = task->proxy->depth.layers - 2;
    s->node_most = layers->most / 2;
    s->list_most = layers->most / 4;
    s->nodes = layers->states;
    s->lists[0] = s->nodes + s->node_most;
    s->lists[1] = s->lists[0] + s->list_most;
    s->first[0] = layers->first;
    s->first[1] = layers->first + task->proxy->depth.layers;
    s->clock = clock_of(task);
    put_in_order(s);
    list_ends(s, rests, rest_count);
    if (s->end_count) prepare(s);
    return s;
}

int64_t hr_uniform_bound(hr_layers *layers, const hr_layers_task *task, const hr_proxy_rest *rests,
                         int32_t rest_count)
{
    search *s = open_search(layers, task, rests, rest_count);
    return s->end_count ? bound_of(s) : INT64_MAX;
}

bool hr_uniform_choose(hr_layers *layers, const hr_layers_task *task, const hr_proxy_rest *rests,
                       int32_t rest_count, hr_uniform_best *best, uint16_t *chosen)
{
    search *s = open_search(layers, task, rests, rest_count);
    *best = (hr_uniform_best){ .bound = INT64_MAX };
    if (s->end_count == 0) return false;
    const int64_t bound = bound_of(s);
    best->bound = bound;
    if (bound > task->ps_most) return false;
    /* Searches within a small gap above the bound, which is fast and often enough. A gap with
     * too many states is halved towards the last gap that was empty, and not tried again; after
     * a few halvings, choosing layer by layer is cheaper. */
    const int64_t most = task->ps_most - bound;
    int64_t gap = hr_min(hr_max(bound / GAP_FIRST + 1, task->ps_least - bound), most), empty = -1,
            full = INT64_MAX;
    for (int32_t halvings = 0;;) {
        /* or the gap would overflow */
        if (full == INT64_MAX && gap >= most / GAP_GROWTH) gap = most;
        s->ps_most = bound + gap;
        if (run(s, best, chosen)) return true;
        if (s->out_of_room) {
            full = gap;
            gap = gap == most ? hr_min(most / GAP_GROWTH, full - 1) : empty + (full - empty) / 2;
            best->out_of_room = gap <= empty || halvings++ == HALVINGS_MOST;
            if (best->out_of_room) return false;
            continue;
        }
        if (gap == most) return false;
        best->bound = s->ps_most + 1;
        empty = gap;
        gap = full == INT64_MAX ? gap * GAP_GROWTH : empty + (full - empty) / 2;
        best->out_of_room = gap <= empty || full == most;
        if (best->out_of_room) return false;
    }
}
