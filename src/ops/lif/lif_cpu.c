/* SPDX-License-Identifier: Apache-2.0 */
/* ops/lif/lif_cpu.c - leaky integrate-and-fire neurons on the CPU, for the planner. */
#include "ops/cpu.h"
#include "ops/lif/lif_scratch.h"

static int64_t whole_sequences(const void *attr)
{
    return ((const hr_lif_attr *)attr)->T;
}

static int64_t pieces(const void *attributes, int64_t rows)
{
    const hr_lif_attr *attr = attributes;
    (void)rows;
    return attr->C / attr->block;
}

static int64_t scratch_bytes(const void *attr, int64_t rows, int32_t threads)
{
    (void)rows;
    return threads * hr_lif_scratch_of(attr).bytes;
}

/* Cost items: neurons and tokens; their synapses. */
static void items(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    const hr_lif_attr *attr = (const hr_lif_attr *)step->attr;
    (void)bf16;
    items[0] = rows * attr->C;
    items[1] = rows * attr->C * attr->synapses;
}

const hr_op_facts hr_lif_cpu = { .dtypes = HR_CPU_FLOATS,
                                 .row_quantum = whole_sequences,
                                 .pieces = pieces,
                                 .items = items };

const hr_op_facts hr_lif_bwd_cpu = { .dtypes = HR_CPU_FLOATS,
                                     .row_quantum = whole_sequences,
                                     .scratch_bytes = scratch_bytes,
                                     .pieces = pieces,
                                     .items = items };
