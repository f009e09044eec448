/* SPDX-License-Identifier: Apache-2.0 */
/* ops/adafactor/adafactor_cpu.c - Adafactor's update on the CPU, for the planner. */
#include "ops/adafactor/adafactor.h"
#include "ops/adafactor/adafactor_scratch.h"
#include "ops/cpu.h"

static hr_adafactor_grid grid_of(const void *attributes)
{
    const hr_adafactor_attr *attr = attributes;
    return hr_adafactor_grid_of(attr->K, attr->N, (hr_layout)attr->layout);
}

static int64_t scratch_bytes(const void *attributes, int64_t rows, int32_t threads)
{
    const hr_adafactor_grid grid = grid_of(attributes);
    (void)rows;
    (void)threads;
    return hr_adafactor_scratch_of(attributes, &grid).bytes;
}

static int64_t pieces(const void *attributes, int64_t rows)
{
    (void)rows;
    return grid_of(attributes).blocks;
}

const hr_op_facts hr_adafactor_cpu = { .dtypes = HR_CPU_FLOATS_SUMS | 1 << HR_U16,
                                       .scratch_bytes = scratch_bytes,
                                       .pieces = pieces };
