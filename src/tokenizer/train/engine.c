/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/engine.c - one merge: processes the position list of the best pair from left to
 * right, sums the lost and gained occurrences per neighbor, then looks up each changed pair
 * once. */
#include "tokenizer/train/engine.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "headroom/status.h"
#include "tokenizer/train/engine_pairs.h"
#include "tokenizer/train/engine_parts.h"

static int32_t index_bits_for(int64_t pairs)
{
    int32_t bits = 4;
    while (INT64_C(1) << bits < pairs + pairs / 2) bits++;
    return bits;
}

int64_t hr_engine_corpus_bytes(const hr_engine_sizes *s)
{
    return hr_round_up(s->slots * 4, 64) * (s->words ? 2 : 1) + hr_round_up(s->words * 8, 64);
}

void hr_engine_place_corpus(hr_engine *e, hr_region *region, const hr_engine_sizes *s)
{
    *e = (hr_engine){ .sizes = *s };
    e->slots = hr_region_take_raw(region, s->slots, 4);
    HR_ASSERT(e->slots);
    if (!s->words) return;
    e->owners = hr_region_take_raw(region, s->slots, 4);
    e->counts = hr_region_take_raw(region, s->words, 8);
    HR_ASSERT(e->owners && e->counts);
}

int64_t hr_engine_bytes(const hr_engine_sizes *s)
{
    const int64_t parts[] = {
        s->positions * 4,
        s->pairs * (int64_t)sizeof(hr_engine_pair),
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

void hr_engine_place(hr_engine *e, hr_region *region)
{
    const hr_engine_sizes *s = &e->sizes;
    e->floor_count = 1;
    e->floor_key = UINT64_MAX;
    e->index_bits = index_bits_for(s->pairs);
    hr_vocabulary_place(&e->vocabulary, region, s->tokens, s->leaves);
    e->positions = hr_region_take_raw(region, s->positions, 4);
    e->pairs = hr_region_take_raw(region, s->pairs, sizeof *e->pairs);
    e->heap = hr_region_take_raw(region, s->pairs, sizeof *e->heap);
    e->index = hr_region_take(region, INT64_C(1) << e->index_bits, 4);
    for (int32_t i = 0; i < 2; i++)
        e->sides[i] = hr_region_take(region, s->tokens, sizeof **e->sides);
    for (int32_t i = 0; i < 2; i++) e->touched[i] = hr_region_take_raw(region, s->tokens, 4);
    e->merges = hr_region_take_raw(region, s->merges, sizeof *e->merges);
    e->levels = hr_region_take_raw(region, HR_LEVELS, sizeof *e->levels);
    HR_ASSERT(e->levels && e->positions && e->pairs && e->heap && e->index && e->sides[1] &&
              e->touched[1] && e->merges);
}

/* Position lists. */

enum { NO_PAIR = UINT32_MAX };

/* Frees a pair's list. Its positions stay readable until the next compaction. */
static void drop_list(hr_engine *e, hr_engine_pair *pair)
{
    if (pair->places) e->positions[pair->first - 2] = NO_PAIR;
    pair->places = 0;
}

static bool is_there(const hr_engine *e, uint32_t at, uint64_t key)
{
    return hr_slot_token(e->slots[at]) == key >> 32 &&
           e->slots[hr_slot_next(e->slots, at)] == (uint32_t)key;
}

/* Moves the lists to the front and removes positions that no longer match their pair. */
static void tidy(hr_engine *e)
{
    int64_t to = 0;
    for (int64_t from = 0, end; from < e->position_count; from = end) {
        const uint32_t number = e->positions[from];
        const int64_t head = to;
        end = from + 2 + e->positions[from + 1];
        if (number == NO_PAIR) continue;
        hr_engine_pair *pair = &e->pairs[number];
        to += 2;
        for (int64_t i = from + 2; i < end; i++)
            if (is_there(e, e->positions[i], pair->key)) e->positions[to++] = e->positions[i];
        pair->first = (uint32_t)head + 2;
        pair->places = (uint32_t)(to - head - 2);
        e->positions[head] = number;
        e->positions[head + 1] = pair->places;
        if (!pair->places) to = head;
    }
    e->position_count = to;
}

/* Sums per neighbor. */

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

/* Joins the tokens at `at` and `right` into one that ends before `end`. Only its first slot stays
 * live. */
static void join_slots(uint32_t *slots, uint32_t at, uint32_t right, uint32_t end, uint32_t joined)
{
    slots[at] = joined | (slots[at] & HR_SLOT_FIRST);
    slots[right] = slots[at + 1] = slots[end - 1] = HR_SLOT_DEAD | (end - at);
}

typedef struct {
    uint32_t a, b, joined;
    uint32_t characters; /* of joined */
    int64_t events;
} work;

static bool may_grow(const hr_engine *e, const work *w, uint32_t id)
{
    return (int64_t)e->vocabulary.tokens[id].characters + w->characters < e->rules.characters_max;
}

/* Merges one occurrence. The sums are those of merging all occurrences from left to right. */
static void merge_at(hr_engine *e, work *w, uint32_t at, uint32_t right)
{
    uint32_t *slots = e->slots;
    const uint32_t end = hr_slot_next(slots, right);
    const int64_t count = e->owners ? e->counts[e->owners[at]] : 1;
    const uint32_t after = slots[end];
    join_slots(slots, at, right, end, w->joined);
    if (!(slots[at] & HR_SLOT_FIRST)) {
        const uint32_t left_at = hr_slot_previous(slots, at), left = hr_slot_token(slots[left_at]);
        hr_engine_side *side = side_of(e, 0, left);
        side->lost += count;
        if (may_grow(e, w, left)) {
            side->gained += count;
            note(e, &w->events, 0, left, left_at);
        }
    }
    if (!(after & HR_SLOT_FIRST)) {
        side_of(e, 1, after)->lost += count;
        if (may_grow(e, w, after)) {
            /* A pair of two joined tokens is recorded once, on the left. */
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

static bool above_floor(const hr_engine *e, int64_t count, uint64_t key)
{
    return count > e->floor_count || (count == e->floor_count && key <= e->floor_key);
}

static bool has_floor(const hr_engine *e)
{
    return e->floor_count > 1 || e->floor_key != UINT64_MAX;
}

/* Adds a new pair. Its count can only decrease from now on, so it is tracked only above the
 * floor. */
static void gain(hr_engine *e, uint64_t key, int64_t count, hr_engine_side *side)
{
    side->at = NO_PAIR;
    if (count <= 0 || !above_floor(e, count, key)) return;
    const uint32_t pair = hr_engine_add_pair(e, key, count, side->events);
    side->at = e->pairs[pair].first;
    hr_engine_head_list(e, pair);
    hr_engine_push(e, pair, count);
}

static void update_counts(hr_engine *e, const work *w)
{
    const uint32_t a = w->a, b = w->b, c = w->joined;
    hr_engine_side *left = e->sides[0], *right = e->sides[1];
    /* (c,a) and (b,c) may be lost and gained by the same merge: the net change counts. */
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
            gain(e, hr_pair_key(x, c), left[x].gained - (x == b ? lost_bc : 0), &left[x]);
    }
    for (uint32_t i = 0; i < e->touched_count[1]; i++) {
        const uint32_t y = e->touched[1][i];
        if (right[y].events)
            gain(e, hr_pair_key(c, y), right[y].gained - (y == a ? lost_ca : 0), &right[y]);
    }
}

/* Writes the events to the lists of their pairs. */
static void fill_lists(hr_engine *e, const work *w)
{
    for (int64_t i = 1; i <= w->events; i++) {
        const uint32_t *event = e->positions + e->sizes.positions - 2 * i;
        hr_engine_side *side = &e->sides[event[0] >> 31][event[0] & ~HR_SLOT_DEAD];
        if (side->at != NO_PAIR) e->positions[side->at++] = event[1];
    }
    for (int32_t which = 0; which < 2; which++) {
        for (uint32_t i = 0; i < e->touched_count[which]; i++)
            e->sides[which][e->touched[which][i]] = (hr_engine_side){ 0 };
        e->touched_count[which] = 0;
    }
}

static bool has_room(const hr_engine *e, const hr_engine_pair *pair)
{
    const int64_t pairs = hr_engine_room_pairs(e, pair->places);
    return e->position_count + hr_engine_room_positions(pair->places) <= e->sizes.positions &&
           e->pair_count + pairs <= e->sizes.pairs && e->heap_count + pairs <= e->sizes.pairs;
}

/* Merges all occurrences of a pair. A token is only ever made by one pair: wherever its text occurs
 * and no merge crosses its ends, the same merges were applied in the same order, because pairs are
 * joined from left to right even where they overlap. So a pair never appears a second time, and the
 * final count of a merged pair is not needed. */
static hr_status merge_pair(hr_engine *e, hr_engine_pair *pair, hr_error *err)
{
    work w = { .a = (uint32_t)(pair->key >> 32), .b = (uint32_t)pair->key };
    w.joined = hr_vocabulary_join(&e->vocabulary, w.a, w.b);
    hr_vocabulary_token *token = &e->vocabulary.tokens[w.joined];
    if (token->is_made)
        return hr_fail(err, HR_BROKEN,
                       "token %u: made of tokens %u and %u, but an earlier merge makes it too",
                       w.joined, w.a, w.b);
    token->is_made = true;
    w.characters = token->characters;
    const uint32_t *at = e->positions + pair->first;
    for (uint32_t i = 0; i < pair->places; i++) {
        if (i + 16 < pair->places) __builtin_prefetch(&e->slots[at[i + 16]]);
        if (hr_slot_token(e->slots[at[i]]) != w.a) continue;
        const uint32_t right = hr_slot_next(e->slots, at[i]);
        if (e->slots[right] == w.b) merge_at(e, &w, at[i], right);
    }
    drop_list(e, pair);
    hr_engine_inherit(e, w.a, w.b);
    update_counts(e, &w);
    fill_lists(e, &w);
    return HR_OK;
}

/* Makes room for merging a pair. If compaction is not enough, recounts all pairs: *again is true
 * and pairs have new numbers. */
static hr_status make_room(hr_engine *e, const hr_engine_pair *pair, bool *again, hr_error *err)
{
    *again = false;
    if (!has_room(e, pair)) tidy(e);
    if (has_room(e, pair)) return HR_OK;
    *again = true;
    return hr_engine_count(e, e->floor_count, err);
}

/* Updates the top of the heap until the best pair is known; null: none. Drops pairs that the
 * filters refuse. */
static hr_status best(hr_engine *e, hr_engine_pair **found, hr_error *err)
{
    for (*found = 0;;) {
        hr_engine_top *top = &e->heap[0];
        hr_engine_pair *pair = e->heap_count ? &e->pairs[top->pair] : 0;
        if (has_floor(e) && (!pair || !above_floor(e, top->count, pair->key))) {
            /* Pairs below the minimum count are never merged. */
            if (e->floor_count <= e->rules.least && e->floor_key == UINT64_MAX) return HR_OK;
            hr_status status = hr_engine_count(e, 1, err);
            if (status || !e->heap_count) return status;
            continue;
        }
        if (!pair) return HR_OK;
        if (top->count != pair->count) {
            top->count = pair->count;
            hr_engine_sink(e, 0);
            continue;
        }
        if (pair->count < hr_max(1, e->rules.least)) return HR_OK;
        if (!e->rules.filters || !hr_vocabulary_refuses(&e->vocabulary, (uint32_t)(pair->key >> 32),
                                                        (uint32_t)pair->key)) {
            *found = pair;
            return HR_OK;
        }
        drop_list(e, pair);
        hr_engine_drop_top(e);
    }
}

hr_status hr_engine_step(hr_engine *e, bool *made, hr_error *err)
{
    *made = false;
    if ((int64_t)e->vocabulary.count >= e->rules.vocabulary_max) return HR_OK;
    if (e->merge_count == e->sizes.merges)
        return hr_fail(err, HR_NO_FIT, "merges: more than %lld, and some make no new token",
                       (long long)e->sizes.merges);
    for (int32_t tries = 0; tries < 2; tries++) {
        hr_engine_pair *pair;
        bool again;
        hr_status status = best(e, &pair, err);
        if (status || !pair) return status;
        status = make_room(e, pair, &again, err);
        if (status) return status;
        if (again) continue;
        hr_engine_drop_top(e);
        status = merge_pair(e, pair, err);
        *made = status == HR_OK;
        return status;
    }
    return hr_fail(err, HR_NO_FIT, "merges: %lld positions and %lld pairs are too few",
                   (long long)e->sizes.positions, (long long)e->sizes.pairs);
}

void hr_engine_inherit(hr_engine *e, uint32_t left, uint32_t right)
{
    HR_ASSERT(e->merge_count < e->sizes.merges);
    e->merges[e->merge_count++] = (hr_engine_merge){ left, right };
}
