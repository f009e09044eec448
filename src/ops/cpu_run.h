/* SPDX-License-Identifier: Apache-2.0 */
/* ops/cpu_run.h - the executor's half of the CPU back end: the function and the number of phases of
 * each operation. It is in a separate file so that the planner links no kernel. */
#ifndef HR_OPS_CPU_RUN_H
#define HR_OPS_CPU_RUN_H

#include "ops/call.h"

/* A phase begins when all threads have finished the one before. Null and 0 phases for an operation
 * of the host. */
typedef struct {
    hr_run_fn *run;
    int32_t phases;
} hr_op_run;

/* [HR_OP_COUNT] */
extern const hr_op_run hr_cpu_runs[];

#endif
