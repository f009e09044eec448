/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dropout/dropout_cpu.c - dropout on the CPU, for the planner. */
#include "ops/cpu.h"

const hr_op_facts hr_dropout_cpu = { .dtypes = HR_CPU_FLOATS };
