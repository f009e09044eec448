/* SPDX-License-Identifier: Apache-2.0 */
/* dev/service.h - handlers of services: what the host does inside a program. Unlike a kernel, a
 * service may fail and wait.
 *
 * ops/host/ has the operations: their operands and the sections that may hold them. Whoever runs a
 * program registers handlers (hr_executor_serve), checks that none is missing
 * (hr_executor_check_services), and the executor calls the handler of each step's operation and
 * section. */
#ifndef HR_DEV_SERVICE_H
#define HR_DEV_SERVICE_H

#include "graph/program.h"
#include "ops/call.h"

struct hr_executor;

/* Does the work of a step, or begins it. The operands in `call` are valid during this call only:
 * what continues in the background has memory of its own. May set executor->rows_here, the number
 * of rows for the rest of the current iteration, and the number of iterations of a loop. Any error
 * stops the run. */
typedef hr_status hr_service_begin_fn(void *context, struct hr_executor *executor, int32_t step,
                                      const hr_call *call, hr_error *err);

/* Waits for what the calls of `begin` left in the background. Errors: those of that work. */
typedef hr_status hr_service_wait_fn(void *context, hr_error *err);

/* A handler. */
typedef struct {
    int32_t op;         /* such as HR_OP_save; HR_NONE: every service without a handler */
    hr_loop_id section; /* HR_LOOP_OTHER: every section without a handler of its own */
    hr_service_begin_fn *begin;
    hr_service_wait_fn *wait; /* null: begin completes its work */
} hr_service;

/* Handlers with a common context. */
typedef struct {
    const hr_service *services; /* [count] */
    int32_t count;
    void *context;
} hr_services;

#endif
