/* SPDX-License-Identifier: Apache-2.0 */
/* ops/choose/choose_cpu.c - the choice of blocks on the CPU, for the planner. */
#include <stdio.h>

#include "ops/choose/choose_scratch.h"
#include "ops/cpu.h"

static bool supports(const void *of, char cause[HR_CAUSE_BYTES])
{
    const hr_choose_attr *attr = of;
    const int64_t blocks = (attr->T + attr->block - 1) / attr->block;
    const int64_t heads = attr->H / attr->G;
    if (blocks > HR_ATTENTION_NO_BLOCK)
        snprintf(cause, HR_CAUSE_BYTES, "%lld blocks of %d tokens, at most %d", (long long)blocks,
                 attr->block, HR_ATTENTION_NO_BLOCK);
    else if (heads > CHOOSE_PAIRS)
        snprintf(cause, HR_CAUSE_BYTES, "%lld heads share keys, at most %d", (long long)heads,
                 CHOOSE_PAIRS);
    else
        snprintf(cause, HR_CAUSE_BYTES, "head_width is %d, at most %d", attr->head_width,
                 HR_ATTENTION_HEAD_MAX);
    return attr->head_width <= HR_ATTENTION_HEAD_MAX && blocks <= HR_ATTENTION_NO_BLOCK &&
           heads <= CHOOSE_PAIRS;
}

static int64_t row_quantum(const void *attr)
{
    return ((const hr_choose_attr *)attr)->T;
}

static int64_t scratch_bytes(const void *attr, int64_t rows, int32_t threads)
{
    choose_room room;
    (void)rows;
    return threads * choose_place(NULL, attr, &room);
}

/* Cost items: probabilities, and scores of blocks. */
static void items(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    const hr_choose_attr *attr = (const hr_choose_attr *)step->attr;
    (void)bf16;
    items[0] = rows * attr->H * (attr->T / attr->stride / 2 + 1);
    items[1] = rows * attr->G * (attr->T / attr->block / 2 + 1);
}

static int64_t pieces(const void *of, int64_t rows)
{
    const hr_choose_attr *attr = of;
    return attr->G * ((rows + choose_tile(attr) - 1) / choose_tile(attr));
}

const hr_op_facts hr_choose_cpu = { .dtypes = HR_CPU_FLOATS_IDS | 1u << HR_U16,
                                    .supports = supports,
                                    .row_quantum = row_quantum,
                                    .scratch_bytes = scratch_bytes,
                                    .items = items,
                                    .pieces = pieces };
