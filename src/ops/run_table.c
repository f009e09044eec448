/* SPDX-License-Identifier: Apache-2.0 */
/* ops/run_table.c - the table of operation kernels, for the executor. */
#include "ops/list.h"

#define DECLARE(name, phases) extern hr_run_fn hr_##name##_run;
HR_OP_LIST(DECLARE)

#define ROW(name, phases) [HR_OP_##name] = { hr_##name##_run, phases },
#define HOST_ROW(name) [HR_OP_##name] = { 0, 0 },
const hr_op_run hr_op_run_table[] = { HR_OP_LIST(ROW) HR_HOST_OP_LIST(HOST_ROW) };
