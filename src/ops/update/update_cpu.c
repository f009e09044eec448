/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/update_cpu.c - gradient norms and weight updates on the CPU, for the planner. */
#include "ops/cpu.h"
#include "ops/update/update.h"
#include "ops/update/update_scratch.h"

/* The sum of each run. */
static int64_t scratch_bytes(const void *attributes, int64_t rows, int32_t threads)
{
    const hr_sumsq_attr *attr = attributes;
    (void)rows;
    (void)threads;
    return hr_update_runs(attr->elements) * (int64_t)sizeof(double);
}

const hr_op_facts hr_merge_cpu = { .dtypes = 1 << HR_F32 };

const hr_op_facts hr_sumsq_cpu = { .dtypes = 1 << HR_F32 | 1 << HR_F64,
                                   .scratch_bytes = scratch_bytes };

const hr_op_facts hr_clip_cpu = { .dtypes = 1 << HR_F64 };

const hr_op_facts hr_adamw_cpu = { .dtypes = HR_CPU_FLOATS_SUMS | 1 << HR_U8 | 1 << HR_U16 };

const hr_op_facts hr_sgd_cpu = { .dtypes = HR_CPU_FLOATS_SUMS | 1 << HR_U8 | 1 << HR_U16 };

const hr_op_facts hr_lion_cpu = { .dtypes = HR_CPU_FLOATS_SUMS | 1 << HR_U8 | 1 << HR_U16 };

const hr_op_facts hr_average_cpu = { .dtypes = HR_CPU_FLOATS | 1 << HR_U16 };
