/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack_index.h - which addresses are taken during a stretch of time.
 *
 * Time is halved again and again, and each stretch knows the union of what is taken in it. Two that
 * lie one on the other are one run of addresses there, and most of a training step is stacks. */
#ifndef HR_PLAN_PACK_INDEX_H
#define HR_PLAN_PACK_INDEX_H

#include "plan/pack_part.h"

/* Addresses that are taken, all of [low, high). */
typedef struct {
    int64_t low, high;    /* of a list's first run: high is 0 where nothing is taken */
    int32_t next, before; /* upwards, 0: no more; and downwards, of the first run: the last one */
} hr_pack_run;

/* Runs of a list neither meet nor touch. Stretch k has two lists: 2 k is what those take that live
 * through it or in a part of it, 2 k + 1 what those take that live through it but not through the
 * stretch that it is half of. So what is taken during a life is the first list of each of the few
 * stretches that it consists of, and the second list of those around them. */
typedef struct {
    int32_t sections;
    hr_pack_run *runs; /* the first of each list, and then the others */
    int32_t *recent;   /* of each list: the run that was added to last */
    int32_t run_count, run_most, unused;
    bool coarse;   /* there were too few: holes were given up */
    int64_t looks; /* at runs */
} hr_pack_index;

/* For so many items in these sections, numbered from 0. What it takes stays taken. */
void hr_pack_index_open(hr_pack_index *index, int32_t sections, int32_t items,
                        hr_pack_effort *effort);

/* Takes [low, high) in sections first..last; some of it may be taken already. */
void hr_pack_index_add(hr_pack_index *index, int32_t first, int32_t last, int64_t low,
                       int64_t high);

/* The lowest offset at which so many bytes are free in sections first..last. */
int64_t hr_pack_index_lowest(hr_pack_index *index, int32_t first, int32_t last, int64_t bytes);

/* The highest one that ends at or below the ceiling; negative: there is none. */
int64_t hr_pack_index_highest(hr_pack_index *index, int32_t first, int32_t last, int64_t bytes,
                              int64_t ceiling);

/* Bytes of scratch for so many items in as many sections at most. Pure. */
int64_t hr_pack_index_bytes(int32_t items);

#endif
