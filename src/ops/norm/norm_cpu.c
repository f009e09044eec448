/* SPDX-License-Identifier: Apache-2.0 */
/* ops/norm/norm_cpu.c - LayerNorm and RMSNorm on the CPU, for the planner. */
#include "ops/cpu.h"
#include "ops/norm/norm.h"
#include "ops/row_blocks_scratch.h"

/* Elements of the mean pass, which RMSNorm does not have. */
static void items(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    const hr_norm_attr *attr = (const hr_norm_attr *)step->attr;
    (void)bf16;
    if (attr->centered) items[0] = rows * attr->groups * attr->D;
}

static int64_t scratch_bytes(const void *attributes, int64_t rows, int32_t threads)
{
    const hr_norm_attr *attr = attributes;
    (void)threads;
    return hr_row_blocks_most(rows, attr->T) * hr_norm_stats(attr) * attr->D *
           (int64_t)sizeof(float);
}

const hr_op_facts hr_norm_cpu = { .dtypes = HR_CPU_FLOATS, .items = items };

const hr_op_facts hr_norm_bwd_cpu = { .dtypes = HR_CPU_FLOATS,
                                      .scratch_bytes = scratch_bytes,
                                      .items = items };
