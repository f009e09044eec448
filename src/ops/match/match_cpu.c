/* SPDX-License-Identifier: Apache-2.0 */
/* ops/match/match_cpu.c - distances of rows on the CPU, for the planner. */
#include "ops/cpu.h"
#include "ops/match/match.h"

/* One error of each row. */
static int64_t scratch_bytes(const void *attr, int64_t rows, int32_t threads)
{
    (void)attr;
    (void)threads;
    return rows * (int64_t)sizeof(double);
}

const hr_op_facts hr_match_cpu = { .dtypes = HR_CPU_ALL, .scratch_bytes = scratch_bytes };
