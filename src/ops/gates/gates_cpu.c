/* SPDX-License-Identifier: Apache-2.0 */
/* ops/gates/gates_cpu.c - gated branches on the CPU, for the planner. */
#include "ops/cpu.h"
#include "ops/gates/gates.h"

const hr_op_facts hr_gates_cpu = { .dtypes = HR_CPU_FLOATS };

const hr_op_facts hr_gates_bwd_cpu = { .dtypes = HR_CPU_FLOATS };
