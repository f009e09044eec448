/* SPDX-License-Identifier: Apache-2.0 */
/* plan/plan.h - the memory layout of a program, as a value.
 *
 * A plan contains only integers. Any machine can compute, print and verify it, even for a run that
 * is too large for that machine. */
#ifndef HR_PLAN_PLAN_H
#define HR_PLAN_PLAN_H

#include "base/account.h"
#include "graph/program.h"

/* Alignment of every offset and buffer size in the arena: a cache line, an AMX tile row. */
enum { HR_ARENA_ALIGN = 64 };

/* The unit of placement: bytes that are live from the first to the last step, inclusive. Tensors
 * with consecutive lifetimes in the same bytes share one storage. */
typedef struct {
    int64_t bytes;  /* multiple of hr_space_align, > 0 */
    int64_t offset; /* in its space; set by packing */
    int32_t step_first, step_last;
} hr_storage;

/* A tensor, a view of a tensor, or the scratch of a step. */
typedef struct {
    int32_t tensor; /* HR_NONE: scratch */
    int32_t storage;
    int32_t view_of;       /* index of the viewed buffer, or HR_NONE */
    int64_t bytes, offset; /* of a view: its own size, and its offset in iteration 0 */
    int32_t step_first, step_last;
} hr_buffer;

/* The storages of one space are adjacent in the table, in the order of first use. */
typedef struct {
    int32_t storage_first, storage_count;
    /* One past the last byte of any of them, and the largest sum of live bytes. Of the host they
     * are arena_bytes and floor_bytes of the plan, and 0 here. */
    int64_t bytes, floor_bytes;
} hr_plan_space;

typedef struct {
    hr_buffer *buffers; /* in order of first use by the steps */
    hr_storage *storages;
    int32_t *buffer_of_tensor; /* [tensor_count]; HR_NONE: never used */
    int32_t *scratch_of_step;  /* [step_count]; HR_NONE: no scratch */
    int32_t buffer_count, storage_count;
    hr_plan_space spaces[HR_SPACES];
    int64_t arena_bytes, floor_bytes; /* of the space host, the arena */
    int32_t peak_step;                /* first step with floor_bytes live there */
    hr_account process;
} hr_plan;

#endif
