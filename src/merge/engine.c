/* SPDX-License-Identifier: Apache-2.0 */
/* merge/engine.c - one merge: the list of the best pair is walked from left to right; what its
 * neighbours lose and gain is summed by neighbour; then each pair that changed is looked up
 * once. */
#include "merge/engine.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/sort.h"
#include "headroom/status.h"
#include "merge/engine_parts.h"

static int32_t index_bits_for(int64_t pairs)
{
    int32_t bits = 4;
    while (INT64_C(1) << bits < pairs + pairs / 2) bits++;
    return bits;
}

int64_t hr_engine_bytes(const hr_engine_sizes *s)
{
    const int64_t parts[] = {
        s->slots * 4,
        s->words ? s->slots * 4 : 0,
        s->words * 8,
        s->positions * 4,
        s->pairs * (int64_t)sizeof(hr_engine_pair),
        s->pairs * (int64_t)sizeof(hr_engine_list),
        s->pairs * (int64_t)sizeof(hr_engine_top),
        INT64_C(4) << index_bits_for(s->pairs),
        s->tokens * (int64_t)sizeof(hr_engine_side),
        s->tokens * (int64_t)sizeof(hr_engine_side),
        s->tokens * 4,
        s->tokens * 4,
        s->merges * (int64_t)sizeof(hr_engine_merge),
        HR_LEVELS * (int64_t)sizeof(hr_engine_level),
    };
    int64_t sum = hr_merge_vocabulary_bytes(s->tokens, s->leaves);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) sum += hr_round_up(parts[i], 64);
    return sum;
}

void hr_engine_place(hr_engine *e, hr_region *region, const hr_engine_sizes *s)
{
    *e = (hr_engine){ .sizes = *s, .free_list = HR_NO_LIST, .floor_count = 1 };
    e->floor_key = UINT64_MAX;
    e->index_bits = index_bits_for(s->pairs);
    hr_vocabulary_place(&e->vocabulary, region, s->tokens, s->leaves);
    e->slots = hr_region_take_raw(region, s->slots, 4);
    if (s->words) {
        e->owners = hr_region_take_raw(region, s->slots, 4);
        e->counts = hr_region_take_raw(region, s->words, 8);
    }
    e->positions = hr_region_take_raw(region, s->positions, 4);
    e->pairs = hr_region_take_raw(region, s->pairs, sizeof *e->pairs);
    e->lists = hr_region_take_raw(region, s->pairs, sizeof *e->lists);
    e->heap = hr_region_take_raw(region, s->pairs, sizeof *e->heap);
    e->index = hr_region_take(region, INT64_C(1) << e->index_bits, 4);
    for (int32_t i = 0; i < 2; i++)
        e->sides[i] = hr_region_take(region, s->tokens, sizeof **e->sides);
    for (int32_t i = 0; i < 2; i++) e->touched[i] = hr_region_take_raw(region, s->tokens, 4);
    e->merges = hr_region_take_raw(region, s->merges, sizeof *e->merges);
    e->levels = hr_region_take_raw(region, HR_LEVELS, sizeof *e->levels);
    HR_ASSERT(e->levels && e->slots && e->positions && e->pairs && e->lists && e->heap &&
              e->index && e->sides[1] && e->touched[1] && e->merges);
}

/* The index of pairs. */

static uint64_t place_of(const hr_engine *e, uint64_t key)
{
    return key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - e->index_bits);
}

hr_engine_pair *hr_engine_find(const hr_engine *e, uint64_t key)
{
    const uint64_t mask = (UINT64_C(1) << e->index_bits) - 1;
    for (uint64_t i = place_of(e, key);; i = (i + 1) & mask) {
        if (!e->index[i]) return 0;
        hr_engine_pair *pair = &e->pairs[e->index[i] - 1];
        if (pair->key == key) return pair;
    }
}

/* A pair that is not there yet. */
uint32_t hr_engine_add_pair(hr_engine *e, uint64_t key, int64_t count)
{
    const uint64_t mask = (UINT64_C(1) << e->index_bits) - 1;
    uint64_t i = place_of(e, key);
    while (e->index[i]) i = (i + 1) & mask;
    HR_ASSERT(e->pair_count < e->sizes.pairs);
    e->pairs[e->pair_count] = (hr_engine_pair){ key, count, HR_NO_LIST };
    e->index[i] = (uint32_t)++e->pair_count;
    return (uint32_t)e->pair_count - 1;
}

/* The heap: eight children, the largest count first, then the smallest key. */

static bool before(const hr_engine *e, const hr_engine_top *a, const hr_engine_top *b)
{
    if (a->count != b->count) return a->count > b->count;
    const uint32_t pair_a = e->lists[a->list].pair, pair_b = e->lists[b->list].pair;
    if (pair_a == pair_b) return a->list < b->list;
    return e->pairs[pair_a].key < e->pairs[pair_b].key;
}

static void sink(hr_engine *e, int64_t at)
{
    const hr_engine_top moving = e->heap[at];
    for (;;) {
        const int64_t first = 8 * at + 1, end = hr_min(first + 8, e->heap_count);
        int64_t best = first;
        if (first >= end) break;
        for (int64_t i = first + 1; i < end; i++)
            if (before(e, &e->heap[i], &e->heap[best])) best = i;
        if (!before(e, &e->heap[best], &moving)) break;
        e->heap[at] = e->heap[best];
        at = best;
    }
    e->heap[at] = moving;
}

static void push(hr_engine *e, uint32_t list, int64_t count)
{
    int64_t at = e->heap_count++;
    const hr_engine_top moving = { count, list };
    HR_ASSERT(at < e->sizes.pairs);
    while (at > 0 && before(e, &moving, &e->heap[(at - 1) / 8])) {
        e->heap[at] = e->heap[(at - 1) / 8];
        at = (at - 1) / 8;
    }
    e->heap[at] = moving;
}

static void drop_top(hr_engine *e)
{
    e->heap[0] = e->heap[--e->heap_count];
    if (e->heap_count) sink(e, 0);
}

void hr_engine_make_heap(hr_engine *e)
{
    for (int64_t i = (e->heap_count - 2) / 8; i >= 0; i--)
        if (e->heap_count > 1) sink(e, i);
}

/* Lists. */

uint32_t hr_engine_add_list(hr_engine *e, uint32_t pair, uint32_t first, uint32_t count)
{
    uint32_t list = e->free_list;
    if (list != HR_NO_LIST) {
        e->free_list = e->lists[list].next;
    } else {
        HR_ASSERT(e->list_count < e->sizes.pairs);
        list = (uint32_t)e->list_count++;
    }
    const uint32_t older = e->pairs[pair].list;
    if (e->replaying && older != HR_NO_LIST) e->lists[older].lost = true;
    e->lists[list] = (hr_engine_list){ pair, older, first, count, false };
    e->pairs[pair].list = list;
    return list;
}

/* Takes a list out of its pair's chain. Its positions stay readable until the next tidying. */
static void remove_list(hr_engine *e, uint32_t list)
{
    uint32_t *link = &e->pairs[e->lists[list].pair].list;
    while (*link != list) link = &e->lists[*link].next;
    *link = e->lists[list].next;
    if (e->lists[list].count) e->positions[e->lists[list].first - 2] = HR_NO_LIST;
    e->lists[list].next = e->free_list;
    e->free_list = list;
}

static bool is_there(const hr_engine *e, uint32_t at, uint64_t key)
{
    if (e->slots[at] != key >> 32) return false;
    const uint32_t next = hr_slot_next(e->slots, at);
    return e->slots[next] == (uint32_t)key;
}

/* Moves the lists to the front; where a pair has one list, positions that are no more are left
 * out. (Where it has several, they say which words a list is of.) */
static void tidy(hr_engine *e)
{
    int64_t to = 0;
    for (int64_t from = 0; from < e->position_count;) {
        const uint32_t list = e->positions[from];
        const int64_t count = e->positions[from + 1], end = from + 2 + count;
        if (list == HR_NO_LIST) {
            from = end;
            continue;
        }
        hr_engine_list *l = &e->lists[list];
        const hr_engine_pair *pair = &e->pairs[l->pair];
        const bool only = pair->list == list && l->next == HR_NO_LIST;
        const int64_t head = to;
        to += 2;
        for (int64_t i = from + 2; i < end; i++)
            if (!only || is_there(e, e->positions[i], pair->key))
                e->positions[to++] = e->positions[i];
        l->first = (uint32_t)head + 2;
        l->count = (uint32_t)(to - head - 2);
        e->positions[head] = list;
        e->positions[head + 1] = l->count;
        if (!l->count) to = head;
        from = end;
    }
    e->position_count = to;
}

/* Whether two positions are of one word: no edge lies between. */
static bool one_word(const hr_engine *e, uint32_t a, uint32_t b)
{
    for (; a < b; a = hr_slot_next(e->slots, a))
        if (e->slots[a] == HR_SLOT_EDGE) return false;
    return true;
}

/* A slot that has been joined into another one is no token: its token begins before it. */
static uint32_t token_at(const hr_engine *e, uint32_t at)
{
    while (e->slots[at] & HR_SLOT_DEAD) at--;
    return at;
}

static bool position_before(const void *table, int32_t a, int32_t b)
{
    (void)table;
    return (uint32_t)a < (uint32_t)b;
}

/* Sums of one neighbour. */

static hr_engine_side *side_of(hr_engine *e, int32_t which, uint32_t id)
{
    hr_engine_side *side = &e->sides[which][id];
    if (!side->lost && !side->gained) e->touched[which][e->touched_count[which]++] = id;
    return side;
}

static void note(hr_engine *e, int64_t *events, int32_t which, uint32_t id, uint32_t at)
{
    uint32_t *event = e->positions + e->sizes.positions - 2 * ++*events;
    event[0] = (uint32_t)which << 31 | id;
    event[1] = at;
    e->sides[which][id].events++;
}

/* Joins the tokens at `at` and `right` into one that ends before `end`. Of what was live, nothing
 * but its beginning is. */
static void join_slots(uint32_t *slots, uint32_t at, uint32_t right, uint32_t end, uint32_t joined)
{
    slots[at] = joined;
    slots[right] = slots[at + 1] = slots[end - 1] = HR_SLOT_DEAD | (end - at);
}

typedef struct {
    uint32_t a, b, joined;
    uint32_t characters; /* of joined */
    int64_t done, events;
} work;

static bool may_grow(const hr_engine *e, const work *w, uint32_t id)
{
    return (int64_t)e->vocabulary.tokens[id].characters + w->characters < e->rules.characters_max;
}

/* One occurrence; the order of what is lost and gained is that of a walk from left to right. */
static void merge_at(hr_engine *e, work *w, uint32_t at, uint32_t right)
{
    uint32_t *slots = e->slots;
    const uint32_t end = hr_slot_next(slots, right);
    const int64_t count = e->owners ? e->counts[e->owners[at]] : 1;
    const uint32_t after = slots[end];
    join_slots(slots, at, right, end, w->joined);
    w->done += count;
    if (slots[at - 1] != HR_SLOT_EDGE) {
        const uint32_t left_at = hr_slot_previous(slots, at), left = slots[left_at];
        hr_engine_side *side = side_of(e, 0, left);
        side->lost += count;
        if (may_grow(e, w, left)) {
            side->gained += count;
            note(e, &w->events, 0, left, left_at);
        }
    }
    if (after != HR_SLOT_EDGE) {
        side_of(e, 1, after)->lost += count;
        if (may_grow(e, w, after)) {
            /* The joined token beside itself is one pair, kept on the left. */
            const int32_t which = after != w->joined;
            side_of(e, which, after)->gained += count;
            note(e, &w->events, which, after, at);
        }
    }
}

static void lose(hr_engine *e, uint64_t key, int64_t count)
{
    hr_engine_pair *pair = hr_engine_find(e, key);
    if (pair) pair->count -= count;
}

/* What merges of this pair left in its count, when it is not known any more. */
static int64_t kept_by_merges(const hr_engine *e, uint64_t key)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < e->merge_count; i++)
        if (hr_pair_key(e->merges[i].left, e->merges[i].right) == key) sum += e->merges[i].count;
    return sum;
}

static bool above_floor(const hr_engine *e, int64_t count, uint64_t key)
{
    return count > e->floor_count || (count == e->floor_count && key <= e->floor_key);
}

static bool has_floor(const hr_engine *e)
{
    return e->floor_count > 1 || e->floor_key != UINT64_MAX;
}

/* A pair that gained: gets a list of where, if it is frequent enough. */
static void gain(hr_engine *e, uint64_t key, int64_t net, hr_engine_side *side, bool fresh)
{
    hr_engine_pair *pair = fresh ? 0 : hr_engine_find(e, key);
    const int64_t old = pair || fresh ? 0 : kept_by_merges(e, key);
    const int64_t count = (pair ? pair->count : old) + net;
    const uint32_t events = side->events;
    side->at = HR_NO_LIST;
    if (pair) pair->count = count;
    if (count <= 0 || (!pair && !above_floor(e, count, key))) return;
    const uint32_t number = pair ? (uint32_t)(pair - e->pairs) : hr_engine_add_pair(e, key, count);
    const uint32_t first = (uint32_t)e->position_count + 2;
    const uint32_t list = hr_engine_add_list(e, number, first, events);
    e->positions[first - 2] = list;
    e->positions[first - 1] = events;
    e->position_count += 2 + (int64_t)events;
    side->at = first;
    if (!e->replaying) push(e, list, count);
}

static void settle_counts(hr_engine *e, const work *w, bool fresh)
{
    const uint32_t a = w->a, b = w->b, c = w->joined;
    hr_engine_side *left = e->sides[0], *right = e->sides[1];
    /* (c,a) and (b,c) may be lost and gained in one walk: what counts is the sum. */
    const int64_t lost_ca = left[c].lost, lost_bc = right[c].lost;
    const bool net_ca = right[a].events > 0, net_bc = left[b].events > 0;
    for (uint32_t i = 0; i < e->touched_count[0]; i++) {
        const uint32_t x = e->touched[0][i];
        if (left[x].lost && (x != c || !net_ca)) lose(e, hr_pair_key(x, a), left[x].lost);
    }
    for (uint32_t i = 0; i < e->touched_count[1]; i++) {
        const uint32_t y = e->touched[1][i];
        if (right[y].lost && (y != c || !net_bc)) lose(e, hr_pair_key(b, y), right[y].lost);
    }
    for (uint32_t i = 0; i < e->touched_count[0]; i++) {
        const uint32_t x = e->touched[0][i];
        if (left[x].events)
            gain(e, hr_pair_key(x, c), left[x].gained - (x == b ? lost_bc : 0), &left[x], fresh);
    }
    for (uint32_t i = 0; i < e->touched_count[1]; i++) {
        const uint32_t y = e->touched[1][i];
        if (right[y].events)
            gain(e, hr_pair_key(c, y), right[y].gained - (y == a ? lost_ca : 0), &right[y], fresh);
    }
}

/* Writes the events into the lists that their neighbours got. */
static void fill_lists(hr_engine *e, const work *w)
{
    for (int64_t i = 1; i <= w->events; i++) {
        const uint32_t *event = e->positions + e->sizes.positions - 2 * i;
        hr_engine_side *side = &e->sides[event[0] >> 31][event[0] & ~HR_SLOT_DEAD];
        if (side->at != HR_NO_LIST) e->positions[side->at++] = event[1];
    }
    for (int32_t which = 0; which < 2; which++) {
        for (uint32_t i = 0; i < e->touched_count[which]; i++)
            e->sides[which][e->touched[which][i]] = (hr_engine_side){ 0 };
        e->touched_count[which] = 0;
    }
}

/* Of the pair's other lists, the positions in words of this list, joined to it in order. They are
 * written behind all lists; returns how many there are then. */
static int64_t gather(hr_engine *e, uint32_t list)
{
    const hr_engine_list *own = &e->lists[list];
    uint32_t *all = e->positions + e->position_count;
    const uint32_t *mine = e->positions + own->first;
    int64_t count = 0;
    for (uint32_t i = 0; i < own->count; i++) all[count++] = mine[i];
    for (uint32_t other = e->pairs[own->pair].list; other != HR_NO_LIST;
         other = e->lists[other].next) {
        if (other == list) continue;
        uint32_t near = 0;
        for (uint32_t i = 0; i < e->lists[other].count; i++) {
            const uint32_t at = e->positions[e->lists[other].first + i];
            if (!is_there(e, at, e->pairs[own->pair].key)) continue;
            while (near < own->count && mine[near] < at) near++;
            if ((near < own->count && one_word(e, at, mine[near])) ||
                (near > 0 && one_word(e, token_at(e, mine[near - 1]), at)))
                all[count++] = at;
        }
    }
    HR_ASSERT(count < INT32_MAX);
    hr_sort(0, position_before, (int32_t *)all, (int32_t)count);
    return count;
}

static bool has_room(const hr_engine *e, uint32_t list)
{
    int64_t count = 0;
    for (uint32_t l = e->pairs[e->lists[list].pair].list; l != HR_NO_LIST; l = e->lists[l].next)
        count += e->lists[l].count;
    const int64_t pairs = hr_engine_room_pairs(e, count);
    return e->position_count + hr_engine_room_positions(count) <= e->sizes.positions &&
           e->pair_count + pairs <= e->sizes.pairs && e->list_count + pairs <= e->sizes.pairs &&
           e->heap_count + pairs <= e->sizes.pairs;
}

/* Merges the pair of a list in all of its words. */
static void merge_list(hr_engine *e, uint32_t list, bool inherited)
{
    const uint64_t key = e->pairs[e->lists[list].pair].key;
    work w = { .a = (uint32_t)(key >> 32), .b = (uint32_t)key };
    bool fresh;
    w.joined = hr_vocabulary_join(&e->vocabulary, w.a, w.b, &fresh);
    w.characters = e->vocabulary.tokens[w.joined].characters;
    const bool several = e->lists[list].next != HR_NO_LIST ||
                         e->pairs[e->lists[list].pair].list != list;
    const uint32_t *at = e->positions + e->lists[list].first;
    int64_t count = e->lists[list].count;
    if (several) {
        count = gather(e, list);
        at = e->positions + e->position_count;
        e->position_count += count;
    }
    for (int64_t i = 0; i < count; i++) {
        if (i + 16 < count) __builtin_prefetch(&e->slots[at[i + 16]]);
        if (e->slots[at[i]] != w.a) continue;
        const uint32_t right = hr_slot_next(e->slots, at[i]);
        if (e->slots[right] == w.b) merge_at(e, &w, at[i], right);
    }
    if (several) e->position_count -= count;
    remove_list(e, list);
    HR_ASSERT(e->merge_count < e->sizes.merges);
    e->merges[e->merge_count++] = (hr_engine_merge){
        w.a, w.b, w.joined, inherited, !fresh, w.done
    };
    settle_counts(e, &w, fresh);
    fill_lists(e, &w);
    if (!fresh && w.done && has_floor(e)) e->worn = true;
}

void hr_engine_settle(hr_engine *e)
{
    int64_t to = 0;
    for (int64_t i = 0; i < e->merge_count; i++) {
        hr_engine_merge merge = e->merges[i];
        for (int64_t j = 0; merge.again && j < to; j++) {
            if (e->merges[j].left != merge.left || e->merges[j].right != merge.right) continue;
            merge.count += e->merges[j].count;
            memmove(&e->merges[j], &e->merges[j + 1], (size_t)(--to - j) * sizeof merge);
            break;
        }
        e->merges[to++] = merge;
    }
    e->merge_count = to;
}

/* Makes room for merging a list, or, *again, counts all pairs anew: then lists are others. */
static hr_status make_room(hr_engine *e, uint32_t list, bool *again, hr_error *err)
{
    *again = false;
    if (e->merge_count == e->sizes.merges) hr_engine_settle(e);
    if (e->merge_count == e->sizes.merges)
        return hr_fail(err, HR_NO_FIT, "merges: more than %lld, and most make no new token",
                       (long long)e->sizes.merges);
    if (!has_room(e, list)) tidy(e);
    if (has_room(e, list)) return HR_OK;
    *again = true;
    if (!e->replaying) return hr_engine_count(e, e->floor_count, err);
    return hr_fail(err, HR_NO_FIT, "inherited merges: more pairs than the %lld there is room for",
                   (long long)e->sizes.pairs);
}

/* Looks at the best pair until it is known to be that; false: there is none. Those that may not be
 * made are dropped. */
static hr_status best(hr_engine *e, bool *found, hr_error *err)
{
    for (*found = false;;) {
        hr_engine_top *top = &e->heap[0];
        const hr_engine_pair *pair = e->heap_count ? &e->pairs[e->lists[top->list].pair] : 0;
        const bool low = !pair || !above_floor(e, top->count, pair->key);
        if (e->worn || (low && has_floor(e))) {
            /* Below the least count nothing is ever merged. */
            if (!e->worn && e->floor_count <= e->rules.least && e->floor_key == UINT64_MAX)
                return HR_OK;
            hr_status status = hr_engine_count(e, low ? 1 : e->floor_count, err);
            if (status || !e->heap_count) return status;
            continue;
        }
        if (!pair) return HR_OK;
        if (top->count != pair->count) {
            top->count = pair->count;
            sink(e, 0);
            continue;
        }
        if (pair->count < hr_max(1, e->rules.least)) return HR_OK;
        *found = !e->rules.filters ||
                 !hr_vocabulary_refuses(&e->vocabulary, (uint32_t)(pair->key >> 32),
                                        (uint32_t)pair->key);
        if (*found) return HR_OK;
        remove_list(e, top->list);
        drop_top(e);
    }
}

hr_status hr_engine_step(hr_engine *e, bool *made, hr_error *err)
{
    *made = false;
    if ((int64_t)e->vocabulary.count >= e->rules.vocabulary_max) return HR_OK;
    for (int32_t tries = 0; tries < 2; tries++) {
        bool again, found;
        hr_status status = best(e, &found, err);
        if (status || !found) return status;
        const uint32_t list = e->heap[0].list;
        status = make_room(e, list, &again, err);
        if (status) return status;
        if (again) continue;
        drop_top(e);
        merge_list(e, list, false);
        *made = true;
        return HR_OK;
    }
    return hr_fail(err, HR_NO_FIT, "merges: %lld positions and %lld pairs are too few",
                   (long long)e->sizes.positions, (long long)e->sizes.pairs);
}

hr_status hr_engine_replay(hr_engine *e, uint32_t left, uint32_t right, bool *made, hr_error *err)
{
    const hr_engine_pair *pair = hr_engine_find(e, hr_pair_key(left, right));
    bool again;
    *made = pair && pair->list != HR_NO_LIST && !e->lists[pair->list].lost;
    if (!*made) return HR_OK;
    const uint32_t list = pair->list;
    hr_status status = make_room(e, list, &again, err);
    if (status) return status;
    merge_list(e, list, true);
    return HR_OK;
}

hr_status hr_engine_replayed(hr_engine *e, hr_error *err)
{
    (void)err;
    e->replaying = false;
    e->heap_count = 0;
    for (int64_t i = 0; i < e->pair_count; i++)
        if (e->pairs[i].list != HR_NO_LIST && !e->lists[e->pairs[i].list].lost &&
            e->pairs[i].count > 0)
            e->heap[e->heap_count++] = (hr_engine_top){ e->pairs[i].count, e->pairs[i].list };
    hr_engine_make_heap(e);
    return HR_OK;
}

void hr_engine_inherit(hr_engine *e, uint32_t left, uint32_t right, uint32_t joined, int64_t count)
{
    HR_ASSERT(e->merge_count < e->sizes.merges);
    e->merges[e->merge_count++] = (hr_engine_merge){ left, right, joined, true, false, count };
}
