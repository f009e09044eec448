/* SPDX-License-Identifier: Apache-2.0 */
/* ops/magnitude/magnitude_cpu.c - lengths and magnitudes on the CPU, for the planner. */
#include "ops/cpu.h"
#include "ops/magnitude/magnitude.h"
#include "ops/row_blocks_scratch.h"

/* Multiplications of A and B. */
static void length_items(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    const hr_length_attr *attr = (const hr_length_attr *)step->attr;
    (void)bf16;
    (void)rows;
    items[0] = attr->K * attr->N * attr->R;
}

static int64_t scratch_bytes(const void *attributes, int64_t rows, int32_t threads)
{
    const hr_magnitude_attr *attr = attributes;
    (void)threads;
    return hr_row_blocks_most(rows, attr->T) * attr->N * (int64_t)sizeof(float);
}

const hr_op_facts hr_length_cpu = { .dtypes = HR_CPU_FLOATS, .items = length_items };

const hr_op_facts hr_magnitude_cpu = { .dtypes = HR_CPU_FLOATS };

const hr_op_facts hr_magnitude_bwd_cpu = { .dtypes = HR_CPU_FLOATS,
                                           .scratch_bytes = scratch_bytes };
