/* SPDX-License-Identifier: Apache-2.0 */
/* ops/product_norm/product_norm_cpu.c - product_norm on the CPU, for the planner. */
#include "ops/cpu.h"
#include "ops/product_norm/product_norm_scratch.h"

static int64_t scratch_bytes(const void *attributes, int64_t rows, int32_t threads)
{
    (void)rows;
    return hr_product_norm_scratch_of(attributes, threads).bytes;
}

const hr_op_facts hr_product_norm_cpu = { .dtypes = HR_CPU_ALL, .scratch_bytes = scratch_bytes };
