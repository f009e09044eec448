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

/* Indices of the part's items in this order: `order` out [count]. Ties go to the lower index.
 * False: scratch is too small. */
bool hr_pack_sort(const hr_pack_part *part, hr_pack_order by, hr_region *scratch, int32_t *order);

/* What packing may still do, and what it did. */
typedef struct {
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

/* One pass over the births: each item takes the place of a dead one of about its size, or a new one
 * on top. Far from the floor, but there in no time, however many items there are. False: scratch is
 * too small.
 *
 *   part     its items in the order of birth
 *   offsets  out [count], by item
 *   height   out */
bool hr_pack_reuse(const hr_pack_part *part, hr_region *scratch, int64_t *offsets, int64_t *height);

/* First fit: each item in turn at the lowest gap that holds it, or, if it hangs, at the highest gap
 * below the ceiling (the lowest gap when there is none). False: scratch is too small.
 *
 *   enough   ends as soon as the height reaches this
 *   offsets  out [count], by item
 *   height   out; INT64_MAX when it was stopped or ended
 *
 * Cost     items * items placed near them that are not part of a stack. */
bool hr_pack_first_fit(const hr_pack_part *part, const int32_t *order, hr_pack_hang hang,
                       int64_t ceiling, int64_t enough, hr_pack_effort *effort, hr_region *scratch,
                       int64_t *offsets, int64_t *height);

/* Mends a placement of which a few items stand above the target: they are put back below it, and
 * what they displace, and so on. False: scratch is too small.
 *
 *   puts     items put down, at most
 *   offsets  in/out [count]
 *   fits     out; false: the offsets are of no use any more
 *
 * Cost     each put: items, and neighbours * their logarithm. */
bool hr_pack_repair(const hr_pack_part *part, int64_t target, int32_t puts, hr_pack_effort *effort,
                    hr_region *scratch, int64_t *offsets, bool *fits);

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
                              int64_t work, hr_pack_effort *effort, hr_region *scratch,
                              int64_t *offsets);

/* Bytes of scratch, at most, that first fit, repair and the search need for so many items. Pure. */
int64_t hr_pack_first_fit_bytes(int32_t count);
int64_t hr_pack_repair_bytes(int32_t count);
int64_t hr_pack_search_bytes(int32_t count);

#endif
