/* SPDX-License-Identifier: Apache-2.0 */
/* ops/cpu_run.c - the table of the CPU's kernels, for the executor. */
#include "ops/cpu_run.h"

#include "ops/list.h"

#define DECLARE(name) extern const hr_op_run hr_##name##_cpu_run;
HR_OP_LIST(DECLARE)

#define ROW(name) [HR_OP_##name] = &hr_##name##_cpu_run,
const hr_op_run *const hr_cpu_runs[HR_OP_COUNT] = { HR_OP_LIST(ROW) };
