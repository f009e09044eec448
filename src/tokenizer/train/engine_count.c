/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/engine_count.c - counts all pairs of the corpus without a table of all pairs.
 *
 * Right tokens are grouped by left token, as many left tokens at a time as fit. Within a group one
 * counter per right token suffices. The first pass computes a histogram of the counts, which
 * determines the floor. The second pass keeps the pairs above it. A last pass fills their lists. */
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/sort.h"
#include "tokenizer/train/engine_pairs.h"
#include "tokenizer/train/engine_parts.h"

static int32_t level_of(int64_t count)
{
    if (count < HR_LEVELS_EXACT) return (int32_t)count;
    const int32_t shift = 63 - __builtin_clzll((uint64_t)count) - 6;
    return HR_LEVELS_EXACT + (shift - 4) * 64 + (int32_t)((count >> shift) - 64);
}

/* The smallest count of a level. */
static int64_t level_least(int32_t level)
{
    if (level < HR_LEVELS_EXACT) return level;
    const int32_t over = level - HR_LEVELS_EXACT;
    return (int64_t)(64 + over % 64) << (over / 64 + 4);
}

/* Pairs that would make too long a token are not counted, except pairs of single characters, which
 * the reference counts before anything is merged. */
static bool is_counted(const hr_engine *e, uint32_t a, uint32_t b)
{
    const int64_t left = e->vocabulary.tokens[a].characters;
    const int64_t right = e->vocabulary.tokens[b].characters;
    if (left + right >= e->rules.characters_max && left + right > 2) return false;
    return !e->rules.filters || !hr_vocabulary_refuses(&e->vocabulary, a, b);
}

/* Counts the occurrences of each token as left token, in `gained`. Returns the largest. */
static int64_t count_lefts(hr_engine *e, int64_t *all)
{
    const uint32_t *slots = e->slots;
    hr_engine_side *left = e->sides[0];
    int64_t most = 0;
    for (uint32_t id = 0; id < e->vocabulary.count; id++) left[id] = (hr_engine_side){ 0 };
    for (uint32_t at = 0, next; at < e->slot_count - 1; at = next) {
        next = hr_slot_next(slots, at);
        if (!(slots[next] & HR_SLOT_FIRST)) left[hr_slot_token(slots[at])].gained++;
    }
    *all = 0;
    for (uint32_t id = 0; id < e->vocabulary.count; id++) {
        most = hr_max(most, left[id].gained);
        *all += left[id].gained;
    }
    return most;
}

/* The end of the group of left tokens from `first` whose occurrences fit in `room`. */
static uint32_t group_end(const hr_engine *e, uint32_t first, int64_t room, int64_t *occurrences)
{
    *occurrences = 0;
    for (; first < e->vocabulary.count; first++) {
        const int64_t more = e->sides[0][first].gained;
        if (*occurrences + more > room) break;
        *occurrences += more;
    }
    return first;
}

/* Writes the right tokens of left tokens [first, end) to `to`, contiguous per left token; if words
 * have counts, each with the word that it occurs in. */
static void group(hr_engine *e, uint32_t first, uint32_t end, uint32_t *to)
{
    const uint32_t *slots = e->slots;
    hr_engine_side *left = e->sides[0];
    const int64_t step = e->owners ? 2 : 1;
    int64_t sum = 0;
    for (uint32_t id = first; id < end; id++) {
        left[id].lost = sum;
        sum += step * left[id].gained;
    }
    for (uint32_t at = 0, next; at < e->slot_count - 1; at = next) {
        next = hr_slot_next(slots, at);
        const uint32_t a = hr_slot_token(slots[at]);
        if (a < first || a >= end || (slots[next] & HR_SLOT_FIRST)) continue;
        uint32_t *place = to + left[a].lost;
        place[0] = slots[next];
        if (e->owners) place[1] = e->owners[at];
        left[a].lost += step;
    }
}

/* Counts the right tokens of one left token in sides[1]; touched[1] lists them. */
static void count_rights(hr_engine *e, const uint32_t *group, int64_t count)
{
    hr_engine_side *right = e->sides[1];
    uint32_t touched = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t b = e->owners ? group[2 * i] : group[i];
        if (!right[b].events++) e->touched[1][touched++] = b;
        right[b].gained += e->owners ? e->counts[e->owners ? group[2 * i + 1] : 0] : 1;
    }
    e->touched_count[1] = touched;
}

static void forget_rights(hr_engine *e)
{
    for (uint32_t i = 0; i < e->touched_count[1]; i++)
        e->sides[1][e->touched[1][i]] = (hr_engine_side){ 0 };
    e->touched_count[1] = 0;
}

static void add_levels(hr_engine *e, uint32_t a, int64_t *occurrences_most)
{
    for (uint32_t i = 0; i < e->touched_count[1]; i++) {
        const uint32_t b = e->touched[1][i];
        const hr_engine_side *side = &e->sides[1][b];
        if (!is_counted(e, a, b)) continue;
        hr_engine_level *level = &e->levels[level_of(side->gained)];
        level->pairs++;
        level->occurrences += side->events;
        *occurrences_most = hr_max(*occurrences_most, side->events);
    }
}

typedef struct {
    int64_t pairs, positions; /* limits */
    int64_t floor;            /* minimum count to keep */
    bool partly;              /* pairs with the floor's count are kept only as far as they fit */
} choice;

/* A list takes two words besides its positions. */
static void choose(const hr_engine *e, int64_t floor, choice *c)
{
    int64_t pairs = 0, positions = 0;
    int32_t level = HR_LEVELS - 1, lowest = level_of(floor);
    while (level > 0 && !e->levels[level].pairs) level--;
    c->floor = level_least(level);
    c->partly = true;
    for (; level >= lowest; level--) {
        pairs += e->levels[level].pairs;
        positions += e->levels[level].occurrences + 2 * e->levels[level].pairs;
        if (pairs > c->pairs || positions > c->positions) return;
        c->floor = hr_max(floor, level_least(level));
        c->partly = false;
    }
}

static bool smaller(const void *table, int32_t a, int32_t b)
{
    (void)table;
    return a < b;
}

/* Keeps the pairs of a left token that are above the floor and reserves their lists. If not all
 * pairs with the floor's count fit, keeps those with the smallest keys; floor_key is the last of
 * them. */
static void keep(hr_engine *e, uint32_t a, choice *c)
{
    hr_engine_side *right = e->sides[1];
    if (e->floor_key != UINT64_MAX) return;
    if (c->partly) hr_sort(0, smaller, (int32_t *)e->touched[1], (int32_t)e->touched_count[1]);
    for (uint32_t i = 0; i < e->touched_count[1]; i++) {
        const uint32_t b = e->touched[1][i];
        const int64_t needed = right[b].events + 2;
        if (right[b].gained < c->floor || !is_counted(e, a, b)) continue;
        if (c->partly && (e->pair_count >= c->pairs || e->position_count + needed > c->positions))
            e->floor_key = hr_pair_key(a, b) - 1;
        if (e->floor_key != UINT64_MAX) break;
        hr_engine_add_pair(e, hr_pair_key(a, b), right[b].gained, right[b].events);
        e->sides[0][a].events = 1; /* some pair of this left token is kept */
    }
}

/* Fills the lists of the kept pairs. */
static void fill(hr_engine *e)
{
    const uint32_t *slots = e->slots;
    for (int64_t i = 0; i < e->pair_count; i++) {
        hr_engine_head_list(e, (uint32_t)i);
        e->pairs[i].places = 0;
    }
    for (uint32_t at = 0, next; at < e->slot_count - 1; at = next) {
        next = hr_slot_next(slots, at);
        const uint32_t a = hr_slot_token(slots[at]), b = slots[next];
        if ((b & HR_SLOT_FIRST) || !e->sides[0][a].events) continue;
        hr_engine_pair *pair = hr_engine_find(e, hr_pair_key(a, b));
        if (pair) e->positions[pair->first + pair->places++] = at;
    }
}

typedef void left_function(hr_engine *e, uint32_t a, void *context);

/* Counts the pairs of each left token, one group at a time, and calls `each`. `grouped`: the
 * previous pass had one group, which is still in place. */
static void for_each_left(hr_engine *e, bool grouped, left_function *each, void *context)
{
    const int64_t step = e->owners ? 2 : 1;
    int64_t occurrences;
    for (uint32_t first = 0, end; first < e->vocabulary.count; first = end) {
        end = group_end(e, first, e->sizes.positions / step, &occurrences);
        HR_ASSERT(end > first);
        const uint32_t *at = e->positions;
        if (!grouped) group(e, first, end, e->positions);
        for (uint32_t a = first; a < end; a++) {
            const int64_t count = e->sides[0][a].gained;
            if (!count) continue;
            count_rights(e, at, count);
            each(e, a, context);
            forget_rights(e);
            at += step * count;
        }
    }
}

static void add_levels_of(hr_engine *e, uint32_t a, void *context)
{
    add_levels(e, a, context);
}

static void keep_of(hr_engine *e, uint32_t a, void *context)
{
    keep(e, a, context);
}

/* The number of pairs to keep for a large corpus. Most pairs are too rare to ever be merged. How
 * many are frequent enough is a guess; each recount doubles it. For a small corpus all pairs are
 * kept, at no cost. */
enum { SMALL_SLOTS = 1 << 20, PAIRS_A_MERGE = 4 };

static int64_t pairs_wanted(const hr_engine *e)
{
    const int64_t left = e->rules.vocabulary_max - (int64_t)e->vocabulary.count;
    if (e->slot_count <= SMALL_SLOTS) return e->sizes.pairs;
    return hr_max(16384, hr_max(0, left) * PAIRS_A_MERGE) << hr_min(e->recounts - 1, 8);
}

hr_status hr_engine_count(hr_engine *e, int64_t floor, hr_error *err)
{
    const int64_t step = e->owners ? 2 : 1;
    int64_t all, most_pair = 0;
    e->pair_count = e->heap_count = e->position_count = 0;
    e->recounts++;
    memset(e->index, 0, (size_t)4 << e->index_bits);
    memset(e->levels, 0, HR_LEVELS * sizeof *e->levels);
    const int64_t most = count_lefts(e, &all);
    const bool fits = step * most <= e->sizes.positions;
    if (fits) for_each_left(e, false, add_levels_of, &most_pair);
    const int64_t room = e->sizes.pairs - hr_engine_room_pairs(e, most_pair);
    choice c = { .pairs = hr_min(pairs_wanted(e), hr_min(e->sizes.pairs / 8 * 5, room)),
                 .positions = e->sizes.positions - hr_engine_room_positions(most_pair) };
    if (!fits || c.positions < most_pair + 2 || room < 1)
        return hr_fail(err, HR_NO_FIT,
                       "pairs: the most frequent token occurs %lld times, too often for %lld "
                       "positions",
                       (long long)most, (long long)e->sizes.positions);
    choose(e, hr_max(1, floor), &c);
    if (all > 0 && c.partly && c.floor >= HR_LEVELS_EXACT)
        return hr_fail(err, HR_NO_FIT, "pairs: those with a count above %lld do not fit in %lld",
                       (long long)c.floor, (long long)e->sizes.pairs);
    e->floor_count = c.floor;
    e->floor_key = UINT64_MAX;
    if (all > 0) for_each_left(e, step * all <= e->sizes.positions, keep_of, &c);
    fill(e);
    for (uint32_t id = 0; id < e->vocabulary.count; id++) e->sides[0][id] = (hr_engine_side){ 0 };
    e->heap_count = e->pair_count;
    for (int64_t i = 0; i < e->pair_count; i++)
        e->heap[i] = (hr_engine_top){ e->pairs[i].count, (uint32_t)i };
    hr_engine_make_heap(e);
    return HR_OK;
}
