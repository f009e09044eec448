/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack/index.h - finds the addresses in use during an interval of time.
 *
 * A segment tree over time: each node knows the union of the addresses in use during its interval.
 * Adjacent addresses merge to one run. Most storages of a training step form stacks, so runs are
 * few. */
#ifndef HR_PLAN_PACK_INDEX_H
#define HR_PLAN_PACK_INDEX_H

#include "plan/pack/part.h"

/* A run: every address of [low, high) is in use. */
typedef struct {
    int64_t low, high;    /* of a list's first run: high is 0 if the list is empty */
    int32_t next, before; /* next run upwards, 0: none; `before` of the first run is the last run */
} hr_pack_run;

/* Runs of a list neither overlap nor touch. Node k has two lists. List 2 k has the addresses of
 * items that are live during all or a part of its interval. List 2 k + 1 has those of items that
 * are live during all of it, but not all of the parent's interval. The addresses in use during a
 * lifetime are the union of list 2 k of the few nodes that cover it and list 2 k + 1 of their
 * ancestors. */
typedef struct {
    int32_t sections;
    hr_pack_run *runs; /* first runs of all lists, then the others */
    int32_t *recent;   /* of each list: the run extended last */
    int32_t run_count, run_most, unused;
    bool coarse;   /* runs ran out: some holes count as used */
    int64_t looks; /* runs examined */
} hr_pack_index;

/* Opens an empty index for `items` items in sections numbered from 0. Its memory stays taken. */
void hr_pack_index_open(hr_pack_index *index, int32_t sections, int32_t items,
                        hr_pack_effort *effort);

/* Marks [low, high) as used in sections first..last. Parts of it may be in use already. */
void hr_pack_index_add(hr_pack_index *index, int32_t first, int32_t last, int64_t low,
                       int64_t high);

/* The lowest offset with `bytes` free in all sections first..last. */
int64_t hr_pack_index_lowest(hr_pack_index *index, int32_t first, int32_t last, int64_t bytes);

/* The highest such offset that ends at or below the ceiling; negative: there is none. */
int64_t hr_pack_index_highest(hr_pack_index *index, int32_t first, int32_t last, int64_t bytes,
                              int64_t ceiling);

/* Scratch bytes for `items` items in at most as many sections. Pure. */
int64_t hr_pack_index_bytes(int32_t items);

#endif
