/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack/repair.c - repairs a placement in which few items exceed the target.
 *
 * Removes those items and places them again one by one. If no gap holds an item, it displaces the
 * items with the least total price, which are placed again later. The price of an item starts at
 * bytes times lifetime, since long-lived items are hard to place, and rises each time it finds no
 * gap, so that two items cannot displace each other forever (ejection chains, as Nagata and Braysy
 * 2009 for routes). */
#include "base/checked.h"
#include "base/random.h"
#include "plan/pack/part.h"

enum { PLACES_MOST = 128, WORK_AN_ITEM = 2, WORK_A_NEIGHBOUR = 6, OUTSIDE_MOST = 16 };

/* An address range in use during a lifetime. */
typedef struct {
    int64_t low, high, price;
    int32_t id;
} taken;

typedef struct {
    const hr_pack_part *part;
    int64_t target;
    int64_t *offsets; /* [count]; negative: not placed */
    int32_t *waiting;
    int64_t *price;       /* [count] */
    taken *taken, *spare; /* [count] */
    int32_t waiting_count, taken_count;
    uint64_t draws;
} repair;

int64_t hr_pack_repair_bytes(int32_t count)
{
    const int64_t n = count;
    return 4 * 64 +
           n * ((int64_t)sizeof(int32_t) + (int64_t)sizeof(int64_t) + 2 * (int64_t)sizeof(taken));
}

static uint64_t draw(repair *r)
{
    return hr_random_mix(++r->draws);
}

static void merge(const taken *from, taken *to, int32_t low, int32_t middle, int32_t high)
{
    int32_t left = low, right = middle;
    for (int32_t i = low; i < high; i++) {
        const bool take_left = left < middle &&
                               (right == high || from[left].low <= from[right].low);
        to[i] = take_left ? from[left++] : from[right++];
    }
}

/* Lists the placed items that overlap the lifetime of `id`, by address. */
static void list_taken(repair *r, int32_t id)
{
    const hr_pack_item *items = r->part->items;
    const int32_t first = items[id].first, last = items[id].last, count = r->part->count;
    int32_t n = 0;
    for (int32_t i = 0; i < count; i++) {
        if (items[i].first > last) break; /* items are sorted by start */
        if (items[i].last < first || r->offsets[i] < 0) continue;
        r->taken[n++] = (taken){ r->offsets[i], r->offsets[i] + items[i].bytes, r->price[i], i };
    }
    r->taken_count = n;
    taken *from = r->taken, *to = r->spare;
    for (int32_t width = 1; width < n; width *= 2) {
        for (int32_t low = 0; low < n; low += 2 * width)
            merge(from, to, low, (int32_t)hr_min(low + width, n),
                  (int32_t)hr_min(low + 2 * width, n));
        taken *swap = from;
        from = to;
        to = swap;
    }
    r->taken = from;
    r->spare = to;
}

/* The smallest gap below the target with at least `bytes`; negative: none. */
static int64_t best_gap(const repair *r, int64_t bytes)
{
    int64_t free_from = 0, best = -1, least = INT64_MAX;
    for (int32_t k = 0; k <= r->taken_count; k++) {
        const int64_t end = k < r->taken_count ? r->taken[k].low : r->target;
        if (end - free_from >= bytes && end - free_from < least) {
            least = end - free_from;
            best = free_from;
        }
        if (k < r->taken_count) free_from = hr_max(free_from, r->taken[k].high);
    }
    return best;
}

/* Candidate offset k: at the bottom, at the target, above and below each neighbor. */
static int64_t place_of(const repair *r, int32_t k, int64_t bytes)
{
    if (k == 0) return 0;
    if (k == 1) return r->target - bytes;
    const taken *neighbor = &r->taken[(k - 2) / 2];
    return k % 2 ? neighbor->high : neighbor->low - bytes;
}

/* The offset that displaces the least price. With too many candidates, tries a random sample. */
static int64_t cheapest(repair *r, int64_t bytes)
{
    const int32_t n = r->taken_count;
    int64_t best = 0, least = INT64_MAX;
    const int32_t places = 2 * n + 2, tries = (int32_t)hr_min(places, PLACES_MOST);
    for (int32_t t = 0; t < tries; t++) {
        const int32_t k = tries < places ? (int32_t)(draw(r) % (uint64_t)places) : t;
        const int64_t at = place_of(r, k, bytes);
        if (at < 0 || at + bytes > r->target) continue;
        int64_t price = (int64_t)(draw(r) % 3);
        for (int32_t i = 0; i < n && r->taken[i].low < at + bytes && price < least; i++)
            if (r->taken[i].high > at) price += r->taken[i].price;
        if (price < least) {
            least = price;
            best = at;
        }
    }
    return best;
}

static void put(repair *r, int32_t id)
{
    const int64_t bytes = r->part->items[id].bytes;
    list_taken(r, id);
    int64_t at = best_gap(r, bytes);
    if (at < 0) {
        at = cheapest(r, bytes);
        r->price[id] += r->price[id] / 8;
        for (int32_t i = 0; i < r->taken_count; i++) {
            const taken *other = &r->taken[i];
            if (other->high <= at || other->low >= at + bytes) continue;
            r->offsets[other->id] = -1;
            r->waiting[r->waiting_count++] = other->id;
        }
    }
    r->offsets[id] = at;
}

/* Removes the items above the target. False: they are too many. */
static bool take_away(repair *r)
{
    for (int32_t i = 0; i < r->part->count; i++) {
        const hr_pack_item *item = &r->part->items[i];
        const int64_t life = (int64_t)item->last - item->first + 1;
        const double area = (double)item->bytes / (double)r->part->unit * (double)life;
        r->price[i] = 8 + (int64_t)(area < 1e12 ? area : 1e12);
        if (r->offsets[i] + item->bytes <= r->target) continue;
        if (r->waiting_count == OUTSIDE_MOST) return false;
        r->offsets[i] = -1;
        r->waiting[r->waiting_count++] = i;
    }
    return true;
}

/* Takes the largest item that is not placed. */
static int32_t next_waiting(repair *r)
{
    const hr_pack_item *items = r->part->items;
    int32_t next = 0;
    for (int32_t k = 1; k < r->waiting_count; k++)
        if (items[r->waiting[k]].bytes > items[r->waiting[next]].bytes) next = k;
    const int32_t id = r->waiting[next];
    r->waiting[next] = r->waiting[--r->waiting_count];
    return id;
}

bool hr_pack_repair(const hr_pack_part *part, int64_t target, int32_t puts, hr_pack_effort *effort,
                    int64_t *offsets)
{
    const int64_t used = effort->scratch->used;
    repair r = { .part = part, .target = target, .offsets = offsets };
    r.waiting = hr_pack_take(effort, part->count, sizeof *r.waiting);
    r.price = hr_pack_take(effort, part->count, sizeof *r.price);
    r.taken = hr_pack_take(effort, part->count, sizeof *r.taken);
    r.spare = hr_pack_take(effort, part->count, sizeof *r.spare);
    const bool few = take_away(&r);
    for (int32_t k = 0; k < puts && few && r.waiting_count > 0; k++) {
        if (effort->work <= 0 || hr_pack_stopped(effort)) break;
        put(&r, next_waiting(&r));
        effort->work -= WORK_AN_ITEM * (int64_t)part->count + WORK_A_NEIGHBOUR * r.taken_count;
    }
    effort->scratch->used = used;
    return few && r.waiting_count == 0;
}
