/* SPDX-License-Identifier: Apache-2.0 */
/* judge/verify.h - the tables of the verifier, as read from a plan file.
 *
 * The verifier shares no struct, constant or function with the code that makes plans. */
#ifndef HR_JUDGE_VERIFY_H
#define HR_JUDGE_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"
#include "judge/verify_json.h"

typedef struct {
    const char *name;
    int32_t parent, first, last, depth;
    int64_t repeats;
} hr_judged_loop;

typedef enum {
    HR_JUDGED_WEIGHT,
    HR_JUDGED_MASTER,
    HR_JUDGED_MOMENT,
    HR_JUDGED_GRADIENT,
    HR_JUDGED_ACTIVATION,
    HR_JUDGED_INPUT,
    HR_JUDGED_SUM,
    HR_JUDGED_TABLE,
    HR_JUDGED_SCRATCH,
    HR_JUDGED_ROLES
} hr_judged_role;

typedef struct {
    const char *name, *role_name;
    hr_judged_role role;
    int64_t bytes, offset;
    int64_t shape_bytes; /* bytes of the shape; padding is not read */
    int32_t declared_first, declared_last;
    int32_t first, last; /* derived; a view has those of its root */
    int32_t home, storage;
    int32_t view_of, root; /* view_of -1: the buffer is its own root */
    bool touched;
} hr_judged_buffer;

typedef enum {
    HR_JUDGED_READ,
    HR_JUDGED_WRITE,
    HR_JUDGED_ACCUMULATE,
    HR_JUDGED_UPDATE
} hr_judged_kind;

typedef struct {
    int32_t buffer;
    hr_judged_kind kind;
} hr_judged_access;

/* All buffers with one storage number, live from the first step of any to the last of any. */
typedef struct {
    int32_t buffer; /* the first of them; -1: the number is unused */
    int32_t first, last;
} hr_judged_storage;

/* An access to the bytes [first, end) of a root, or the end of a loop: see verify_values.c. */
typedef struct {
    int32_t root, step, kind, buffer;
    int64_t first, end; /* offset from the root's first byte */
} hr_judged_event;

typedef struct {
    const char *op;
    int32_t loop;
    int32_t access_first, access_end; /* reads first, then writes */
} hr_judged_step;

typedef struct {
    hr_judged_json json; /* owns every string */
    int64_t file_bytes;
    int64_t arena_bytes, floor_bytes, process_bytes;
    int64_t page_bytes;
    int64_t process_sum,
        arena_line_bytes; /* sums of all process lines and of those named "arena" */
    int32_t arena_lines;
    hr_judged_loop *loops;
    hr_judged_buffer *buffers;
    hr_judged_step *steps;
    hr_judged_access *accesses;
    hr_judged_storage *storages; /* [buffer_count] */
    int32_t *by_step;            /* [step_count + 1] scratch */
    int32_t *by_buffer;          /* [buffer_count + 1] scratch */
    int32_t *averages;           /* [buffer_count + 1] scratch */
    int64_t *change;             /* [steps + 1] scratch */
    hr_judged_event *events;     /* scratch: one per access and per loop around a view */
    int64_t *cuts;               /* [2 * events] scratch */
    int32_t *next;               /* [2 * events] scratch */
    hr_judged_buffer **by_name;  /* [buffer_count + 1] scratch */
    int32_t loop_count, buffer_count, step_count, storage_count;
    hr_error *err;
} hr_judged_plan;

/* Reads the file and checks everything that does not need lifetimes: types, ranges, the loop tree.
 * Close the plan whatever the status. */
HR_MUST_CHECK hr_status hr_verify_open(const char *path, hr_judged_plan *plan, hr_error *err);
void hr_verify_close(hr_judged_plan *plan);

/* Verifies the accesses to values, after lifetimes and views are verified: every byte read was
 * written before, gradients are complete when read, state is updated correctly. */
HR_MUST_CHECK hr_status hr_verify_values(hr_judged_plan *plan);

/* The part of hr_verify_values about state: after its update only the average reads a weight. */
HR_MUST_CHECK hr_status hr_verify_state(hr_judged_plan *plan);

/* The outermost loop around step `s`, inside `home`, that iterates more than once; -1: none. */
int32_t hr_judged_repeating(const hr_judged_plan *plan, int32_t s, int32_t home);

static inline const hr_judged_buffer *hr_judged_root(const hr_judged_plan *plan,
                                                     const hr_judged_access *access)
{
    return &plan->buffers[plan->buffers[access->buffer].root];
}

#endif
