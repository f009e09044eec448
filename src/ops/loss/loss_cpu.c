/* SPDX-License-Identifier: Apache-2.0 */
/* ops/loss/loss_cpu.c - the loss on the CPU, for the planner. */
#include "ops/cpu.h"
#include "ops/loss/loss.h"

/* One loss of each row, then one z-loss of each. */
static int64_t scratch_bytes(const void *attr, int64_t rows, int32_t threads)
{
    const hr_loss_attr *loss = attr;
    (void)threads;
    return rows * (loss->z > 0 ? 2 : 1) * (int64_t)sizeof(double);
}

const hr_op_facts hr_loss_cpu = { .dtypes = HR_CPU_ALL, .scratch_bytes = scratch_bytes };
const hr_op_facts hr_loss_part_cpu = { .dtypes = HR_CPU_ALL, .scratch_bytes = scratch_bytes };
const hr_op_facts hr_loss_dx_cpu = { .dtypes = HR_CPU_ALL };
