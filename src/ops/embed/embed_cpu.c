/* SPDX-License-Identifier: Apache-2.0 */
/* ops/embed/embed_cpu.c - embeddings on the CPU, for the planner. */
#include "base/checked.h"
#include "ops/cpu.h"
#include "ops/embed/embed.h"

/* Table elements read from memory: each row once, for any number of tokens. In panel layout each
 * token gathers its own elements. */
static void items(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    const hr_embed_attr *attr = (const hr_embed_attr *)step->attr;
    (void)bf16;
    if (attr->strip) items[0] = (hr_min(rows, attr->V) * attr->strip / attr->V + 1) * attr->D;
    else if (attr->layout == HR_ROWS) items[0] = hr_min(rows, attr->V) * attr->D;
    else items[1] = rows * attr->D;
}

/* A strip reads the rows of dy whose ids are in it: its share of them. */
static int64_t in_bytes_bwd(const void *attributes, int32_t input, int64_t bytes)
{
    const hr_embed_attr *attr = attributes;
    return input == 1 && attr->strip ? bytes / attr->V * attr->strip : bytes;
}

const hr_op_facts hr_embed_cpu = { .dtypes = HR_CPU_FLOATS_IDS,
                                   .items = items,
                                   .in_looked_up = 1 << 1 | 1 << 2 };

const hr_op_facts hr_embed_bwd_cpu = { .dtypes = HR_CPU_FLOATS_IDS,
                                       .items = items,
                                       .in_bytes = in_bytes_bwd,
                                       .out_looked_up = 1 << 0 | 1 << 1 };
