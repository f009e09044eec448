/* SPDX-License-Identifier: Apache-2.0 */
/* dev/executor.h - runs a program at the addresses of its plan.
 *
 * The executor runs the steps in order, moves views with their loops, and launches each operation
 * on the device of its back end. Services are dispatched to their handlers. Nothing here
 * allocates. */
#ifndef HR_DEV_EXECUTOR_H
#define HR_DEV_EXECUTOR_H

#include "dev/device.h"
#include "dev/pool.h"
#include "dev/service.h"
#include "mem/memory.h"
#include "plan/plan.h"

/* Returns true to stop before the next step; the run then returns INTERRUPTED. */
typedef bool hr_stop_fn(void *context);

/* Called after every step (calibration and tests). */
typedef void hr_watch_fn(void *context, const struct hr_executor *executor, int32_t step);

enum { HR_SERVICES_MAX = 3 }; /* transfers, those of the caller, those of the caller's caller */

typedef struct hr_executor {
    const hr_program *program;
    const hr_plan *plan;
    hr_memory *memory; /* owns the arena; records the bytes that steps use */
    const hr_device *device;
    hr_pool *pool; /* for host steps that share their work */
    uint64_t seed;
    int64_t clock;       /* optimizer step */
    int64_t uncounted;   /* earlier steps that are no update of the optimizer's states */
    int64_t rows_here;   /* maximum rows per step; INT64_MAX: as planned */
    hr_watch_fn *before; /* as watch, before every step; may be null */
    hr_watch_fn *watch;  /* may be null */
    hr_stop_fn *stop;    /* may be null; not called while `committed` */
    void *context;       /* argument of the callbacks */
    bool committed;      /* a step has updated persistent state; the caller clears it */

    int64_t *turn;    /* [loop_count] current iteration of each loop */
    int64_t *count;   /* [loop_count] number of iterations; the caller may lower it */
    uint8_t *open;    /* [loop_count] execution is inside the loop */
    uint8_t *clears;  /* [step_count] bit mask of outputs that this step writes first */
    uint8_t *commits; /* [step_count] the step updates persistent state */
    hr_services services[HR_SERVICES_MAX];
    int32_t services_count;
} hr_executor;

/* Bytes of the executor's tables in a region. */
int64_t hr_executor_bytes(const hr_program *program);

/* Allocates the tables; the caller sets the plain fields above them.
 * Errors   FAILURE  the region is too small. */
HR_MUST_CHECK hr_status hr_executor_place(hr_region *region, hr_executor *executor, hr_error *err);

/* Registers handlers. Later ones take precedence. */
void hr_executor_serve(hr_executor *executor, hr_services services);

/* Checks, before a run, that every service of the program has a handler and is in a section that
 * may hold it. Errors FAILURE, with the service and its section. */
HR_MUST_CHECK hr_status hr_executor_check_services(const hr_executor *executor, hr_error *err);

/* Waits for the work that a service has left in the background in any section. Errors: those of
 * that work. */
HR_MUST_CHECK hr_status hr_executor_wait(const hr_executor *executor, int32_t op, hr_error *err);

/* Returns true when a step updates state that outlives the run, so that the optimizer step must be
 * completed. Pure. */
bool hr_executor_commits(const hr_program *program, int32_t step);

/* Runs all iterations of a loop with its inner loops: a section or a part of one.
 * Errors   any error of a service, which stops the run; INTERRUPTED. */
HR_MUST_CHECK hr_status hr_executor_run(hr_executor *executor, int32_t loop, hr_error *err);

/* Offset of a tensor in its space, in the current iterations of the loops. */
int64_t hr_executor_offset(const hr_executor *executor, int32_t tensor);

/* Address of a tensor in the arena, in the current iterations of the loops. */
void *hr_executor_address(const hr_executor *executor, int32_t tensor);

#endif
