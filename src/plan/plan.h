/* SPDX-License-Identifier: Apache-2.0 */
/* plan/plan.h - where every byte of a program lies, as a value.
 *
 * A plan works on integers only. It is computed, printed and judged on any machine, also for a run
 * that this machine could never hold. */
#ifndef HR_PLAN_PLAN_H
#define HR_PLAN_PLAN_H

#include "graph/program.h"

/* Every offset and every size of a buffer is a multiple of this: a cache line, an AMX tile row. */
enum { HR_ARENA_ALIGN = 64 };

/* What is placed: bytes that are alive from the first to the last step, both included. Tensors that
 * hold the same bytes in turn share one storage. */
typedef struct {
    int64_t bytes;  /* rounded up to HR_ARENA_ALIGN, > 0 */
    int64_t offset; /* pack writes it */
    int32_t step_first, step_last;
} hr_storage;

/* A tensor, a view of one, or the scratch of a step. */
typedef struct {
    int32_t tensor; /* HR_NONE: scratch */
    int32_t storage;
    int32_t view_of;       /* index of the buffer it shows a part of, or HR_NONE */
    int64_t bytes, offset; /* of a view: its own bytes, and where they lie at turn 0 */
    int32_t step_first, step_last;
} hr_buffer;

enum { HR_PROCESS_LINES = 8 };

/* A line of what the process uses. */
typedef struct {
    const char *name;
    int64_t bytes;
} hr_process_line;

typedef struct {
    hr_buffer *buffers; /* in the order of first appearance, walking the steps */
    hr_storage *storages;
    int32_t *buffer_of_tensor; /* [tensor_count]; HR_NONE: never used */
    int32_t *scratch_of_step;  /* [step_count]; HR_NONE: no scratch */
    int32_t buffer_count, storage_count;
    int64_t arena_bytes, floor_bytes;
    int32_t peak_step; /* first step at which floor_bytes are alive */
    int32_t threads;
    int64_t page_bytes;
    const char *rung; /* name of the kernel rung */
    hr_process_line process[HR_PROCESS_LINES];
    int32_t process_count;
    int64_t process_bytes; /* sum of the lines */
} hr_plan;

#endif
