/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pack/pack.h - gives every storage its offset in the arena.
 *
 * Two storages that are live at the same step share no byte. The target is the floor, the maximum
 * of live bytes over all steps: no arena can be smaller. docs/packing.md describes the method. */
#ifndef HR_PLAN_PACK_PACK_H
#define HR_PLAN_PACK_PACK_H

#include <stdbool.h>

#include "plan/plan.h"

/* What is proven about the arena. */
typedef enum {
    HR_PACK_AT_FLOOR, /* arena = floor */
    HR_PACK_PROVEN,   /* above the floor; the search is exhausted, so no placement is lower */
    HR_PACK_OPEN      /* above the proven bound; the search ran out of work */
} hr_pack_proof;

/* Default work limit of the exact search, in items examined. Counting instead of timing makes the
 * result reproducible. A machine of 2024 examines about 10^8 items per second. */
#define HR_PACK_WORK_DEFAULT INT64_C(400000000)

/* Stopping conditions. */
typedef struct {
    int64_t capacity_bytes;      /* accept any placement within it; 0: find the lowest */
    int64_t work;                /* as hr_pack */
    bool (*stop)(void *context); /* polled during the search; true ends it. null: never */
    void *context;
} hr_pack_limits;

typedef struct {
    int64_t arena_bytes; /* one past the last byte of any storage */
    int64_t floor_bytes; /* maximum of live bytes over the steps */
    int64_t bound_bytes; /* no placement is lower; >= floor_bytes */
    int32_t peak_step;   /* first step with floor_bytes live */
    hr_pack_proof proof;
    int32_t hard_count; /* parts that needed the exact search */
    int64_t nodes;      /* placements that the exact search tried */
    int64_t work;       /* items examined, approximately */
} hr_pack_result;

/* Computes the floor.
 *
 *   storages  [count]; offsets are ignored
 *   scratch   hr_pack_scratch_bytes(count); released on return
 *   result    out: floor_bytes and peak_step
 *
 * Errors   NO_FIT  all storages together are 2^63 bytes or more. FAILURE  scratch too small.
 * Cost     count * log(count). */
HR_MUST_CHECK hr_status hr_pack_floor(const hr_storage *storages, int32_t count, hr_region *scratch,
                                      hr_pack_result *result, hr_error *err);

/* Upper bound of the scratch bytes for packing `count` storages. Pure. */
int64_t hr_pack_scratch_bytes(int32_t count);

/* Places every storage as low as the work limit allows.
 *
 *   storages  in/out [count]; bytes > 0, step_first <= step_last; offset is written
 *   work      total of items to examine when the best orders miss the floor; 0: orders only. It is
 *             spent in stages, each with four times the work of the one before. Beyond the first
 *             whole stage, more work means more stages and never a larger arena
 *   scratch   hr_pack_scratch_bytes(count); released on return
 *   result    out
 *
 * Align    offsets are sums of sizes: if all sizes are multiples of 64, so are the offsets.
 * Repeat   a function of its arguments; storages live at every peak come first, in their order.
 * Errors   as hr_pack_floor.
 * Threads  one thread per region. */
HR_MUST_CHECK hr_status hr_pack(hr_storage *storages, int32_t count, int64_t work,
                                hr_region *scratch, hr_pack_result *result, hr_error *err);

/* hr_pack within limits. With a capacity: result->arena_bytes <= capacity if a placement was found;
 * result->bound_bytes > capacity if none exists; neither if it is unknown.
 *
 * Repeat   a function of its arguments while `stop` returns false. If stopped during the first
 *          order, it places the storages of a part one after the other. */
HR_MUST_CHECK hr_status hr_pack_within(hr_storage *storages, int32_t count,
                                       const hr_pack_limits *limits, hr_region *scratch,
                                       hr_pack_result *result, hr_error *err);

#endif
