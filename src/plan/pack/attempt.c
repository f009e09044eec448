/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack/attempt.c - the methods for one part: orders, repair, search.
 *
 * Each keeps the lowest placement found so far. */
#include "base/assert.h"
#include "base/checked.h"
#include "base/random.h"
#include "plan/pack/part.h"
#include "plan/pack/sort.h"

enum {
    WORK_A_WAY = 32, /* per item: about equal to that much search time */
    STRIDE = 5,      /* each turn starts with another way */
    PLAIN_ORDERS = 4 /* turns before the orders are shuffled */
};

/* A way to place a part: an order, and which items hang. */
typedef struct {
    hr_pack_order by;
    hr_pack_hang hang;
} way;

/* Sorted by how often a way reaches the floor. Each one but the last solved instances that no other
 * up to it solved. */
static const way ways[HR_PACK_WAYS] = {
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

int64_t hr_pack_attempt_bytes(int32_t count)
{
    const int64_t n = count;
    return (3 + HR_PACK_ORDERS) * 64 +
           n * (int64_t)(2 * sizeof(int64_t) + (1 + HR_PACK_ORDERS) * sizeof(int32_t));
}

void hr_pack_attempt_open(hr_pack_attempt *a, const hr_pack_part *part, int32_t turn,
                          hr_pack_effort *effort)
{
    *a = (hr_pack_attempt){ .part = part, .height = INT64_MAX, .turn = turn };
    a->offsets = hr_pack_take(effort, part->count, sizeof *a->offsets);
    a->trial = hr_pack_take(effort, part->count, sizeof *a->trial);
    a->ranking = hr_pack_take(effort, part->count, sizeof *a->ranking);
    for (int32_t by = 0; by < HR_PACK_ORDERS; by++)
        a->orders[by] = hr_pack_take(effort, part->count, sizeof *a->orders[by]);
}

void hr_pack_attempt_keep(hr_pack_attempt *a)
{
    int64_t height = 0;
    for (int32_t i = 0; i < a->part->count; i++)
        height = hr_max(height, a->trial[i] + a->part->items[i].bytes);
    if (height >= a->height) return;
    a->height = height;
    for (int32_t i = 0; i < a->part->count; i++) a->offsets[i] = a->trial[i];
}

/* Shuffles `order` locally: in each pass every item swaps places with one a little behind it. */
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

/* Returns an order, sorted at its first use. */
static const int32_t *order_of(hr_pack_attempt *a, hr_pack_order by, hr_pack_effort *effort)
{
    const uint32_t bit = 1u << by;
    if (a->sorted & bit) return a->orders[by];
    a->sorted |= bit;
    hr_pack_sort(a->part, by, effort, a->orders[by]);
    if (a->turn >= PLAIN_ORDERS) {
        shake(a->orders[by], a->part->count, a->turn, 1, a->ranking);
        for (int32_t i = 0; i < a->part->count; i++) a->orders[by][i] = a->ranking[i];
    }
    return a->orders[by];
}

/* Places the part one way, then repairs items above the target. Repair may also move known
 * items. */
static void try_way(hr_pack_attempt *a, int64_t target, const int64_t *known, const way *how,
                    int32_t puts, hr_pack_effort *effort)
{
    const int32_t *order = order_of(a, how->by, effort);
    const int64_t height = hr_pack_first_fit(a->part, order, known, how->hang, target,
                                             puts ? INT64_MAX : a->height, effort, a->trial);
    if (height == INT64_MAX) return;
    hr_pack_attempt_keep(a);
    if (puts && height > target && hr_pack_repair(a->part, target, puts, effort, a->trial))
        hr_pack_attempt_keep(a);
}

void hr_pack_try(hr_pack_attempt *a, int64_t target, const int64_t *known, int32_t from, int32_t to,
                 int32_t puts, hr_pack_effort *effort)
{
    for (int32_t k = from; k < to && a->height > target && !hr_pack_stopped(effort); k++) {
        if (effort->work <= 0 && (puts || k >= HR_PACK_WAYS_BEST)) return;
        const int32_t turned = from + (k - from + STRIDE * a->turn) % (to - from);
        try_way(a, target, known, &ways[turned], puts, effort);
        effort->work -= WORK_A_WAY * (int64_t)a->part->count;
    }
}

/* One ranking may take a thousand times as long as another, so each try is short and the rankings
 * alternate. The first five turns use the rankings unchanged, with growing limits. Later turns
 * shuffle them, and every twelve turns the limit doubles. */
hr_pack_answer hr_pack_ask(hr_pack_attempt *a, int64_t capacity, int64_t work,
                           hr_pack_effort *effort)
{
    enum { PLAIN_TURNS = 5, PASSES = 12, SET_UP_WORK = 16 };
    const int32_t count = a->part->count;
    const int64_t stop = effort->work - work;
    int64_t length = 4 * (int64_t)count * count;
    for (int32_t turn = 0; effort->work > stop && effort->work > 0; turn++) {
        const int32_t passes = turn < PLAIN_TURNS ? 0 : turn % PASSES;
        int32_t too_large = 0;
        for (int32_t by = 0; by < HR_PACK_RANKINGS && effort->work > stop; by++) {
            shake(order_of(a, by, effort), count, turn, passes, a->ranking);
            const hr_pack_answer answer = hr_pack_search(a->part, a->ranking, capacity,
                                                         hr_min(length, effort->work - stop),
                                                         effort, a->trial);
            effort->work -= SET_UP_WORK * (int64_t)count;
            too_large += answer == HR_PACK_TOO_LARGE;
            if (answer == HR_PACK_FOUND) hr_pack_attempt_keep(a);
            if (answer == HR_PACK_FOUND || answer == HR_PACK_IMPOSSIBLE) return answer;
        }
        if (too_large == HR_PACK_RANKINGS) return HR_PACK_TOO_LARGE;
        if (turn + 1 < PLAIN_TURNS) length *= 4;
        else if (turn + 1 == PLAIN_TURNS) length /= 4;
        else if (passes == 0) length *= 2;
    }
    return HR_PACK_GAVE_UP;
}

/* Ranks items by known offset, and the others before or behind them. */
static void rank_known(hr_pack_attempt *a, bool behind, hr_pack_effort *effort)
{
    const int64_t used = effort->scratch->used;
    const int32_t count = a->part->count;
    const int32_t *order = order_of(a, HR_PACK_BY_LOAD, effort);
    hr_pack_key *keys = hr_pack_take(effort, count, sizeof *keys);
    hr_pack_key *spare = hr_pack_take(effort, count, sizeof *spare);
    for (int32_t i = 0; i < count; i++) {
        const int64_t at = a->known[order[i]];
        keys[i] = (hr_pack_key){ { at >= 0 ? at : behind ? INT64_MAX : -1, i }, order[i] };
    }
    hr_pack_sort_keys(keys, spare, count);
    for (int32_t i = 0; i < count; i++) a->ranking[i] = keys[i].index;
    effort->scratch->used = used;
}

/* Search times are heavy-tailed: most rankings never reach the target, a few do at once. The limit
 * is therefore about one descent without backtracking, doubled for every second round, times four
 * for every fourth (Luby, Sinclair and Zuckerman 1993). No two searches start with the same
 * ranking. */
hr_pack_answer hr_pack_dive(hr_pack_attempt *a, int64_t capacity, int64_t work,
                            hr_pack_effort *effort)
{
    enum { PASSES = 12, SET_UP_WORK = 16 };
    const int32_t count = a->part->count;
    const int64_t stop = effort->work - work;
    while (effort->work > stop && effort->work > 0) {
        const int32_t dive = a->dives++ + HR_PACK_RANKINGS * a->turn;
        const int32_t by = dive % HR_PACK_RANKINGS, pass = dive / HR_PACK_RANKINGS;
        const bool follow = a->known && a->dives <= 2;
        if (follow) rank_known(a, a->dives == 1, effort);
        else
            shake(order_of(a, (hr_pack_order)by, effort), count, dive,
                  pass ? 1 + (pass - 1) % PASSES : 0, a->ranking);
        const int64_t length = (int64_t)count * count * ((pass + 1) & -(pass + 1));
        const hr_pack_answer answer = hr_pack_search(
            a->part, a->ranking, capacity, hr_min(length, effort->work - stop), effort, a->trial);
        effort->work -= SET_UP_WORK * (int64_t)count;
        if (answer == HR_PACK_FOUND) hr_pack_attempt_keep(a);
        if (answer != HR_PACK_GAVE_UP) return answer;
    }
    return HR_PACK_GAVE_UP;
}
