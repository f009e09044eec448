/* SPDX-License-Identifier: Apache-2.0 */
/* ops/muon/muon_cpu.c - Muon's update on the CPU, for the planner. */
#include "ops/cpu.h"
#include "ops/muon/muon_scratch.h"

static int64_t scratch_bytes(const void *attributes, int64_t rows, int32_t threads)
{
    (void)rows;
    return hr_muon_scratch_of(attributes, threads).bytes;
}

const hr_op_facts hr_muon_cpu = { .dtypes = HR_CPU_FLOATS_SUMS | 1 << HR_U8 | 1 << HR_U16,
                                  .scratch_bytes = scratch_bytes };
