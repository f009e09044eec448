/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack_part.h - a stretch of time whose items share nothing with other stretches.
 *
 * Packing works on parts. Time inside a part is counted in sections: the moments between a birth
 * and the death that follows, the only ones at which a new set of items is alive. */
#ifndef HR_PLAN_PACK_PART_H
#define HR_PLAN_PACK_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "base/region.h"

/* A storage as packing sees it. */
typedef struct {
    int64_t bytes;
    int64_t load;        /* the most bytes alive at one section of its life */
    int64_t offset;      /* inside the part's own space */
    int64_t steps;       /* length of its life */
    int32_t first, last; /* sections, from 0 for the whole plan */
    int32_t crowd;       /* items whose lives meet its own */
    int32_t storage;
} hr_pack_item;

typedef struct {
    hr_pack_item *items;
    int32_t count;
    int32_t first, last; /* sections */
    int32_t peak;        /* the section with the most bytes */
    int64_t unit;        /* every size is a multiple of it */
} hr_pack_part;

/* Orders in which items are placed, or ranked by the search: the word that matters most first. Life
 * and area count sections; steps and steps times bytes are their like on the clock of the plan. */
typedef enum {
    HR_PACK_BY_LOAD,       /* load, life, area */
    HR_PACK_BY_LOAD_STEPS, /* load, steps, steps times bytes */
    HR_PACK_BY_LOAD_AREA,  /* load, area, life */
    HR_PACK_BY_LOAD_CROWD, /* load, crowd, steps */
    HR_PACK_BY_SIZE,
    HR_PACK_BY_AREA,
    HR_PACK_BY_LIFE,  /* life, area, load */
    HR_PACK_BY_CROWD, /* crowd, steps, load */
    HR_PACK_BY_BIRTH,
    HR_PACK_RANKINGS,                    /* those before are what the search starts from */
    HR_PACK_BY_DEATH = HR_PACK_RANKINGS, /* load, latest death, birth */
    HR_PACK_ORDERS
} hr_pack_order;

/* What hangs from the ceiling. In a step, activations wait in a stack that falls while gradients
 * grow into another: the two meet best from both ends. */
typedef enum {
    HR_PACK_HANG_NOTHING,
    HR_PACK_HANG_NEW,     /* born after the part's peak */
    HR_PACK_HANG_LASTING, /* alive in the part's last section */
    HR_PACK_HANG_LATE,    /* alive longer after the peak than before it */
    HR_PACK_HANG_AFTER,   /* alive after the peak */
    HR_PACK_HANGS
} hr_pack_hang;

/* What packing may still do, and in what memory. */
typedef struct {
    hr_region *scratch;          /* large enough: hr_pack_scratch_bytes */
    int64_t work;                /* items that searches may look at */
    int64_t nodes;               /* placements that searches tried */
    bool (*stop)(void *context); /* null: nobody but the work ends it */
    void *context;
    bool stopped;
} hr_pack_effort;

/* Asks whether to stop; once it was told so, there is no work left. */
static inline bool hr_pack_stopped(hr_pack_effort *effort)
{
    if (!effort->stopped && effort->stop && effort->stop(effort->context)) {
        effort->stopped = true;
        effort->work = 0;
    }
    return effort->stopped;
}

/* `count` objects of `size` bytes, zeroed, until the caller puts scratch->used back. */
void *hr_pack_take(hr_pack_effort *effort, int64_t count, int64_t size);

/* Indices of the part's items in this order: `order` out [count]. Ties go to the lower index. */
void hr_pack_sort(const hr_pack_part *part, hr_pack_order by, hr_pack_effort *effort,
                  int32_t *order);

/* One pass over the births: each item takes the place of a dead one of about its size, or a new one
 * on top. Far from the floor, but there in no time, however many items there are.
 *
 *   part     its items in the order of birth
 *   offsets  out [count], by item
 *
 * Returns the height. */
int64_t hr_pack_reuse(const hr_pack_part *part, hr_pack_effort *effort, int64_t *offsets);

/* First fit: each item in turn at the lowest gap that holds it, or, if it hangs, at the highest gap
 * below the ceiling (the lowest gap when there is none).
 *
 *   known    [count] offsets to take where nobody known lies already; negative: none. Null: none
 *            at all
 *   enough   ends as soon as the height reaches this
 *   offsets  out [count], by item
 *
 * Returns the height; INT64_MAX when it was stopped or ended.
 * Cost     items * logarithm of sections * runs of addresses below; a stack is one run. Where lives
 *          leave no stacks it ends without a height after a thousand looks an item. */
int64_t hr_pack_first_fit(const hr_pack_part *part, const int32_t *order, const int64_t *known,
                          hr_pack_hang hang, int64_t ceiling, int64_t enough,
                          hr_pack_effort *effort, int64_t *offsets);

/* Mends a placement of which a few items stand above the target: they are put back below it, and
 * what they displace, and so on.
 *
 *   puts     items put down, at most
 *   offsets  in/out [count]
 *
 * Returns whether all lie within the target; if not, the offsets are of no use any more.
 * Cost     each put: items, and neighbours * their logarithm. */
bool hr_pack_repair(const hr_pack_part *part, int64_t target, int32_t puts, hr_pack_effort *effort,
                    int64_t *offsets);

typedef enum {
    HR_PACK_FOUND,
    HR_PACK_IMPOSSIBLE,
    HR_PACK_GAVE_UP,  /* the work ran out */
    HR_PACK_TOO_LARGE /* the tables did */
} hr_pack_answer;

/* Is there a placement in `capacity` bytes? One depth-first search with this ranking of the items.
 *
 *   work     items that this search may look at, of those that `effort` has left
 *   offsets  out [count] when FOUND, else untouched */
hr_pack_answer hr_pack_search(const hr_pack_part *part, const int32_t *order, int64_t capacity,
                              int64_t work, hr_pack_effort *effort, int64_t *offsets);

/* Bytes of scratch, at most, that repair and the search need for so many items. Pure. */
int64_t hr_pack_repair_bytes(int32_t count);
int64_t hr_pack_search_bytes(int32_t count);

/* ---- pack_attempt.c: what can be done with one part as it is */

/* The lowest placement of a part that is known, and the tables to find others. */
typedef struct {
    const hr_pack_part *part;
    int64_t height;   /* INT64_MAX: none is known */
    int64_t *offsets; /* [count] */
    int64_t *trial;   /* [count] */
    int32_t *ranking; /* [count] */
    int32_t *orders[HR_PACK_ORDERS];
    uint32_t sorted;      /* bit i: orders[i] is there */
    const int64_t *known; /* [count] offsets to begin a search with; null: none */
    int32_t dives;        /* short searches so far */
    int32_t turn;         /* of many at one part: with another, other ways come first */
} hr_pack_attempt;

enum { HR_PACK_WAYS_BEST = 4, HR_PACK_WAYS_GOOD = 12, HR_PACK_WAYS = 29 };

/* Takes the tables; what it takes stays taken. */
void hr_pack_attempt_open(hr_pack_attempt *a, const hr_pack_part *part, int32_t turn,
                          hr_pack_effort *effort);

/* Keeps `trial` if it is lower than what is known. */
void hr_pack_attempt_keep(hr_pack_attempt *a);

/* Places the part in the ways from..to - 1, orders and what hangs, until it is within the target.
 *
 *   known  [count] offsets that stay as they are; negative: none. Null: none at all
 *   puts   what stands out is mended with so many; 0: is left */
void hr_pack_try(hr_pack_attempt *a, int64_t target, const int64_t *known, int32_t from, int32_t to,
                 int32_t puts, hr_pack_effort *effort);

/* Asks the search about one capacity, with so much work. */
hr_pack_answer hr_pack_ask(hr_pack_attempt *a, int64_t capacity, int64_t work,
                           hr_pack_effort *effort);

/* Many short searches, each with another ranking, the first ones from what the attempt knows. */
hr_pack_answer hr_pack_dive(hr_pack_attempt *a, int64_t capacity, int64_t work,
                            hr_pack_effort *effort);

int64_t hr_pack_attempt_bytes(int32_t count);

/* ---- pack_core.c: smaller parts that stand for a part */

/* An item that lies in another one's place: nobody else's life is at both. */
typedef struct {
    int32_t item, host;
    int64_t above; /* the host's offset */
} hr_pack_fold;

typedef struct {
    hr_pack_part part; /* of each item, `storage` is its index in the part it came from */
    hr_pack_fold *folds;
    int32_t fold_count;
} hr_pack_core;

/* The items that are alive with `least` bytes or more at some time, without sections that hold
 * nothing that another one does not hold as well. Every placement of the part is one of the core;
 * with `least` = 0 every placement of the core becomes one of the part. */
void hr_pack_core_make(hr_pack_core *core, const hr_pack_part *part, int64_t least,
                       hr_pack_effort *effort);

/* Writes what a placement of the core says of the part's items: `whole` out, by item of the part,
 * negative where it says nothing. */
void hr_pack_core_expand(const hr_pack_core *core, const int64_t *offsets, int32_t count,
                         int64_t *whole);

/* Items that live as long as each other as one: not every placement is one of these, but the search
 * knows far fewer. With `ground`, only those that live through the whole part: they may lie at the
 * bottom of any placement, so nothing is lost. Of each item, `storage` is the first of its members
 * in `order`, out [count]. */
void hr_pack_glue(const hr_pack_part *part, hr_pack_part *glued, int32_t *order, bool ground,
                  hr_pack_effort *effort);

/* Lays members one on the other; those that live longest away from the middle of the target. */
void hr_pack_unglue(const hr_pack_part *part, const hr_pack_part *glued, const int32_t *order,
                    const int64_t *blocks, int64_t target, int64_t *offsets);

int64_t hr_pack_core_bytes(int32_t count);

/* ---- pack_levels.c */

/* Looks for a placement of the attempt's part within the target, a multiple of its unit, with so
 * much work: first of what is alive in the fullest sections alone, then of more and more, each time
 * going on from the one before. `turn` is where to begin: with another, other ways come first.
 * FOUND: the attempt has it. */
hr_pack_answer hr_pack_levels(hr_pack_attempt *a, int64_t target, int64_t work, int32_t turn,
                              hr_pack_effort *effort);

#endif
