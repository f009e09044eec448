/* SPDX-License-Identifier: Apache-2.0 */
/* ops/select/select_cpu.c - the choice on the CPU, for the planner. */
#include "ops/cpu.h"
#include "ops/select/select.h"

const hr_op_facts hr_select_cpu = { .dtypes = HR_CPU_FLOATS };
