/* SPDX-License-Identifier: Apache-2.0 */
/* ops/activation/activation_cpu.c - activations on the CPU, for the planner. */
#include "ops/activation/activation.h"
#include "ops/cpu.h"

/* Elements that need erf. */
static void items(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    const hr_linear_attr *shape = (const hr_linear_attr *)step->attr;
    (void)bf16;
    if (hr_act_needs_pre(shape->act)) items[0] = rows * shape->N;
}

const hr_op_facts hr_activation_cpu = { .dtypes = HR_CPU_FLOATS, .items = items };
