/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack/search.c - the exact search: is there a placement within a capacity?
 *
 * Items are placed in the order of their offsets, each on top of those below it: every placement
 * that cannot be pushed down has this form. After each placement the part may split in time. The
 * pieces are solved separately, so a failure in one never repeats the work of another. */
#include "plan/pack/part.h"

#include "base/checked.h"

enum {
    TRAIL_MAX = 1 << 18,
    LIST_MAX = 1 << 20,
    CHOICES_BETWEEN_STOPS = 1 << 12,
    LOOKS_AN_ITEM = 64
};

/* The previous low of an item, for backtracking. */
typedef struct {
    int64_t low;
    int32_t item;
} undo;

/* One decision: which of its items comes next. It owns list[begin, end). After a choice, list[end,
 * left) has the remaining items that are not solved yet. */
typedef struct {
    int32_t begin, end, left;
    int32_t next; /* first choice in the list that is not tried yet */
    int32_t rank; /* the choice; before the first, the choice of the parent decision */
    int64_t low;
    int64_t roof;          /* choices at or above this cannot succeed */
    int32_t trail, placed; /* state to restore before the next choice */
    bool chosen;
} decision;

/* Item numbers are ranks; sizes and offsets are in units of the part. */
typedef struct {
    int32_t count, sections;
    int64_t capacity;
    int32_t *first, *last;
    int64_t *size;
    int64_t *low;    /* offset of a placed item, or lowest possible offset */
    int32_t *list;   /* items; in the range of each decision sorted by low, then rank */
    int32_t *placed; /* items in order of placement */
    int32_t *spare;  /* [count] scratch */
    int64_t *rest;   /* [sections] units of the items not placed yet */
    int64_t *height; /* [sections] scratch */
    decision *stack;
    undo *trail;
    int32_t depth, placed_count, trail_count, trail_max, list_max;
    int64_t looks; /* sections examined */
    bool failed;   /* the first decision has no choice left */
} search;

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t hr_pack_search_bytes(int32_t count)
{
    const int64_t n = count, tables = 12 * 64;
    return tables + n * (4 * (int64_t)sizeof(int32_t) + 4 * 8 + (int64_t)sizeof(decision)) +
           hr_min(n * n + n, TRAIL_MAX) * (int64_t)sizeof(undo) +
           hr_min(n * n + n, LIST_MAX) * (int64_t)sizeof(int32_t);
}

static void take_tables(search *s, hr_pack_effort *effort)
{
    const int64_t n = s->count;
    s->trail_max = (int32_t)hr_min(n * n + n, TRAIL_MAX);
    s->list_max = (int32_t)hr_min(n * n + n, LIST_MAX);
    s->first = hr_pack_take(effort, n, sizeof *s->first);
    s->last = hr_pack_take(effort, n, sizeof *s->last);
    s->size = hr_pack_take(effort, n, sizeof *s->size);
    s->low = hr_pack_take(effort, n, sizeof *s->low);
    s->placed = hr_pack_take(effort, n, sizeof *s->placed);
    s->spare = hr_pack_take(effort, n, sizeof *s->spare);
    s->rest = hr_pack_take(effort, s->sections, sizeof *s->rest);
    s->height = hr_pack_take(effort, s->sections, sizeof *s->height);
    s->stack = hr_pack_take(effort, n, sizeof *s->stack);
    s->trail = hr_pack_take(effort, s->trail_max, sizeof *s->trail);
    s->list = hr_pack_take(effort, s->list_max, sizeof *s->list);
}

/* Adds an item's size to the rest of its sections, or subtracts it. */
static void weigh(search *s, int32_t item, int64_t size)
{
    for (int32_t i = s->first[item]; i <= s->last[item]; i++) s->rest[i] += size;
}

static void fill_tables(search *s, const hr_pack_part *part, const int32_t *order)
{
    for (int32_t rank = 0; rank < s->count; rank++) {
        const hr_pack_item *item = &part->items[order[rank]];
        s->first[rank] = item->first - part->first;
        s->last[rank] = item->last - part->first;
        s->size[rank] = item->bytes / part->unit;
        s->list[rank] = rank;
        weigh(s, rank, s->size[rank]);
    }
}

static void take_back(search *s, decision *d)
{
    while (s->trail_count > d->trail) {
        const undo u = s->trail[--s->trail_count];
        s->low[u.item] = u.low;
    }
    while (s->placed_count > d->placed) {
        const int32_t item = s->placed[--s->placed_count];
        weigh(s, item, s->size[item]);
    }
    d->chosen = false;
}

/* Merges spare[0, raised), whose lows are now `top`, into list[begin, begin + kept). */
static void merge(search *s, int32_t begin, int32_t kept, int32_t raised, int64_t top)
{
    int32_t *list = &s->list[begin];
    while (raised > 0) {
        const int32_t other = kept > 0 ? list[kept - 1] : 0, item = s->spare[raised - 1];
        const bool after = kept > 0 &&
                           (s->low[other] > top || (s->low[other] == top && other > item));
        if (after) kept--;
        else raised--;
        list[kept + raised] = after ? other : item;
    }
}

/* Places `item`, raises the items that must be above it, and lists the remaining items behind the
 * decision's items. Few are raised, so a merge keeps the list sorted. False when one no longer
 * fits. */
static bool place(search *s, const decision *d, int32_t item)
{
    const int32_t first = s->first[item], last = s->last[item];
    const int64_t top = s->low[item] + s->size[item];
    int32_t kept = 0, raised = 0;
    for (int32_t k = d->begin; k < d->end; k++) {
        const int32_t other = s->list[k];
        if (other == item) continue;
        if (s->low[other] >= top || s->first[other] > last || s->last[other] < first) {
            s->list[d->end + kept++] = other;
            continue;
        }
        if (s->size[other] > s->capacity - top) return false;
        s->trail[s->trail_count++] = (undo){ .item = other, .low = s->low[other] };
        s->low[other] = top;
        int32_t j = raised++;
        for (; j > 0 && s->spare[j - 1] > other; j--) s->spare[j] = s->spare[j - 1];
        s->spare[j] = other;
    }
    merge(s, d->end, kept, raised, top);
    s->placed[s->placed_count++] = item;
    weigh(s, item, -s->size[item]);
    return true;
}

/* Returns whether each of the sections from..to can still stack its items of list[begin, end), each
 * section by itself. Taken by lowest possible offset, the items of a section need at least the
 * height computed here. Nothing can go below `low` any more. */
static bool check(search *s, int32_t begin, int32_t end, int64_t low, int32_t from, int32_t to)
{
    for (int32_t i = from; i <= to; i++) s->height[i] = low;
    for (int32_t k = begin; k < end; k++) {
        const int32_t item = s->list[k];
        const int64_t at = s->low[item], size = s->size[item];
        const int32_t first = (int32_t)most(s->first[item], from),
                      last = (int32_t)least(s->last[item], to);
        int64_t highest = 0;
        s->looks += most(last - first + 1, 0);
        for (int32_t i = first; i <= last; i++) {
            s->height[i] = most(s->height[i], at) + size;
            highest = most(highest, s->height[i]);
        }
        if (highest > s->capacity) return false;
    }
    return true;
}

/* Checks the sections in which an item was raised. In all others only `low` rose, which the roof
 * accounts for. */
static bool check_moved(search *s, const decision *d, int32_t item)
{
    int32_t from = s->first[item], to = s->last[item];
    for (int32_t k = d->trail; k < s->trail_count; k++) {
        from = (int32_t)least(from, s->first[s->trail[k].item]);
        to = (int32_t)most(to, s->last[s->trail[k].item]);
    }
    return check(s, d->end, d->left, d->low, from, to);
}

/* Moves the first piece in time of list[begin, end) to the back and returns its start. Uses
 * `height` for the last section that an item starting in a section reaches. */
static int32_t split(search *s, int32_t begin, int32_t end)
{
    int64_t *reach = s->height;
    int32_t from = s->sections, upto = 0;
    for (int32_t k = begin; k < end; k++) {
        from = (int32_t)least(from, s->first[s->list[k]]);
        upto = (int32_t)most(upto, s->last[s->list[k]]);
    }
    for (int32_t i = from; i <= upto; i++) reach[i] = 0;
    s->looks += upto - from + 1;
    for (int32_t k = begin; k < end; k++) {
        const int32_t item = s->list[k];
        reach[s->first[item]] = most(reach[s->first[item]], s->last[item]);
    }
    int32_t to = from, kept = begin, moved = 0;
    for (int32_t i = from; i <= to; i++) to = (int32_t)most(to, reach[i]);
    for (int32_t k = begin; k < end; k++) {
        const int32_t item = s->list[k];
        if (s->first[item] > to) s->list[kept++] = item;
        else s->spare[moved++] = item;
    }
    for (int32_t k = 0; k < moved; k++) s->list[kept + k] = s->spare[k];
    return kept;
}

/* Opens a decision over the piece list[begin, end); its choices come after (low, rank).
 *
 * The roof excludes two kinds of choices. A choice at or above the possible top of another item
 * leaves a hole that this item fits; that placement is found elsewhere. And everything that a
 * section still has to hold goes above the choice. */
static void open_decision(search *s, int32_t begin, int32_t end, int64_t low, int32_t rank)
{
    int64_t roof = INT64_MAX, rest = 0;
    int32_t from = s->sections, to = 0;
    for (int32_t k = begin; k < end; k++) {
        const int32_t item = s->list[k];
        roof = least(roof, s->low[item] + s->size[item]);
        from = (int32_t)least(from, s->first[item]);
        to = (int32_t)most(to, s->last[item]);
    }
    for (int32_t i = from; i <= to; i++) rest = most(rest, s->rest[i]);
    s->stack[s->depth++] = (decision){ .begin = begin,
                                       .end = end,
                                       .next = begin,
                                       .roof = least(roof, s->capacity - rest + 1),
                                       .low = low,
                                       .rank = rank,
                                       .trail = s->trail_count,
                                       .placed = s->placed_count };
}

/* The next item to try: the smallest (low, rank) after the last one. Negative: none left. */
static int32_t next_choice(search *s, decision *d)
{
    while (d->next < d->end) {
        const int32_t item = s->list[d->next++];
        const int64_t low = s->low[item];
        if (low >= d->roof) break;
        if (low > d->low || (low == d->low && item > d->rank)) return item;
    }
    return -1;
}

/* Continues after a choice: with the next piece, or with the previous decision. */
static void descend(search *s, decision *d)
{
    if (d->left == d->end) {
        s->depth--; /* solved: its items stay placed */
        return;
    }
    const int32_t end = d->left;
    d->left = split(s, d->end, end);
    open_decision(s, d->left, end, d->low, d->rank);
}

/* Tries the next choice of the top decision. If none is left, undoes the choice of its parent. */
static void choose(search *s, decision *d)
{
    const int32_t item = next_choice(s, d);
    if (item < 0) {
        s->failed = --s->depth == 0;
        if (!s->failed) take_back(s, &s->stack[s->depth - 1]);
        return;
    }
    d->low = s->low[item];
    d->rank = item;
    d->left = d->end + (d->end - d->begin) - 1;
    d->chosen = place(s, d, item) && check_moved(s, d, item);
    if (!d->chosen) take_back(s, d);
}

static hr_pack_answer run(search *s, int64_t work, hr_pack_effort *effort)
{
    int64_t left = hr_min(work, effort->work);
    for (int64_t choices = 0; !s->failed && s->depth > 0;) {
        decision *d = &s->stack[s->depth - 1];
        if (d->chosen) {
            descend(s, d);
            continue;
        }
        const int32_t items = d->end - d->begin;
        if (s->trail_count + items > s->trail_max || d->end + items > s->list_max)
            return HR_PACK_TOO_LARGE;
        if (choices++ % CHOICES_BETWEEN_STOPS == 0 && hr_pack_stopped(effort))
            return HR_PACK_GAVE_UP;
        if (left <= 0 || effort->work <= 0) return HR_PACK_GAVE_UP;
        left -= items;
        effort->work -= items + s->looks / LOOKS_AN_ITEM;
        s->looks = 0;
        effort->nodes++;
        choose(s, d);
    }
    return s->failed ? HR_PACK_IMPOSSIBLE : HR_PACK_FOUND;
}

hr_pack_answer hr_pack_search(const hr_pack_part *part, const int32_t *order, int64_t capacity,
                              int64_t work, hr_pack_effort *effort, int64_t *offsets)
{
    const int64_t used = effort->scratch->used;
    search s = { .count = part->count,
                 .sections = part->last - part->first + 1,
                 .capacity = capacity / part->unit };
    for (int32_t i = 0; i < part->count; i++)
        if (part->items[i].load > capacity) return HR_PACK_IMPOSSIBLE;
    take_tables(&s, effort);
    fill_tables(&s, part, order);
    open_decision(&s, 0, s.count, 0, -1);
    s.failed = !check(&s, 0, s.count, 0, 0, s.sections - 1);
    const hr_pack_answer answer = run(&s, work, effort);
    if (answer == HR_PACK_FOUND)
        for (int32_t rank = 0; rank < s.count; rank++)
            offsets[order[rank]] = s.low[rank] * part->unit;
    effort->scratch->used = used;
    return answer;
}
