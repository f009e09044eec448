/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_cpu.c - matrix products on the CPU, for the planner. */
#include "ops/cpu.h"
#include "ops/linear/linear_scratch.h"

static int64_t scratch_bytes(const void *attr, int64_t rows, int32_t threads)
{
    const hr_linear_attr *linear = attr;
    return threads * hr_linear_lay_out_mm(rows, linear->K, linear->N).bytes;
}

static int64_t scratch_bytes_dx(const void *attr, int64_t rows, int32_t threads)
{
    const hr_linear_attr *linear = attr;
    return threads * hr_linear_lay_out_mm(rows, linear->N, linear->K).bytes;
}

static int64_t scratch_bytes_dw(const void *attr, int64_t rows, int32_t threads)
{
    const hr_linear_attr *linear = attr;
    (void)rows;
    if (linear->K == 0) return 0;
    return threads * hr_linear_lay_out_dw(linear->K, hr_linear_columns(linear)).bytes;
}

enum {
    BLOCK_BYTES = 4 * HR_LINEAR_WORDS,
    BLOCK_COLUMNS = HR_LINEAR_COLUMNS,
    TILE_COLUMNS = HR_LINEAR_TILE_COLUMNS
};

static int64_t blocks(int64_t length, int64_t block)
{
    return hr_max(1, (length + block - 1) / block);
}

/* Cost items of a product with `reduced` elements of reduction and `columns` of result: erf of GELU
 * or its derivative; sums stored between blocks of the reduction; elements copied per block of
 * columns; rows with a partial last tile. */
static void items_mm(const hr_linear_attr *shape, bool bf16, int64_t rows, int64_t reduced,
                     int64_t columns, int64_t items[HR_ITEMS_MAX])
{
    if (hr_act_needs_pre(shape->act)) items[0] = rows * columns;
    items[1] = rows * columns * (blocks(reduced, BLOCK_BYTES / (bf16 ? 2 : 4)) - 1);
    items[2] = rows * reduced * blocks(columns, BLOCK_COLUMNS);
    if (columns % TILE_COLUMNS) items[3] = rows;
}

static void items(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    const hr_linear_attr *shape = (const hr_linear_attr *)step->attr;
    items_mm(shape, bf16, rows, shape->K, shape->N, items);
}

static void items_dx(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    const hr_linear_attr *shape = (const hr_linear_attr *)step->attr;
    items_mm(shape, bf16, rows, shape->N, shape->K, items);
}

/* Cost items: the pass for db; elements of x and dy that are packed, once per block of the other's
 * columns; sums stored between blocks of tokens. */
static void items_dw(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    const hr_linear_attr *shape = (const hr_linear_attr *)step->attr;
    if (step->out[1] != HR_NONE) items[0] = rows * shape->N;
    if (step->out[0] == HR_NONE) return;
    const int64_t columns = hr_linear_columns(shape);
    items[1] = rows * shape->K * blocks(columns, BLOCK_COLUMNS);
    items[2] = rows * columns * blocks(shape->K, BLOCK_COLUMNS);
    items[3] = shape->K * columns * (blocks(rows, BLOCK_BYTES / (bf16 ? 2 : 4)) - 1);
}

/* A strip reads its columns of dy. It reads all of x, but so does every block of columns of the
 * whole: items[1] counts that. */
static int64_t in_bytes_dw(const void *attr, int32_t input, int64_t bytes)
{
    const hr_linear_attr *shape = attr;
    (void)input;
    return shape->strip ? bytes / shape->N * shape->strip : bytes;
}

const hr_op_facts hr_linear_cpu = { .dtypes = HR_CPU_FLOATS,
                                    .scratch_bytes = scratch_bytes,
                                    .items = items };

const hr_op_facts hr_linear_dx_cpu = { .dtypes = HR_CPU_FLOATS,
                                       .scratch_bytes = scratch_bytes_dx,
                                       .items = items_dx };

const hr_op_facts hr_linear_dw_cpu = { .dtypes = HR_CPU_FLOATS,
                                       .scratch_bytes = scratch_bytes_dw,
                                       .items = items_dw,
                                       .in_bytes = in_bytes_dw };
