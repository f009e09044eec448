/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack/part.h - a part: an interval of time whose items share no step with other intervals.
 *
 * Packing works on parts. Time inside a part is counted in sections: the intervals between the
 * start of a lifetime and the next end of one. Only there can a new maximal set of items be
 * live. */
#ifndef HR_PLAN_PACK_PART_H
#define HR_PLAN_PACK_PART_H

#include "base/assert.h"
#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"

/* A storage in packing. */
typedef struct {
    int64_t bytes;
    int64_t load;        /* the largest sum of live bytes in any section of its lifetime */
    int64_t offset;      /* within the part */
    int64_t steps;       /* length of its lifetime */
    int32_t first, last; /* numbered from 0 for the whole plan */
    int32_t crowd;       /* items whose lifetimes overlap its own */
    int32_t storage;
} hr_pack_item;

typedef struct {
    hr_pack_item *items;
    int32_t count;
    int32_t first, last; /* sections */
    int32_t peak;        /* the section with the most live bytes */
    int64_t unit;        /* every size is a multiple of it */
} hr_pack_part;

/* Sort keys of the items for placement and search; the first key counts most. Lifetime and area are
 * in sections; steps, and steps times bytes, are the same in program steps. */
typedef enum {
    HR_PACK_BY_LOAD,       /* load, lifetime, area */
    HR_PACK_BY_LOAD_STEPS, /* load, steps, steps times bytes */
    HR_PACK_BY_LOAD_AREA,  /* load, area, lifetime */
    HR_PACK_BY_LOAD_CROWD, /* load, crowd, steps */
    HR_PACK_BY_SIZE,
    HR_PACK_BY_AREA,
    HR_PACK_BY_LIFE,  /* lifetime, area, load */
    HR_PACK_BY_CROWD, /* crowd, steps, load */
    HR_PACK_BY_BIRTH,
    HR_PACK_RANKINGS,                    /* the rankings before this one start searches */
    HR_PACK_BY_DEATH = HR_PACK_RANKINGS, /* load, latest end, start */
    HR_PACK_ORDERS
} hr_pack_order;

/* Items that are placed downwards from the ceiling. In a training step, the stack of activations
 * shrinks while the stack of gradients grows: they fit best from opposite ends. */
typedef enum {
    HR_PACK_HANG_NOTHING,
    HR_PACK_HANG_NEW,     /* starts after the part's peak */
    HR_PACK_HANG_LASTING, /* live in the part's last section */
    HR_PACK_HANG_LATE,    /* live longer after the peak than before it */
    HR_PACK_HANG_AFTER,   /* live after the peak */
    HR_PACK_HANGS
} hr_pack_hang;

/* Work limit and memory of packing. */
typedef struct {
    hr_region *scratch;          /* large enough: hr_pack_scratch_bytes */
    int64_t work;                /* items that searches may still examine */
    int64_t nodes;               /* placements that searches tried */
    bool (*stop)(void *context); /* null: only the work limit ends it */
    void *context;
    bool stopped;
} hr_pack_effort;

/* Polls `stop`. Once it returned true, no work is left. */
static inline bool hr_pack_stopped(hr_pack_effort *effort)
{
    if (!effort->stopped && effort->stop && effort->stop(effort->context)) {
        effort->stopped = true;
        effort->work = 0;
    }
    return effort->stopped;
}

/* `count` zeroed objects of `size` bytes, valid until the caller restores scratch->used. */
static inline void *hr_pack_take(hr_pack_effort *effort, int64_t count, int64_t size)
{
    void *taken = hr_region_take(effort->scratch, count, size);
    HR_ASSERT(taken);
    return taken;
}

/* Same, but not zeroed: for callers that write before they read. */
static inline void *hr_pack_take_raw(hr_pack_effort *effort, int64_t count, int64_t size)
{
    void *taken = hr_region_take_raw(effort->scratch, count, size);
    HR_ASSERT(taken);
    return taken;
}

/* Indices of the part's items in order of `by`: `order` out [count]. Ties go to the lower index. */
void hr_pack_sort(const hr_pack_part *part, hr_pack_order by, hr_pack_effort *effort,
                  int32_t *order);

/* One pass by start of lifetime: each item reuses the place of a dead item of about its size, or
 * takes a new place on top. Fast for any number of items, but far from the floor.
 *
 *   part     its items sorted by start
 *   offsets  out [count], by item
 *
 * Returns the height. */
int64_t hr_pack_reuse(const hr_pack_part *part, hr_pack_effort *effort, int64_t *offsets);

/* First fit: places each item of `order` in the lowest gap that holds it. A hanging item takes the
 * highest gap below the ceiling, or the lowest gap if there is none.
 *
 *   known    [count] fixed offsets; negative: not fixed. Null: none is fixed
 *   enough   ends as soon as the height reaches this
 *   offsets  out [count], by item
 *
 * Returns the height; INT64_MAX when it was stopped or ended early.
 * Cost     items * log(sections) * runs of addresses below. A stack is one run. If lifetimes form
 *          no stacks, it ends without a height after a thousand runs examined per item. */
int64_t hr_pack_first_fit(const hr_pack_part *part, const int32_t *order, const int64_t *known,
                          hr_pack_hang hang, int64_t ceiling, int64_t enough,
                          hr_pack_effort *effort, int64_t *offsets);

/* Repairs a placement in which a few items exceed the target: places them below it, then the items
 * that they displace, and so on.
 *
 *   puts     placements, at most
 *   offsets  in/out [count]
 *
 * Returns whether all items are within the target; if not, the offsets are invalid.
 * Cost     per placement: items, and neighbors * log(neighbors). */
bool hr_pack_repair(const hr_pack_part *part, int64_t target, int32_t puts, hr_pack_effort *effort,
                    int64_t *offsets);

typedef enum {
    HR_PACK_FOUND,
    HR_PACK_IMPOSSIBLE,
    HR_PACK_GAVE_UP,  /* the work limit was reached */
    HR_PACK_TOO_LARGE /* the tables were too small */
} hr_pack_answer;

/* Searches depth-first for a placement within `capacity` bytes, with this ranking of the items.
 *
 *   work     items that this search may examine, out of those left in `effort`
 *   offsets  out [count] when FOUND, else untouched */
hr_pack_answer hr_pack_search(const hr_pack_part *part, const int32_t *order, int64_t capacity,
                              int64_t work, hr_pack_effort *effort, int64_t *offsets);

/* Upper bounds of the scratch bytes of repair and search for `count` items. Pure. */
int64_t hr_pack_repair_bytes(int32_t count);
int64_t hr_pack_search_bytes(int32_t count);

/* ---- pack/attempt.c: methods for one part */

/* The lowest known placement of a part, and the tables for finding others. */
typedef struct {
    const hr_pack_part *part;
    int64_t height;   /* INT64_MAX: no placement is known */
    int64_t *offsets; /* [count] */
    int64_t *trial;   /* [count] */
    int32_t *ranking; /* [count] */
    int32_t *orders[HR_PACK_ORDERS];
    uint32_t sorted;      /* bit i: orders[i] is filled */
    const int64_t *known; /* [count] offsets that start a search; null: none */
    int32_t dives;        /* short searches so far */
    int32_t turn;         /* number of the attempt; changes the order of the methods */
} hr_pack_attempt;

enum { HR_PACK_WAYS_BEST = 4, HR_PACK_WAYS_GOOD = 12, HR_PACK_WAYS = 29 };

/* Allocates the tables in scratch, where they stay. */
void hr_pack_attempt_open(hr_pack_attempt *a, const hr_pack_part *part, int32_t turn,
                          hr_pack_effort *effort);

/* Keeps `trial` if it is lower than the known placement. */
void hr_pack_attempt_keep(hr_pack_attempt *a);

/* Places the part with the methods from..to - 1, each an order and a choice of hanging items, until
 * a placement is within the target.
 *
 *   known  [count] offsets to keep; negative: none. Null: none at all
 *   puts   limit of repair for items above the target; 0: no repair */
void hr_pack_try(hr_pack_attempt *a, int64_t target, const int64_t *known, int32_t from, int32_t to,
                 int32_t puts, hr_pack_effort *effort);

/* Runs the exact search for one capacity, with at most `work`. */
hr_pack_answer hr_pack_ask(hr_pack_attempt *a, int64_t capacity, int64_t work,
                           hr_pack_effort *effort);

/* Runs many short searches with different rankings, the first from the known placement. */
hr_pack_answer hr_pack_dive(hr_pack_attempt *a, int64_t capacity, int64_t work,
                            hr_pack_effort *effort);

int64_t hr_pack_attempt_bytes(int32_t count);

/* ---- pack/core.c: reduced parts that stand for a part */

/* An item folded into the place of another: no third item is live with both. */
typedef struct {
    int32_t item, host;
    int64_t above; /* the host's offset */
} hr_pack_fold;

typedef struct {
    hr_pack_part part; /* of each item, `storage` is its index in the part it came from */
    hr_pack_fold *folds;
    int32_t fold_count;
} hr_pack_core;

/* Makes the core: the items that at some time are live together with `least` bytes or more. Drops
 * sections whose items are all in another section. Every placement of the part contains one of the
 * core; with `least` = 0 every placement of the core extends to one of the part. */
void hr_pack_core_make(hr_pack_core *core, const hr_pack_part *part, int64_t least,
                       hr_pack_effort *effort);

/* Copies a core placement to the part's items: `whole` out, by item of the part; negative:
 * unknown. */
void hr_pack_core_expand(const hr_pack_core *core, const int64_t *offsets, int32_t count,
                         int64_t *whole);

/* Joins items with equal lifetimes to one. Not every placement has this form, but the search gets
 * much smaller. With `ground`, joins only items that live through the whole part: they fit at the
 * bottom of any placement, so nothing is lost. `storage` of each joined item is the index of its
 * first member in `order`, out [count]. */
void hr_pack_glue(const hr_pack_part *part, hr_pack_part *glued, int32_t *order, bool ground,
                  hr_pack_effort *effort);

/* Stacks the members of each block. Those with the longest lifetimes go farthest from the middle of
 * the target. */
void hr_pack_unglue(const hr_pack_part *part, const hr_pack_part *glued, const int32_t *order,
                    const int64_t *blocks, int64_t target, int64_t *offsets);

int64_t hr_pack_core_bytes(int32_t count);

/* ---- pack/levels.c */

/* Searches for a placement of the attempt's part within the target, a multiple of its unit, with at
 * most `work`. Starts with the items of the fullest sections and adds more items level by level,
 * each time from the placement of the level before. `turn` varies the order of the methods. FOUND:
 * the placement is in the attempt. */
hr_pack_answer hr_pack_levels(hr_pack_attempt *a, int64_t target, int64_t work, int32_t turn,
                              hr_pack_effort *effort);

#endif
