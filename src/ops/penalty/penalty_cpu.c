/* SPDX-License-Identifier: Apache-2.0 */
/* ops/penalty/penalty_cpu.c - penalties on the CPU, for the planner. */
#include "base/checked.h"
#include "ops/cpu.h"
#include "ops/penalty/penalty.h"
#include "ops/row_blocks_scratch.h"

/* One sum of squares of each block. */
static int64_t penalty_scratch(const void *attributes, int64_t rows, int32_t threads)
{
    const hr_penalty_attr *attr = attributes;
    (void)rows;
    (void)threads;
    return hr_round_up(attr->elements, HR_PENALTY_BLOCK) / HR_PENALTY_BLOCK *
           (int64_t)sizeof(double);
}

/* One value of each row, then the gradients of G of each block of tokens. */
static int64_t restrain_scratch(const void *attributes, int64_t rows, int32_t threads)
{
    const hr_restrain_attr *attr = attributes;
    (void)threads;
    return rows * (int64_t)sizeof(double) +
           hr_row_blocks_most(rows, attr->T) * attr->N * attr->R * (int64_t)sizeof(float);
}

/* Multiplications. */
static void gram_items(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    const hr_gram_attr *attr = (const hr_gram_attr *)step->attr;
    (void)bf16;
    (void)rows;
    items[0] = (attr->K + attr->M) * attr->N * attr->R;
}

static void restrain_items(const hr_step *step, bool bf16, int64_t rows,
                           int64_t items[HR_ITEMS_MAX])
{
    const hr_restrain_attr *attr = (const hr_restrain_attr *)step->attr;
    (void)bf16;
    items[0] = rows * attr->N * attr->R;
}

const hr_op_facts hr_penalty_cpu = { .dtypes = HR_CPU_ALL, .scratch_bytes = penalty_scratch };

const hr_op_facts hr_gram_cpu = { .dtypes = HR_CPU_FLOATS, .items = gram_items };

const hr_op_facts hr_gram_bwd_cpu = { .dtypes = HR_CPU_FLOATS, .items = gram_items };

const hr_op_facts hr_restrain_cpu = { .dtypes = HR_CPU_ALL,
                                      .scratch_bytes = restrain_scratch,
                                      .items = restrain_items };
