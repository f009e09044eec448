/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack.h - gives every storage its offset in the arena.
 *
 * Two storages that are alive at the same step share no byte. The target is the floor, the most
 * bytes alive at one step: no arena can be smaller. The page docs/packing.md says how. */
#ifndef HR_PLAN_PACK_H
#define HR_PLAN_PACK_H

#include <stdbool.h>

#include "plan/plan.h"

/* What is known about the arena that was found. */
typedef enum {
    HR_PACK_AT_FLOOR, /* arena = floor */
    HR_PACK_PROVEN,   /* above the floor, and no placement is lower: the search was exhausted */
    HR_PACK_OPEN      /* above what is proven; the work allowed ran out */
} hr_pack_proof;

/* How much the exact search may do, counted and never timed: equal input gives equal output. A
 * machine of 2024 looks at about 10^8 items a second. */
#define HR_PACK_WORK_DEFAULT INT64_C(400000000)

/* When to be content, and when to end. */
typedef struct {
    int64_t capacity_bytes;      /* any placement within it will do; 0: as low as can be */
    int64_t work;                /* as hr_pack */
    bool (*stop)(void *context); /* asked every now and then: true ends it; null: never */
    void *context;
} hr_pack_limits;

typedef struct {
    int64_t arena_bytes; /* one past the last byte of any storage */
    int64_t floor_bytes; /* the most bytes alive at one step */
    int64_t bound_bytes; /* no placement is lower; >= floor_bytes */
    int32_t peak_step;   /* first step at which floor_bytes are alive */
    hr_pack_proof proof;
    int32_t hard_count; /* parts in time that needed the exact search */
    int64_t nodes;      /* placements the exact search tried */
    int64_t work;       /* items that it looked at, about */
} hr_pack_result;

/* The most bytes alive at one step; HR_NO_FIT when they exceed an int64_t.
 *
 *   storages  [count]; offsets are not looked at
 *   scratch   hr_pack_scratch_bytes(count); given back
 *   result    out: floor_bytes and peak_step
 *
 * Errors   NO_FIT  all storages together are 2^63 bytes or more. FAILURE  scratch too small.
 * Cost     count * log(count). */
HR_MUST_CHECK hr_status hr_pack_floor(const hr_storage *storages, int32_t count, hr_region *scratch,
                                      hr_pack_result *result, hr_error *err);

/* Bytes of scratch that packing so many storages needs, at most. Pure. */
int64_t hr_pack_scratch_bytes(int32_t count);

/* Places every storage: as low as can be, with so much work.
 *
 *   storages  in/out [count]; bytes > 0, step_first <= step_last; offset is written
 *   work      items that may be looked at where the best orders fail, in all; 0: all orders, and
 *             nothing else. It is used in stages, each of four times the work of the one before;
 *             from one whole stage on, more work means more stages, and never a larger arena
 *   scratch   hr_pack_scratch_bytes(count); given back
 *   result    out
 *
 * Align    offsets are sums of sizes: where all sizes are multiples of 64, so are they.
 * Repeat   a function of its arguments; storages alive at every peak come first, in their order.
 * Errors   as hr_pack_floor.
 * Threads  one thread per region. */
HR_MUST_CHECK hr_status hr_pack(hr_storage *storages, int32_t count, int64_t work,
                                hr_region *scratch, hr_pack_result *result, hr_error *err);

/* The same within limits. With a capacity, result->arena_bytes is at most that when a placement was
 * found, and result->bound_bytes above it when there is none; neither: it is not known.
 *
 * Repeat   a function of its arguments as long as `stop` says no. Stopped before the first order
 *          was through, it lays the storages of a part one behind the other. */
HR_MUST_CHECK hr_status hr_pack_within(hr_storage *storages, int32_t count,
                                       const hr_pack_limits *limits, hr_region *scratch,
                                       hr_pack_result *result, hr_error *err);

#endif
