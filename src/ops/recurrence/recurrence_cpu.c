/* SPDX-License-Identifier: Apache-2.0 */
/* ops/recurrence/recurrence_cpu.c - recurrences on the CPU, for the planner. */
#include "ops/cpu.h"
#include "ops/recurrence/recurrence_scratch.h"

static int64_t whole_sequences(const void *attr)
{
    return ((const hr_recurrence_attr *)attr)->T;
}

static int64_t pieces(const void *attributes, int64_t rows)
{
    const hr_recurrence_attr *attr = attributes;
    return (rows + attr->T - 1) / attr->T * hr_recurrence_stripes(attr->C);
}

static int64_t scratch_bytes(const void *attributes, int64_t rows, int32_t threads)
{
    const hr_recurrence_attr *attr = attributes;
    const int64_t sums = hr_recurrence_blocks_of(rows, attr->T) * attr->C;
    return threads * HR_RECURRENCE_BLOCK_STATES * (int64_t)sizeof(float) +
           hr_round_up(sums * (int64_t)sizeof(float), 64);
}

const hr_op_facts hr_recurrence_cpu = { .dtypes = HR_CPU_FLOATS,
                                        .row_quantum = whole_sequences,
                                        .pieces = pieces };

const hr_op_facts hr_recurrence_clear_cpu = { .dtypes = 1 << HR_F32 };

const hr_op_facts hr_recurrence_bwd_cpu = { .dtypes = HR_CPU_FLOATS,
                                            .row_quantum = whole_sequences,
                                            .scratch_bytes = scratch_bytes,
                                            .pieces = pieces };
