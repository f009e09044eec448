/* SPDX-License-Identifier: Apache-2.0 */
/* ops/rope/rope_cpu.c - rotary positions on the CPU, for the planner. */
#include "ops/cpu.h"
#include "ops/rope/rope.h"

/* Heads to rotate. */
static void items(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    const hr_rope_attr *shape = (const hr_rope_attr *)step->attr;
    (void)bf16;
    items[0] = rows * shape->heads * shape->runs;
}

const hr_op_facts hr_rope_table_cpu = { .dtypes = 1 << HR_F32 };

const hr_op_facts hr_rope_cpu = { .dtypes = HR_CPU_FLOATS_IDS, .items = items };
