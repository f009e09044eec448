/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack.c - from storages to offsets: cut time into sections and parts, try orders, search.
 *
 * What is alive at every section lies at the bottom, where it is in nobody's way. The rest falls
 * apart at moments that nothing crosses, and each part has to stay below the highest of them. */
#include "plan/pack.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/random.h"
#include "plan/pack_part.h"
#include "plan/pack_sort.h"

enum {
    PRESS_LEAST = 512,
    PRESS_ROUNDS = 4,
    WAYS_BEST = 4,
    WAYS_MENDED = 12,
    WORK_A_WAY = 32, /* an item: about the time that the search takes for so many */
    FIRST_PUTS = 32,
    SECOND_PUTS = 250
};

/* Everything between cutting and placing. */
typedef struct {
    hr_pack_item *items;    /* [count], by storage; later without the persistent, by birth */
    int64_t *section_bytes; /* [section_count] alive */
    int32_t count, section_count;
    int64_t base; /* bytes of what is alive at every section */
    bool content; /* with any placement within the capacity */
    bool bounded; /* work was given, and ends what is not the best */
    hr_pack_effort effort;
    hr_region *scratch;
} packing;

static hr_status too_small(const hr_region *scratch, hr_error *err)
{
    return hr_fail(err, HR_FAILURE, "packing needs more scratch than the %lld bytes it was given",
                   (long long)scratch->bytes);
}

/* Births and deaths in the order of time, deaths first. */
static bool sort_events(const hr_storage *storages, int32_t count, hr_region *scratch,
                        hr_pack_key **out)
{
    hr_pack_key *events = hr_region_take(scratch, 2 * (int64_t)count, sizeof *events);
    hr_pack_key *spare = hr_region_take(scratch, 2 * (int64_t)count, sizeof *spare);
    if (!spare) return false;
    for (int32_t i = 0; i < count; i++) {
        events[2 * i] = (hr_pack_key){ { storages[i].step_first, 1 }, i };
        events[2 * i + 1] = (hr_pack_key){ { (int64_t)storages[i].step_last + 1, 0 }, i };
    }
    hr_pack_sort_keys(events, spare, 2 * count);
    *out = events;
    return true;
}

/* Cuts time into sections. A section ends where something dies after something was born: only there
 * can more be alive than before and after. */
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

/* Takes the tables and cuts time; what it takes stays taken. */
static hr_status prepare(packing *p, const hr_storage *storages, hr_pack_result *result,
                         hr_error *err)
{
    int64_t all = 0;
    for (int32_t i = 0; i < p->count; i++) {
        HR_ASSERT(storages[i].bytes > 0 && storages[i].step_first <= storages[i].step_last);
        if (!hr_checked_add(all, storages[i].bytes, &all))
            return hr_fail(err, HR_NO_FIT,
                           "the storages of this plan add up to 2^63 bytes or more");
    }
    p->items = hr_region_take(p->scratch, p->count, sizeof *p->items);
    p->section_bytes = hr_region_take(p->scratch, p->count, sizeof *p->section_bytes);
    const int64_t used = p->scratch->used;
    hr_pack_key *events;
    if (!p->section_bytes || !sort_events(storages, p->count, p->scratch, &events))
        return too_small(p->scratch, err);
    cut_time(p, storages, events, result);
    p->scratch->used = used;
    return HR_OK;
}

/* Lays what is alive at every section at the bottom and leaves the others in `items`. */
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

/* Writes each item's load, from a tree of maxima over the sections. */
static bool find_loads(packing *p)
{
    const int64_t used = p->scratch->used, n = p->section_count;
    int64_t *tree = hr_region_take(p->scratch, 2 * n, sizeof *tree);
    if (!tree) return false;
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
    p->scratch->used = used;
    return true;
}

/* Writes each item's crowd: all items without those that died before it or were born after it. */
static bool find_crowds(packing *p)
{
    const int64_t used = p->scratch->used, n = p->section_count;
    int32_t *born = hr_region_take(p->scratch, n + 1, sizeof *born); /* in sections before */
    int32_t *dead = hr_region_take(p->scratch, n + 1, sizeof *dead);
    if (!dead) return false;
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
    p->scratch->used = used;
    return true;
}

/* Sorts the items by birth, so that a part's items lie together. */
static bool sort_by_birth(packing *p)
{
    const int64_t used = p->scratch->used;
    const hr_pack_part all = { .items = p->items, .count = p->count };
    int32_t *order = hr_region_take(p->scratch, p->count, sizeof *order);
    hr_pack_item *copy = hr_region_take(p->scratch, p->count, sizeof *copy);
    if (!copy || !hr_pack_sort(&all, HR_PACK_BY_BIRTH, p->scratch, order)) return false;
    for (int32_t i = 0; i < p->count; i++) copy[i] = p->items[order[i]];
    for (int32_t i = 0; i < p->count; i++) p->items[i] = copy[i];
    p->scratch->used = used;
    return true;
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

/* The part that starts at item `from`: up to the first moment that nothing crosses. */
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

/* What is known about a part while it is being packed. */
typedef struct {
    int64_t height, bound; /* found; proven */
    int64_t *offsets, *trial;
    int32_t *orders[HR_PACK_ORDERS], *ranking, *spare;
    uint32_t sorted; /* bit i: orders[i] is there */
} attempt;

static void keep_lower(attempt *a, int32_t count, int64_t height)
{
    if (height >= a->height) return;
    a->height = height;
    for (int32_t i = 0; i < count; i++) a->offsets[i] = a->trial[i];
}

/* A way to place a part: an order, and what hangs. */
typedef struct {
    hr_pack_order by;
    hr_pack_hang hang;
} way;

/* The ways that reach the floor most often come first; none of them before the last is enough for
 * all that it and those before it were seen to solve. */
static const way ways[] = {
    { HR_PACK_BY_LOAD, HR_PACK_HANG_NOTHING },
    { HR_PACK_BY_DEATH, HR_PACK_HANG_NEW },
    { HR_PACK_BY_LOAD, HR_PACK_HANG_LASTING },
    { HR_PACK_BY_LOAD, HR_PACK_HANG_LATE },
    { HR_PACK_BY_DEATH, HR_PACK_HANG_NOTHING },
    { HR_PACK_BY_LOAD, HR_PACK_HANG_NEW },
    { HR_PACK_BY_DEATH, HR_PACK_HANG_LASTING },
    { HR_PACK_BY_DEATH, HR_PACK_HANG_LATE },
    { HR_PACK_BY_LOAD_CROWD, HR_PACK_HANG_NEW },
    { HR_PACK_BY_LOAD_CROWD, HR_PACK_HANG_LASTING },
    { HR_PACK_BY_LOAD_CROWD, HR_PACK_HANG_LATE },
    { HR_PACK_BY_LIFE, HR_PACK_HANG_NEW },
    { HR_PACK_BY_LOAD_STEPS, HR_PACK_HANG_NOTHING },
    { HR_PACK_BY_LOAD_AREA, HR_PACK_HANG_NOTHING },
    { HR_PACK_BY_LOAD_CROWD, HR_PACK_HANG_NOTHING },
    { HR_PACK_BY_SIZE, HR_PACK_HANG_NOTHING },
    { HR_PACK_BY_AREA, HR_PACK_HANG_NOTHING },
    { HR_PACK_BY_LIFE, HR_PACK_HANG_NOTHING },
    { HR_PACK_BY_CROWD, HR_PACK_HANG_NOTHING },
    { HR_PACK_BY_BIRTH, HR_PACK_HANG_NOTHING },
    { HR_PACK_BY_LOAD, HR_PACK_HANG_AFTER },
    { HR_PACK_BY_LOAD_STEPS, HR_PACK_HANG_AFTER },
    { HR_PACK_BY_LOAD_AREA, HR_PACK_HANG_AFTER },
    { HR_PACK_BY_LOAD_CROWD, HR_PACK_HANG_AFTER },
    { HR_PACK_BY_SIZE, HR_PACK_HANG_AFTER },
    { HR_PACK_BY_AREA, HR_PACK_HANG_AFTER },
    { HR_PACK_BY_LIFE, HR_PACK_HANG_AFTER },
    { HR_PACK_BY_CROWD, HR_PACK_HANG_AFTER },
    { HR_PACK_BY_BIRTH, HR_PACK_HANG_AFTER },
};

static int64_t height_of(const hr_pack_part *part, const int64_t *offsets)
{
    int64_t height = 0;
    for (int32_t i = 0; i < part->count; i++)
        height = hr_max(height, offsets[i] + part->items[i].bytes);
    return height;
}

enum { WAYS = sizeof ways / sizeof *ways };

/* Places the part this way; if `puts` is positive, what stands out is mended with so many. */
static bool try_way(packing *p, const hr_pack_part *part, int64_t target, int32_t k, int32_t puts,
                    attempt *a)
{
    int64_t height;
    bool fits = false;
    if (puts || k >= WAYS_BEST) p->effort.work -= WORK_A_WAY * (int64_t)part->count;
    if (!hr_pack_first_fit(part, a->orders[ways[k].by], ways[k].hang, target,
                           puts ? INT64_MAX : a->height, &p->effort, p->scratch, a->trial, &height))
        return false;
    keep_lower(a, part->count, height);
    if (!puts || height <= target || height == INT64_MAX) return true;
    if (!hr_pack_repair(part, target, puts, &p->effort, p->scratch, a->trial, &fits)) return false;
    if (fits) keep_lower(a, part->count, height_of(part, a->trial));
    return true;
}

/* Ways from..to - 1 until one is within `target`. All but the best are work, if any was allowed: of
 * a million items each takes seconds. */
static bool try_ways(packing *p, const hr_pack_part *part, int64_t target, int32_t from, int32_t to,
                     attempt *a)
{
    for (int32_t k = from; k < to && a->height > target; k++) {
        const uint32_t order = 1u << ways[k].by;
        if (hr_pack_stopped(&p->effort)) return true;
        if (k >= WAYS_BEST && p->bounded && p->effort.work <= 0) return true;
        if (!(a->sorted & order) &&
            !hr_pack_sort(part, ways[k].by, p->scratch, a->orders[ways[k].by]))
            return false;
        a->sorted |= order;
        if (!try_way(p, part, target, k, 0, a)) return false;
    }
    return true;
}

/* Ways from..to - 1 once more, each mended with so many puts. */
static bool mend_ways(packing *p, const hr_pack_part *part, int64_t target, int32_t from,
                      int32_t to, int32_t puts, attempt *a)
{
    for (int32_t k = from; k < to && a->height > target && p->effort.work > 0; k++)
        if (!try_way(p, part, target, k, puts, a)) return false;
    return true;
}

/* A ranking near `order`: in each pass items change places with others a little behind them. */
static void shake(const int32_t *order, int32_t count, int32_t tries, int32_t passes,
                  int32_t *ranking)
{
    enum { REACH = 10 };
    for (int32_t i = 0; i < count; i++) ranking[i] = order[i];
    for (int32_t pass = 0; pass < passes; pass++)
        for (int32_t i = 0; i < count; i++) {
            const uint64_t draw = hr_random_mix((uint64_t)tries << 40 | (uint64_t)pass << 32 |
                                                (uint64_t)i);
            const int32_t other = (int32_t)hr_min(i + (int64_t)(draw % (REACH + 1)), count - 1);
            const int32_t swap = ranking[i];
            ranking[i] = ranking[other];
            ranking[other] = swap;
        }
}

static bool stands_out(const hr_pack_part *part, const attempt *a, int32_t item, int64_t target)
{
    return a->trial[item] + part->items[item].bytes > target;
}

/* Moves what stands above the target halfway to the front of the ranking. */
static void promote(const hr_pack_part *part, int64_t target, attempt *a)
{
    const int32_t count = part->count;
    for (int32_t k = 0; k < count; k++) a->spare[k] = a->ranking[k];
    for (int32_t k = 0, up = 0, rest = 0; k < count; k++) {
        while (up < count && !stands_out(part, a, a->spare[up], target)) up++;
        while (rest < count && stands_out(part, a, a->spare[rest], target)) rest++;
        const bool first = up < count && (rest == count || up / 2 <= rest);
        a->ranking[k] = a->spare[first ? up++ : rest++];
    }
}

/* First fit again and again; what did not fit below the target has its turn earlier the next time.
 * Cheaper than the search where items are many: its nodes cost as much as there are items. The
 * first round starts from the three best orders, later ones from all, shaken. */
static bool press(packing *p, const hr_pack_part *part, int64_t target, int32_t round, attempt *a)
{
    enum { ORDERS = 3, TURNS = 20, WORK_AN_ITEM = 96 };
    const int32_t orders = round ? HR_PACK_ORDERS : ORDERS;
    for (int32_t trial = 0; trial < 2 * orders; trial++) {
        shake(a->orders[trial / 2], part->count, round, round, a->ranking);
        for (int32_t turn = 0; turn < TURNS && a->height > target && p->effort.work > 0; turn++) {
            int64_t height;
            if (!hr_pack_first_fit(part, a->ranking,
                                   trial % 2 ? HR_PACK_HANG_AFTER : HR_PACK_HANG_NOTHING, target,
                                   INT64_MAX, &p->effort, p->scratch, a->trial, &height))
                return false;
            keep_lower(a, part->count, height);
            promote(part, target, a);
            p->effort.work -= WORK_AN_ITEM * (int64_t)part->count;
        }
    }
    return true;
}

/* Asks the search about one capacity, with so much work. One ranking may need a thousand times what
 * another does, so each try is short and the rankings take turns: five times as they are, each time
 * longer, and then shaken, each dozen of turns twice as long as the one before. */
static hr_pack_answer ask(packing *p, const hr_pack_part *part, int64_t capacity, int64_t work,
                          attempt *a)
{
    enum { PLAIN_TURNS = 5, PASSES = 12, SET_UP_WORK = 16 };
    hr_pack_effort *effort = &p->effort;
    const int64_t stop = effort->work - work;
    int64_t length = 4 * (int64_t)part->count * part->count;
    for (int32_t turn = 0; effort->work > stop; turn++) {
        const int32_t passes = turn < PLAIN_TURNS ? 0 : turn % PASSES;
        int32_t too_large = 0;
        for (int32_t by = 0; by < HR_PACK_RANKINGS && effort->work > stop; by++) {
            shake(a->orders[by], part->count, turn, passes, a->ranking);
            const hr_pack_answer answer = hr_pack_search(part, a->ranking, capacity,
                                                         hr_min(length, effort->work - stop),
                                                         effort, p->scratch, a->trial);
            effort->work -= SET_UP_WORK * (int64_t)part->count;
            too_large += answer == HR_PACK_TOO_LARGE;
            if (answer == HR_PACK_IMPOSSIBLE) a->bound = hr_max(a->bound, capacity + part->unit);
            if (answer == HR_PACK_FOUND || answer == HR_PACK_IMPOSSIBLE) return answer;
        }
        if (too_large == HR_PACK_RANKINGS) return HR_PACK_TOO_LARGE;
        if (turn + 1 < PLAIN_TURNS) length *= 4;
        else if (turn + 1 == PLAIN_TURNS) length /= 4;
        else if (passes == 0) length *= 2;
    }
    return HR_PACK_GAVE_UP;
}

/* Halves the distance between a capacity that failed and the height that is known, while work is
 * left. A capacity that was given up on counts as failed here, but raises no bound. */
static void search_part(packing *p, const hr_pack_part *part, int64_t target, attempt *a)
{
    int64_t failed = target - part->unit, capacity = target / part->unit * part->unit;
    while (a->height - failed > part->unit && p->effort.work > 0) {
        const int64_t work = p->content ? p->effort.work : p->effort.work / 2 + 1;
        const hr_pack_answer answer = ask(p, part, capacity, work, a);
        if (p->content && answer != HR_PACK_FOUND) return;
        if (answer == HR_PACK_TOO_LARGE) return;
        if (answer == HR_PACK_FOUND) keep_lower(a, part->count, height_of(part, a->trial));
        else failed = capacity;
        capacity = failed + hr_max((a->height - failed) / part->unit / 2, 1) * part->unit;
    }
}

/* What costs more than placing once. Large parts are mended and pressed before the search, whose
 * nodes cost as much as there are items, and after it. */
static bool work_on(packing *p, const hr_pack_part *part, int64_t target, attempt *a)
{
    const bool large = part->count >= PRESS_LEAST;
    if (large && (!mend_ways(p, part, target, 0, WAYS_MENDED, SECOND_PUTS, a) ||
                  !press(p, part, target, 0, a)))
        return false;
    search_part(p, part, target, a);
    for (int32_t k = 1; large && k < PRESS_ROUNDS && a->height > target && a->bound <= target; k++)
        if (!mend_ways(p, part, target, 0, WAYS_MENDED, SECOND_PUTS << (2 * k), a) ||
            !press(p, part, target, k, a))
            return false;
    return true;
}

/* Packs one part within `target` bytes, or as low as the work allows. */
static bool pack_part(packing *p, const hr_pack_part *part, int64_t target, hr_storage *storages,
                      attempt *a, int32_t *hard_count)
{
    const int64_t used = p->scratch->used;
    *a = (attempt){ .bound = p->section_bytes[part->peak] };
    a->offsets = hr_region_take(p->scratch, part->count, sizeof *a->offsets);
    a->trial = hr_region_take(p->scratch, part->count, sizeof *a->trial);
    a->ranking = hr_region_take(p->scratch, part->count, sizeof *a->ranking);
    a->spare = hr_region_take(p->scratch, part->count, sizeof *a->spare);
    if (!a->spare) return false;
    for (int32_t by = 0; by < HR_PACK_ORDERS; by++) {
        a->orders[by] = hr_region_take(p->scratch, part->count, sizeof *a->orders[by]);
        if (!a->orders[by]) return false;
    }
    if (!hr_pack_reuse(part, p->scratch, a->offsets, &a->height) ||
        !try_ways(p, part, target, 0, WAYS_BEST, a) ||
        !mend_ways(p, part, target, 0, WAYS_BEST, FIRST_PUTS, a) ||
        !try_ways(p, part, target, WAYS_BEST, WAYS_MENDED, a) ||
        !mend_ways(p, part, target, WAYS_BEST, WAYS_MENDED, FIRST_PUTS, a) ||
        !try_ways(p, part, target, WAYS_MENDED, WAYS, a))
        return false;
    if (a->height > target) {
        ++*hard_count;
        if (!work_on(p, part, target, a)) return false;
    }
    for (int32_t i = 0; i < part->count; i++)
        storages[part->items[i].storage].offset = p->base + a->offsets[i];
    p->scratch->used = used;
    return true;
}

int64_t hr_pack_scratch_bytes(int32_t count)
{
    /* Throughout: an item and a section. At first two events and their spares; then, for each
     * part, two offsets, two rankings and the orders, beside two keys, or first fit, or the search.
     * Each table is rounded up to 64. */
    const int64_t n = count, tables = 24 * 64, key = sizeof(hr_pack_key);
    const int64_t part = n * (2 * 8 + (HR_PACK_ORDERS + 2) * 4);
    const int64_t placing = hr_max(
        hr_max(hr_pack_first_fit_bytes(count), hr_pack_repair_bytes(count)),
        hr_pack_search_bytes(count));
    const int64_t most = hr_max(4 * n * key, part + hr_max(2 * n * key, placing));
    return tables + n * ((int64_t)sizeof(hr_pack_item) + 8) + most;
}

hr_status hr_pack_floor(const hr_storage *storages, int32_t count, hr_region *scratch,
                        hr_pack_result *result, hr_error *err)
{
    const int64_t used = scratch->used;
    packing p = { .count = count, .scratch = scratch };
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
    packing p = {
        .count = count,
        .content = limits->capacity_bytes > 0,
        .bounded = limits->work > 0,
        .effort = { .work = limits->work, .stop = limits->stop, .context = limits->context },
        .scratch = scratch
    };
    hr_pack_result r = { 0 };
    hr_status status = prepare(&p, storages, &r, err);
    if (status) goto done;
    if (p.content && limits->capacity_bytes < r.floor_bytes) p.effort.work = 0; /* no use */
    place_persistent(&p, storages);
    if (!find_loads(&p) || !find_crowds(&p) || !sort_by_birth(&p)) {
        status = too_small(scratch, err);
        goto done;
    }
    int64_t height = r.floor_bytes - p.base, bound = height;
    const int64_t enough = hr_max(limits->capacity_bytes - p.base, height);
    for (int32_t from = 0; from < p.count;) {
        const hr_pack_part part = next_part(&p, from);
        attempt a;
        if (!pack_part(&p, &part, hr_max(height, enough), storages, &a, &r.hard_count)) {
            status = too_small(scratch, err);
            goto done;
        }
        height = hr_max(height, a.height);
        bound = hr_max(bound, a.bound);
        from += part.count;
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
