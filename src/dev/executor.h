/* SPDX-License-Identifier: Apache-2.0 */
/* dev/executor.h - runs a program where its plan put it.
 *
 * Everything is known before: the executor walks steps in order, moves views with their loops, and
 * calls each operation on every thread of the pool, phase by phase. Steps of the host go to the
 * trainer. Nothing here allocates. */
#ifndef HR_DEV_EXECUTOR_H
#define HR_DEV_EXECUTOR_H

#include "dev/pool.h"
#include "graph/op.h"
#include "mem/memory.h"
#include "ops/kernels.h"
#include "ops/list.h"
#include "plan/plan.h"

struct hr_executor;

/* A step of the host. `call` has its operands and scratch; it may set executor->rows_here, the rows
 * that the rest of the present turn works on. */
typedef hr_status hr_host_fn(void *context, struct hr_executor *executor, int32_t step,
                             const hr_call *call, hr_error *err);

/* Whether a walk is to end before its next step: it then gives INTERRUPTED. */
typedef bool hr_stop_fn(void *context);

/* Looks on after every step (tests). */
typedef void hr_watch_fn(void *context, const struct hr_executor *executor, int32_t step);

typedef struct hr_executor {
    const hr_program *program;
    const hr_plan *plan;
    hr_memory *memory; /* holds the arena; notes what steps are given */
    hr_pool *pool;
    const hr_kernels *kernels;
    hr_dtype dtype;
    uint64_t seed;
    int64_t clock;     /* optimiser step */
    int64_t rows_here; /* most rows a step works on; INT64_MAX: as planned */
    hr_host_fn *host;
    hr_watch_fn *watch; /* may be null */
    hr_stop_fn *stop;   /* may be null; not asked while `committed` */
    void *context;      /* of all of them */
    bool committed;     /* a step has written what outlives the run; the caller's to take back */

    int64_t *turn;    /* [loop_count] present turn of each loop */
    int64_t *count;   /* [loop_count] turns to make; the caller may lower them */
    uint8_t *open;    /* [loop_count] the walk is inside */
    uint8_t *clears;  /* [step_count] outputs of which this step is the first writer */
    uint8_t *commits; /* [step_count] updates what outlives the run */
} hr_executor;

/* Bytes of a region that an executor's tables take. */
int64_t hr_executor_bytes(const hr_program *program);

/* Fills the tables; the plain fields above them are the caller's to set.
 * Errors   FAILURE  the region is too small. */
HR_MUST_CHECK hr_status hr_executor_place(hr_region *region, hr_executor *executor, hr_error *err);

/* Whether a step updates what outlives the run: from it on there is no way back. Pure. */
bool hr_executor_commits(const hr_program *program, int32_t step);

/* Runs every turn of one loop, inner loops included: a section, or a part of one.
 * Errors   whatever a step of the host returns; the walk stops there. INTERRUPTED. */
HR_MUST_CHECK hr_status hr_executor_run(hr_executor *executor, int32_t loop, hr_error *err);

/* Where a tensor lies at the present turns of the loops. */
void *hr_executor_address(const hr_executor *executor, int32_t tensor);

#endif
