/* SPDX-License-Identifier: Apache-2.0 */
/* ops/cpu_run.h - the executor's half of the CPU back end: hr_<op>_cpu_run of each operation, in
 * its <op>_run.c. The planner's half is ops/cpu.h. */
#ifndef HR_OPS_CPU_RUN_H
#define HR_OPS_CPU_RUN_H

#include "ops/call.h"

/* A phase begins when all threads have finished the one before. */
typedef struct {
    hr_run_fn *run;
    int32_t phases;
    /* Phases that depend on the call; null: `phases`. */
    int32_t (*phases_of)(const hr_call *call);
} hr_op_run;

/* [HR_OP_COUNT]; null: an operation of the host. */
extern const hr_op_run *const hr_cpu_runs[];

#endif
