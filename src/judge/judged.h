/* SPDX-License-Identifier: Apache-2.0 */
/* judge/judged.h - the tables of the verifier, as read from a plan file.
 *
 * The verifier shares no struct, constant or function with the code that makes plans. */
#ifndef HR_JUDGE_JUDGED_H
#define HR_JUDGE_JUDGED_H

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

/* Memory spaces. Offsets of two spaces have nothing to do with each other. */
typedef enum {
    HR_JUDGED_HOST,
    HR_JUDGED_DEVICE,
    HR_JUDGED_PINNED,
    HR_JUDGED_FILE,
    HR_JUDGED_BASE, /* read only */
    HR_JUDGED_SPACES
} hr_judged_space;

typedef struct {
    const char *name;
    int64_t bytes, floor_bytes; /* as declared */
    int32_t peak_step;          /* derived: the first step with so many live bytes */
    int32_t buffer_count;
    bool listed; /* in the file; always for the host */
} hr_judged_space_size;

typedef struct {
    const char *name, *role_name;
    hr_judged_role role;
    hr_judged_space space;
    int64_t bytes, offset;
    int64_t shape_bytes; /* bytes of the shape; padding is not read */
    int32_t element_bytes;
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
    int32_t
        stands_for; /* the same; of the update of a window, the range that it was fetched from */
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

/* The range of a buffer that is in a transfer, or that holds what was fetched into it. */
typedef struct {
    enum { HR_JUDGED_FREE, HR_JUDGED_MOVING, HR_JUDGED_FETCHED } state;
    int32_t other;      /* the buffer at the other end of the transfer */
    int32_t begin;      /* the step that began the transfer */
    int32_t updated;    /* the step that has updated what was fetched; -1: none */
    int64_t first, end; /* offset from the root's first byte */
} hr_judged_hold;

typedef enum {
    HR_JUDGED_NO_TRANSFER,
    HR_JUDGED_FETCH_BEGIN,
    HR_JUDGED_FETCH_WAIT, /* each wait follows its begin */
    HR_JUDGED_SPILL_BEGIN,
    HR_JUDGED_SPILL_WAIT
} hr_judged_transfer;

typedef struct {
    const char *op;
    hr_judged_transfer transfer;
    int32_t loop;
    int32_t access_first, access_end; /* reads first, then writes */
} hr_judged_step;

typedef struct {
    hr_judged_json json; /* owns every string */
    int64_t file_bytes;
    int32_t version; /* of the format */
    hr_judged_space_size spaces[HR_JUDGED_SPACES];
    int64_t process_bytes, page_bytes;
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
    int64_t *reached;            /* [buffer_count + 1] scratch: bytes of each root */
    int64_t *change;             /* [steps + 1] scratch */
    hr_judged_hold *holds;       /* [buffer_count + 1] of the walk over transfers */
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

/* Verifies the transfers between memory spaces, after lifetimes and views are verified. */
HR_MUST_CHECK hr_status hr_verify_transfers(hr_judged_plan *plan);

/* Verifies the accesses to values, after lifetimes and views are verified: every byte read was
 * written before, gradients are complete when read, state is updated correctly. */
HR_MUST_CHECK hr_status hr_verify_values(hr_judged_plan *plan);

/* The part of hr_verify_values about state: after its update only the average reads a weight. */
HR_MUST_CHECK hr_status hr_verify_state(hr_judged_plan *plan);

/* Fills `by_buffer` with the last step that updates each root of state, or -1. Checks that all
 * state of a parameter is updated by the same steps, and all of it. */
HR_MUST_CHECK hr_status hr_verify_pieces(hr_judged_plan *plan);

/* The outermost loop around step `s`, inside `home`, that iterates more than once; -1: none. */
int32_t hr_judged_repeating(const hr_judged_plan *plan, int32_t s, int32_t home);

/* The section of a step; loop 0 if it is in none. */
int32_t hr_judged_section(const hr_judged_plan *plan, int32_t s);

/* Returns whether a step updates state in strips: in a loop inside its section that iterates more
 * than once, all of it through views, which move by their bytes with each iteration. */
bool hr_judged_in_strips(const hr_judged_plan *plan, int32_t s);

/* Returns whether a step is in the first section, which loads or creates all state. */
static inline bool hr_judged_loads(const hr_judged_plan *plan, int32_t s)
{
    return hr_judged_section(plan, s) == hr_judged_section(plan, 0);
}

/* The first section, or the loop that iterates more than once, that has only one of two steps; -1:
 * none, the steps are executed equally often, in turns. */
int32_t hr_judged_apart(const hr_judged_plan *plan, int32_t a, int32_t b);

/* An average of a weight over its updates is a moment that is recognised by its name. */
bool hr_judged_is_average(const hr_judged_buffer *root);

/* Returns whether a root is a window: a part of moments of another space, during some iterations.
 * It is no state of its own. */
static inline bool hr_judged_is_window(const hr_judged_plan *plan, int32_t root)
{
    const hr_judged_buffer *buffer = &plan->buffers[root];
    return plan->version > 1 && buffer->role == HR_JUDGED_MOMENT && buffer->home >= 0 &&
           buffer->space == HR_JUDGED_HOST && !hr_judged_is_average(buffer);
}

static inline bool hr_judged_is_state(const hr_judged_plan *plan, int32_t root)
{
    const hr_judged_role role = plan->buffers[root].role;
    return role == HR_JUDGED_WEIGHT || role == HR_JUDGED_MASTER ||
           (role == HR_JUDGED_MOMENT && !hr_judged_is_window(plan, root));
}

static inline const hr_judged_buffer *hr_judged_root(const hr_judged_plan *plan,
                                                     const hr_judged_access *access)
{
    return &plan->buffers[plan->buffers[access->buffer].root];
}

#endif
