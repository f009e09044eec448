/* SPDX-License-Identifier: Apache-2.0 */
/* plan/prefetch.h - chooses which pieces of states are fetched early, in bytes that are free.
 *
 * The peak of a training step is long before the updates. After it the arena has room under its
 * floor, more and more as the backward pass frees activations. Pieces are fetched into that room
 * while the backward pass computes: each as early as it does not raise the floor. */
#ifndef HR_PLAN_PREFETCH_H
#define HR_PLAN_PREFETCH_H

#include "graph/transfer.h"
#include "plan/pieces.h"

typedef struct {
    int32_t count;                    /* the first pieces of the program */
    int32_t before[HR_PREFETCH_MOST]; /* the step before which each is begun; not decreasing */
} hr_prefetch;

/* The slots that pieces share: HR_SLOTS, or one for each piece if there are fewer. */
typedef struct {
    int32_t count;
    int64_t bytes; /* of each: room for any piece of the program */
} hr_slots;

/* Cost one pass over the pieces. */
hr_slots hr_slots_of(const hr_program *program);

/* Chooses for a program without transfers.
 *
 *   threads  scratch depends on it
 *   region   room for lifetimes; released on return
 *
 * Errors   as hr_lifetimes. */
HR_MUST_CHECK hr_status hr_prefetch_choose(const hr_program *program, int32_t threads,
                                           hr_region *region, hr_prefetch *prefetch, hr_error *err);

#endif
