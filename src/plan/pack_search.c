/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack_search.c - the exact search: is there a placement in so many bytes?
 *
 * Items are put down in the order of their offsets, each resting on what is below it: every
 * placement that cannot be pushed down has this form. After each step the part may fall apart in
 * time; the pieces are solved alone, so a failure in one never repeats the work of another. */
#include "plan/pack_part.h"

#include "base/checked.h"

enum { PLACED = INT32_MAX, TRAIL_MAX = 1 << 20 };

/* What an item's low was before it was raised, or before the item was placed. */
typedef struct {
    int32_t item, low;
} undo;

/* One decision: which item of sections first..last comes next. */
typedef struct {
    int32_t first, last;
    int32_t low, rank;      /* the last choice tried; the next one comes after it */
    int32_t roof;           /* a choice at or above this leaves a hole that an item would fit */
    int32_t trail;          /* what to take back before another choice */
    int32_t cursor;         /* pieces before this section are solved */
    bool chosen;
} decision;

/* Items are numbered by rank here; sizes and offsets are in units of the part. */
typedef struct {
    int32_t count, sections, capacity;
    int32_t *first, *last, *size;
    int32_t *low;           /* where it would rest now; PLACED */
    int32_t *offset;        /* of placed ones */
    int32_t *queue;         /* all items by low, nearly sorted between two checks */
    int32_t *rest;          /* [sections] units still to place */
    int32_t *height;        /* [sections] scratch of the check */
    decision *stack;
    undo *trail;
    int32_t depth, trail_count, trail_max;
} search;

static bool take_tables(search *s, hr_region *scratch)
{
    const int64_t n = s->count;
    s->trail_max = (int32_t)hr_min(n * n + n, TRAIL_MAX);
    s->first = hr_region_take(scratch, n, sizeof *s->first);
    s->last = hr_region_take(scratch, n, sizeof *s->last);
    s->size = hr_region_take(scratch, n, sizeof *s->size);
    s->low = hr_region_take(scratch, n, sizeof *s->low);
    s->offset = hr_region_take(scratch, n, sizeof *s->offset);
    s->queue = hr_region_take(scratch, n, sizeof *s->queue);
    s->rest = hr_region_take(scratch, s->sections, sizeof *s->rest);
    s->height = hr_region_take(scratch, s->sections, sizeof *s->height);
    s->stack = hr_region_take(scratch, n + 1, sizeof *s->stack);
    s->trail = hr_region_take(scratch, s->trail_max, sizeof *s->trail);
    return s->trail != 0;
}

static void fill_tables(search *s, const hr_pack_part *part, const int32_t *order)
{
    for (int32_t rank = 0; rank < s->count; rank++) {
        const hr_pack_item *item = &part->items[order[rank]];
        s->first[rank] = item->first - part->first;
        s->last[rank] = item->last - part->first;
        s->size[rank] = (int32_t)(item->bytes / part->unit);
        s->queue[rank] = rank;
        for (int32_t i = s->first[rank]; i <= s->last[rank]; i++) s->rest[i] += s->size[rank];
    }
}

static void remember(search *s, int32_t item)
{
    s->trail[s->trail_count++] = (undo){ item, s->low[item] };
}

static void take_back(search *s, int32_t mark)
{
    while (s->trail_count > mark) {
        const undo u = s->trail[--s->trail_count];
        if (s->low[u.item] == PLACED)
            for (int32_t i = s->first[u.item]; i <= s->last[u.item]; i++)
                s->rest[i] += s->size[u.item];
        s->low[u.item] = u.low;
    }
}

/* Puts `item` down and lifts what is above it. False when something no longer fits. */
static bool place(search *s, int32_t item)
{
    const int32_t first = s->first[item], last = s->last[item];
    const int32_t top = s->low[item] + s->size[item];
    remember(s, item);
    s->offset[item] = s->low[item];
    s->low[item] = PLACED;
    for (int32_t i = first; i <= last; i++) s->rest[i] -= s->size[item];
    bool fits = true;
    for (int32_t other = 0; other < s->count; other++) {
        if (s->low[other] >= top || s->first[other] > last || s->last[other] < first) continue;
        remember(s, other);
        s->low[other] = top;
        if (s->size[other] > s->capacity - top) fits = false;
    }
    return fits;
}

/* Sorts the queue by low. Few items have moved since the last time. */
static void sort_queue(search *s)
{
    for (int32_t i = 1; i < s->count; i++) {
        const int32_t item = s->queue[i], low = s->low[item];
        int32_t j = i;
        for (; j > 0 && s->low[s->queue[j - 1]] > low; j--) s->queue[j] = s->queue[j - 1];
        s->queue[j] = item;
    }
}

/* Can the items of sections first..last that are not placed still be stacked, each section for
 * itself? A section's items, taken in the order of the lowest offset that each may have, need at
 * least the height that this loop builds. Nothing goes below `low` any more. */
static bool check(search *s, int32_t first, int32_t last, int32_t low)
{
    sort_queue(s);
    for (int32_t i = first; i <= last; i++) s->height[i] = low;
    for (int32_t k = 0; k < s->count; k++) {
        const int32_t item = s->queue[k];
        if (s->low[item] == PLACED) break;
        if (s->first[item] < first || s->last[item] > last) continue;
        int32_t most = 0;
        for (int32_t i = s->first[item]; i <= s->last[item]; i++) {
            const int32_t from = s->height[i] > s->low[item] ? s->height[i] : s->low[item];
            s->height[i] = from + s->size[item];
            most = most > s->height[i] ? most : s->height[i];
        }
        if (most > s->capacity) return false;
    }
    return true;
}

/* Opens a decision over sections first..last, going on after the choice (low, rank). */
static void open_decision(search *s, int32_t first, int32_t last, int32_t low, int32_t rank)
{
    int32_t roof = INT32_MAX;
    for (int32_t item = 0; item < s->count; item++) {
        if (s->low[item] == PLACED || s->first[item] < first || s->last[item] > last) continue;
        const int32_t top = s->low[item] + s->size[item];
        if (top < roof) roof = top;
    }
    s->stack[s->depth++] = (decision){ first, last, low, rank, roof, s->trail_count, first, false };
}

/* The next item to try: the least (low, rank) after the last one. HR_NONE: no more. */
static int32_t next_choice(const search *s, const decision *d)
{
    int32_t best = -1, best_low = d->roof;
    for (int32_t item = 0; item < s->count; item++) {
        const int32_t low = s->low[item];
        if (low >= best_low || low < d->low || (low == d->low && item <= d->rank)) continue;
        if (s->first[item] < d->first || s->last[item] > d->last) continue;
        best = item;
        best_low = low;
    }
    return best;
}

/* The next piece of the decision's sections that still holds items. False: all are placed. */
static bool next_piece(const search *s, const decision *d, int32_t *first, int32_t *last)
{
    int32_t from = d->cursor;
    while (from <= d->last && s->rest[from] == 0) from++;
    if (from > d->last) return false;
    int32_t to = from;
    for (bool grew = true; grew;) {
        grew = false;
        for (int32_t item = 0; item < s->count; item++) {
            if (s->low[item] == PLACED || s->last[item] <= to) continue;
            if (s->first[item] > to || s->first[item] < from) continue;
            to = s->last[item];
            grew = true;
        }
    }
    *first = from;
    *last = to;
    return true;
}

/* One step of the search on the decision on top. */
static void advance(search *s, int64_t *nodes)
{
    decision *d = &s->stack[s->depth - 1];
    if (d->chosen) {
        int32_t first, last;
        if (!next_piece(s, d, &first, &last)) {
            s->depth--;                          /* solved: what it placed stays */
            return;
        }
        d->cursor = last + 1;
        open_decision(s, first, last, d->low, d->rank);
        return;
    }
    const int32_t item = next_choice(s, d);
    if (item < 0) {                              /* failed: so did the choice that led here */
        if (--s->depth == 0) return;
        decision *parent = &s->stack[s->depth - 1];
        take_back(s, parent->trail);
        parent->chosen = false;
        return;
    }
    ++*nodes;
    d->low = s->low[item];
    d->rank = item;
    d->cursor = d->first;
    d->chosen = place(s, item) && check(s, d->first, d->last, d->low);
    if (!d->chosen) take_back(s, d->trail);
}

hr_pack_answer hr_pack_search(const hr_pack_part *part, const int32_t *order, int64_t capacity,
                              int64_t *work, int64_t *nodes, hr_region *scratch, int64_t *offsets)
{
    const int64_t used = scratch->used, units = capacity / part->unit;
    search s = { .count = part->count, .sections = part->last - part->first + 1 };
    hr_pack_answer answer = HR_PACK_GAVE_UP;
    for (int32_t i = 0; i < part->count; i++)
        if (part->items[i].load > capacity) return HR_PACK_IMPOSSIBLE;
    if (units > INT32_MAX / 2 || !take_tables(&s, scratch)) goto done;
    s.capacity = (int32_t)units;
    fill_tables(&s, part, order);
    open_decision(&s, 0, s.sections - 1, 0, -1);
    bool failed = !check(&s, 0, s.sections - 1, 0);
    while (!failed && s.depth > 0) {
        if (*work <= 0 || s.trail_count + s.count > s.trail_max) goto done;
        *work -= s.count;
        const bool only = s.depth == 1 && !s.stack[0].chosen;
        advance(&s, nodes);
        failed = only && s.depth == 0;
    }
    answer = failed ? HR_PACK_IMPOSSIBLE : HR_PACK_FOUND;
    if (!failed)
        for (int32_t rank = 0; rank < s.count; rank++)
            offsets[order[rank]] = s.offset[rank] * part->unit;
done:
    scratch->used = used;
    return answer;
}
