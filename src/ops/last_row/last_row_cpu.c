/* SPDX-License-Identifier: Apache-2.0 */
/* ops/last_row/last_row_cpu.c - last_row on the CPU, for the planner. */
#include "ops/cpu.h"

const hr_op_facts hr_last_row_cpu = { .dtypes = HR_CPU_FLOATS };
