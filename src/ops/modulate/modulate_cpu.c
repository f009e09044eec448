/* SPDX-License-Identifier: Apache-2.0 */
/* ops/modulate/modulate_cpu.c - adapters of a token on the CPU, for the planner. */
#include "ops/cpu.h"
#include "ops/modulate/modulate.h"

/* Exponentials to compute, or products of groups. */
static void items(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    (void)bf16;
    items[0] = rows * ((const hr_modulate_attr *)step->attr)->N;
}

const hr_op_facts hr_modulate_cpu = { .dtypes = HR_CPU_FLOATS, .items = items };

const hr_op_facts hr_modulate_bwd_cpu = { .dtypes = HR_CPU_FLOATS, .items = items };
