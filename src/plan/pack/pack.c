/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack/pack.c - from storages to offsets: split time into sections and parts, try orders,
 * search.
 *
 * Storages that are live at every section go to the bottom. The others form parts, separated by the
 * steps that no lifetime crosses. The height of the arena is that of the highest part. */
#include "plan/pack/pack.h"

#include <stddef.h>

#include "base/assert.h"
#include "base/checked.h"
#include "plan/pack/index.h"
#include "plan/pack/part.h"
#include "plan/pack/sort.h"

enum {
    WORK_FIRST = 1 << 20, /* in the first stage */
    WORK_AN_ITEM = 64,    /* in the first stage of large problems: two orders */
    TURN_BETWEEN = 1,     /* first turn that repairs and searches more than once */
    SHARE_PROVEN = 4,     /* share of the remaining work per capacity above an impossible target */
    SHARE_OPEN = 8        /* and above an open target: seven halvings, the last with half as much */
};

/* State between splitting time and writing offsets. */
typedef struct {
    hr_pack_item *items;    /* [count], by storage; later only the non-persistent, by start */
    int64_t *section_bytes; /* [section_count] live bytes */
    int32_t count, section_count;
    int64_t base; /* bytes that are live at every section */
    bool content; /* stop at any placement within the capacity */
    hr_pack_effort effort;
} packing;

static hr_status too_small(const hr_region *scratch, hr_error *err)
{
    return hr_fail(err, HR_FAILURE, "packing needs more than %lld bytes of scratch memory",
                   (long long)scratch->bytes);
}

/* Starts and ends of lifetimes in order of time, ends first. */
static bool sort_events(const hr_storage *storages, int32_t count, hr_region *scratch,
                        hr_pack_key **out)
{
    hr_pack_key *events = hr_region_take_raw(scratch, 2 * (int64_t)count, sizeof *events);
    hr_pack_key *spare = hr_region_take_raw(scratch, 2 * (int64_t)count, sizeof *spare);
    if (!spare) return false;
    for (int32_t i = 0; i < count; i++) {
        events[2 * i] = (hr_pack_key){ { storages[i].step_first, 1 }, i };
        events[2 * i + 1] = (hr_pack_key){ { (int64_t)storages[i].step_last + 1, 0 }, i };
    }
    hr_pack_sort_keys(events, spare, 2 * count);
    *out = events;
    return true;
}

/* Splits time into sections. A section ends at the first end of a lifetime after a start: the set
 * of live storages is maximal there. */
static void cut_time(packing *p, const hr_storage *storages, const hr_pack_key *events,
                     hr_pack_result *result)
{
    int64_t live = 0;
    bool born = false;
    p->section_count = 0;
    result->floor_bytes = 0;
    result->peak_step = 0;
    for (int32_t k = 0; k < 2 * p->count; k++) {
        const int32_t i = events[k].index;
        if (events[k].word[1]) {
            live += storages[i].bytes;
            born = true;
            p->items[i] = (hr_pack_item){ .bytes = storages[i].bytes,
                                          .steps = (int64_t)storages[i].step_last -
                                                   storages[i].step_first + 1,
                                          .first = p->section_count,
                                          .storage = i };
            if (live > result->floor_bytes) {
                result->floor_bytes = live;
                result->peak_step = storages[i].step_first;
            }
            continue;
        }
        if (born) p->section_bytes[p->section_count++] = live;
        born = false;
        live -= storages[i].bytes;
        p->items[i].last = p->section_count - 1;
    }
}

/* Allocates the tables and splits time. The memory stays allocated. */
static hr_status prepare(packing *p, const hr_storage *storages, hr_pack_result *result,
                         hr_error *err)
{
    int64_t all = 0;
    for (int32_t i = 0; i < p->count; i++) {
        HR_ASSERT(storages[i].bytes > 0 && storages[i].step_first <= storages[i].step_last);
        if (!hr_checked_add(all, storages[i].bytes, &all))
            return hr_fail(err, HR_NO_FIT, "the buffers of this plan add up to 2^63 bytes or more");
    }
    p->items = hr_region_take_raw(p->effort.scratch, p->count, sizeof *p->items);
    p->section_bytes = hr_region_take_raw(p->effort.scratch, p->count, sizeof *p->section_bytes);
    const int64_t used = p->effort.scratch->used;
    hr_pack_key *events;
    if (!p->section_bytes || !sort_events(storages, p->count, p->effort.scratch, &events))
        return too_small(p->effort.scratch, err);
    cut_time(p, storages, events, result);
    p->effort.scratch->used = used;
    return HR_OK;
}

/* Stacks storages that are live at every section at the bottom; the others stay in `items`. */
static void place_persistent(packing *p, hr_storage *storages)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < p->count; i++) {
        const hr_pack_item item = p->items[i];
        if (item.first > 0 || item.last < p->section_count - 1) {
            p->items[kept++] = item;
            continue;
        }
        storages[item.storage].offset = p->base;
        p->base += item.bytes;
    }
    p->count = kept;
    for (int32_t i = 0; i < p->section_count; i++) p->section_bytes[i] -= p->base;
}

/* Computes the load of each item with a tree of maxima over the sections. */
static void find_loads(packing *p)
{
    const int64_t used = p->effort.scratch->used, n = p->section_count;
    int64_t *tree = hr_pack_take(&p->effort, 2 * n, sizeof *tree);
    for (int64_t i = 0; i < n; i++) tree[n + i] = p->section_bytes[i];
    for (int64_t i = n - 1; i > 0; i--) tree[i] = hr_max(tree[2 * i], tree[2 * i + 1]);
    for (int32_t k = 0; k < p->count; k++) {
        int64_t low = n + p->items[k].first, high = n + p->items[k].last + 1, load = 0;
        for (; low < high; low /= 2, high /= 2) {
            if (low & 1) load = hr_max(load, tree[low++]);
            if (high & 1) load = hr_max(load, tree[--high]);
        }
        p->items[k].load = load;
    }
    p->effort.scratch->used = used;
}

/* Computes the crowd of each item: all items except those that end before its start or start after
 * its end. */
static void find_crowds(packing *p)
{
    const int64_t used = p->effort.scratch->used, n = p->section_count;
    int32_t *born = hr_pack_take(&p->effort, n + 1, sizeof *born); /* in earlier sections */
    int32_t *dead = hr_pack_take(&p->effort, n + 1, sizeof *dead);
    for (int32_t k = 0; k < p->count; k++) {
        born[p->items[k].first + 1]++;
        dead[p->items[k].last + 1]++;
    }
    for (int64_t i = 0; i < n; i++) {
        born[i + 1] += born[i];
        dead[i + 1] += dead[i];
    }
    for (int32_t k = 0; k < p->count; k++)
        p->items[k].crowd = born[p->items[k].last + 1] - dead[p->items[k].first];
    p->effort.scratch->used = used;
}

/* Sorts the items by start, so that the items of a part are adjacent. */
static void sort_by_birth(packing *p)
{
    const int64_t used = p->effort.scratch->used;
    const hr_pack_part all = { .items = p->items, .count = p->count };
    int32_t *order = hr_pack_take(&p->effort, p->count, sizeof *order);
    hr_pack_item *copy = hr_pack_take(&p->effort, p->count, sizeof *copy);
    hr_pack_sort(&all, HR_PACK_BY_BIRTH, &p->effort, order);
    for (int32_t i = 0; i < p->count; i++) copy[i] = p->items[order[i]];
    for (int32_t i = 0; i < p->count; i++) p->items[i] = copy[i];
    p->effort.scratch->used = used;
}

static int64_t common_unit(int64_t a, int64_t b)
{
    while (b) {
        const int64_t remainder = a % b;
        a = b;
        b = remainder;
    }
    return a;
}

/* The part that starts at item `from` and ends before the first step that no lifetime crosses. */
static hr_pack_part next_part(const packing *p, int32_t from)
{
    hr_pack_part part = { .items = &p->items[from], .first = p->items[from].first };
    part.last = part.first;
    for (int32_t i = from; i < p->count && p->items[i].first <= part.last; i++) {
        part.count++;
        part.last = (int32_t)hr_max(part.last, p->items[i].last);
        part.unit = common_unit(p->items[i].bytes, part.unit);
    }
    part.peak = part.first;
    for (int32_t i = part.first; i <= part.last; i++)
        if (p->section_bytes[i] > p->section_bytes[part.peak]) part.peak = i;
    return part;
}

/* Searches for a placement within the target with half of the work. If that fails, lowers the known
 * height: first by all orders, then by bisection between the height and the highest capacity that
 * failed. A capacity whose search ran out of work counts as failed, but raises no bound. If nothing
 * is proven, each capacity gets only early turns, so that more capacities are tried: late turns
 * cost ten times as much and rarely find more. Returns the proven lower bound of the height. */
static int64_t search_part(packing *p, hr_pack_attempt *a, int64_t target, int32_t stage)
{
    const hr_pack_part *part = a->part;
    const int64_t unit = part->unit;
    int64_t failed = target - unit, capacity = target / unit * unit, bound = 0;
    int64_t work = p->content ? p->effort.work : p->effort.work / 2 + 1;
    int32_t turn = stage;
    while (a->height - failed > unit && p->effort.work > 0) {
        const hr_pack_answer answer = hr_pack_levels(a, capacity, work, turn, &p->effort);
        if (answer == HR_PACK_IMPOSSIBLE) bound = capacity + unit;
        if (p->content && answer != HR_PACK_FOUND) break;
        if (answer != HR_PACK_FOUND) failed = capacity;
        if (answer == HR_PACK_GAVE_UP && capacity < target + unit)
            hr_pack_try(a, target, NULL, HR_PACK_WAYS_BEST, HR_PACK_WAYS, 0, &p->effort);
        capacity = failed + hr_max((a->height - failed) / unit / 2, 1) * unit;
        turn = bound ? stage : TURN_BETWEEN;
        work = p->effort.work / (bound ? SHARE_PROVEN : SHARE_OPEN) + 1;
    }
    return bound;
}

static void write_offsets(const packing *p, const hr_pack_attempt *a, hr_storage *storages)
{
    for (int32_t i = 0; i < a->part->count; i++)
        storages[a->part->items[i].storage].offset = p->base + a->offsets[i];
}

/* Places a part by orders only. */
static int64_t order_part(packing *p, const hr_pack_part *part, int64_t target, int32_t ways,
                          hr_storage *storages)
{
    const int64_t used = p->effort.scratch->used;
    hr_pack_attempt a;
    hr_pack_attempt_open(&a, part, 0, &p->effort);
    hr_pack_reuse(part, &p->effort, a.trial);
    hr_pack_attempt_keep(&a);
    hr_pack_try(&a, target, NULL, 0, ways, 0, &p->effort);
    write_offsets(p, &a, storages);
    p->effort.scratch->used = used;
    return a.height;
}

/* Searches for a placement of a part that is lower than its present one. */
static void lower_part(packing *p, const hr_pack_part *part, int64_t target, int32_t stage,
                       hr_storage *storages, int64_t *bound)
{
    const int64_t used = p->effort.scratch->used;
    hr_pack_attempt a;
    hr_pack_attempt_open(&a, part, 0, &p->effort);
    for (int32_t i = 0; i < part->count; i++)
        a.trial[i] = storages[part->items[i].storage].offset - p->base;
    hr_pack_attempt_keep(&a);
    *bound = hr_max(*bound, search_part(p, &a, target, stage));
    write_offsets(p, &a, storages);
    p->effort.scratch->used = used;
}

static int64_t height_of(const packing *p, const hr_pack_part *part, const hr_storage *storages)
{
    int64_t height = 0;
    for (int32_t i = 0; i < part->count; i++) {
        const hr_storage *storage = &storages[part->items[i].storage];
        height = hr_max(height, storage->offset - p->base + storage->bytes);
    }
    return height;
}

/* Sets the work of a stage. The first stage always starts, with whatever work there is; a later one
 * only with its full work. More work therefore repeats the same stages and perhaps adds some.
 * Placements only improve, so the arena is never larger. */
static bool begin_stage(packing *p, int32_t stage, int64_t *work)
{
    const int64_t first = hr_max(WORK_FIRST, (int64_t)p->count * WORK_AN_ITEM);
    if (stage > 0 && first > *work >> 2 * stage) return false;
    p->effort.work = hr_min(first << 2 * stage, *work);
    *work -= p->effort.work;
    return p->effort.work > 0 && !p->effort.stopped;
}

/* Lowers all parts above the target, in stages with four times the work each. Returns the work
 * used. */
static int64_t lower_parts(packing *p, int64_t target, int64_t work, hr_storage *storages,
                           int64_t *bound, int32_t *hard_count)
{
    int64_t used = 0;
    bool open = true;
    for (int32_t stage = 0; open && begin_stage(p, stage, &work); stage++) {
        const int64_t begun = p->effort.work;
        open = false;
        for (int32_t from = 0; from < p->count;) {
            const hr_pack_part part = next_part(p, from);
            const int64_t enough = hr_max(target, *bound);
            from += part.count;
            if (height_of(p, &part, storages) <= enough) continue;
            lower_part(p, &part, enough, stage, storages, bound);
            open = open || height_of(p, &part, storages) > hr_max(target, *bound);
            *hard_count += stage == 0;
        }
        used += begun - p->effort.work;
        if (p->content && *bound > target) return used;
    }
    return used;
}

int64_t hr_pack_scratch_bytes(int32_t count)
{
    /* Always: items and sections. Before the parts: events and their spare. For each part: the
     * attempt; per level the known offsets, a core with its attempt, and two kinds of glued blocks;
     * and one of sort keys, first fit, repair or search. Each table is rounded up. */
    const int64_t n = count, tables = 32 * 64, key = sizeof(hr_pack_key);
    const int64_t attempts = 4 * hr_pack_attempt_bytes(count) + 2 * hr_pack_core_bytes(count) +
                             n * (int64_t)(2 * sizeof(int64_t) + sizeof(int32_t));
    const int64_t placing = hr_max(hr_max(hr_pack_index_bytes(count), hr_pack_repair_bytes(count)),
                                   hr_max(hr_pack_search_bytes(count), 2 * n * key));
    return tables + n * ((int64_t)sizeof(hr_pack_item) + 8) +
           hr_max(4 * n * key, attempts + placing);
}

hr_status hr_pack_floor(const hr_storage *storages, int32_t count, hr_region *scratch,
                        hr_pack_result *result, hr_error *err)
{
    const int64_t used = scratch->used;
    packing p = { .count = count, .effort = { .scratch = scratch } };
    const hr_status status = prepare(&p, storages, result, err);
    scratch->used = used;
    return status;
}

hr_status hr_pack(hr_storage *storages, int32_t count, int64_t work, hr_region *scratch,
                  hr_pack_result *result, hr_error *err)
{
    const hr_pack_limits limits = { .work = work };
    return hr_pack_within(storages, count, &limits, scratch, result, err);
}

hr_status hr_pack_within(hr_storage *storages, int32_t count, const hr_pack_limits *limits,
                         hr_region *scratch, hr_pack_result *result, hr_error *err)
{
    const int64_t used = scratch->used;
    packing p = { .count = count,
                  .content = limits->capacity_bytes > 0,
                  .effort = { .scratch = scratch,
                              .work = limits->work > 0 ? 0 : INT64_MAX,
                              .stop = limits->stop,
                              .context = limits->context } };
    hr_pack_result r = { 0 };
    if (scratch->bytes - used < hr_pack_scratch_bytes(count)) return too_small(scratch, err);
    const hr_status status = prepare(&p, storages, &r, err);
    if (status) goto done;
    place_persistent(&p, storages);
    find_loads(&p);
    find_crowds(&p);
    sort_by_birth(&p);
    int64_t height = r.floor_bytes - p.base, bound = height;
    const int64_t enough = hr_max(limits->capacity_bytes - p.base, height);
    const bool is_vain = p.content && limits->capacity_bytes < r.floor_bytes;
    for (int32_t from = 0; from < p.count;) {
        const hr_pack_part part = next_part(&p, from);
        order_part(&p, &part, enough, limits->work > 0 ? HR_PACK_WAYS_BEST : HR_PACK_WAYS,
                   storages);
        from += part.count;
    }
    if (limits->work > 0 && !is_vain)
        r.work = lower_parts(&p, enough, limits->work, storages, &bound, &r.hard_count);
    for (int32_t i = 0; i < p.count; i++) {
        const hr_storage *storage = &storages[p.items[i].storage];
        height = hr_max(height, storage->offset - p.base + storage->bytes);
    }
    r.arena_bytes = p.base + height;
    r.bound_bytes = p.base + bound;
    r.nodes = p.effort.nodes;
    r.proof = r.arena_bytes == r.floor_bytes   ? HR_PACK_AT_FLOOR
              : r.arena_bytes == r.bound_bytes ? HR_PACK_PROVEN
                                               : HR_PACK_OPEN;
    *result = r;
done:
    scratch->used = used;
    return status;
}
