/* SPDX-License-Identifier: Apache-2.0 */
/* ops/glu/glu_cpu.c - gated activations on the CPU, for the planner. */
#include "ops/cpu.h"
#include "ops/glu/glu.h"

/* Exponentials to compute. */
static void items(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    (void)bf16;
    items[0] = rows * ((const hr_glu_attr *)step->attr)->N;
}

const hr_op_facts hr_glu_cpu = { .dtypes = HR_CPU_FLOATS, .items = items };

const hr_op_facts hr_glu_bwd_cpu = { .dtypes = HR_CPU_FLOATS, .items = items };
