/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear.c - builder functions, derivative and properties of matrix products. */
#include "ops/linear/linear.h"

#include "ops/linear/linear_build.h"
#include "ops/list.h"

enum { X, W, BIAS, RESIDUAL };        /* inputs of linear */
enum { Y, PRE };                      /* outputs of linear */
enum { DY = 0, ADDEND = 2, AUX = 3 }; /* inputs of linear_dx (W as above) */

int32_t hr_build_linear(hr_builder *builder, const char *name, int32_t x, int32_t weight,
                        int32_t bias, hr_act act, int32_t residual)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    const hr_tensor *matrix = &builder->program->tensors[weight];
    const hr_linear_attr attr = { matrix->dims[0], matrix->dims[1], builder->T, act };
    const int32_t y = hr_build_rows(builder, name, builder->dtype, attr.N);
    const bool keeps_pre = hr_act_needs_pre(act) && builder->training;
    const int32_t pre = keeps_pre ? hr_build_rows(builder, "pre", builder->dtype, attr.N) : HR_NONE;
    hr_build_mark(builder, pre, HR_INTERMEDIATE_UP);
    if (act != HR_ACT_NONE) hr_build_mark(builder, y, HR_INTERMEDIATE_ACTIVATION);
    hr_step *step = hr_build_step(builder, HR_OP_linear, &attr, sizeof attr);
    step->in[X] = x;
    step->in[W] = weight;
    step->in[BIAS] = bias;
    step->in[RESIDUAL] = residual;
    step->out[Y] = y;
    step->out[PRE] = pre;
    return y;
}

int32_t hr_build_linear_back(hr_builder *builder, const char *name, int32_t x, int32_t weight)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    const hr_tensor *matrix = &builder->program->tensors[weight];
    const hr_linear_attr attr = { matrix->dims[0], matrix->dims[1], builder->T, HR_ACT_NONE };
    const int32_t y = hr_build_rows(builder, name, builder->dtype, attr.K);
    hr_step *step = hr_build_step(builder, HR_OP_linear_dx, &attr, sizeof attr);
    step->in[DY] = x;
    step->in[W] = weight;
    step->out[0] = y;
    return y;
}

static const hr_linear_attr *attr_of(const hr_step *step)
{
    return (const hr_linear_attr *)step->attr;
}

/* The step that produced x, if it ends in an activation whose derivative fits into the epilogue of
 * dx. */
static const hr_step *activated(const hr_derive *derive, int32_t x)
{
    if (!hr_derive_wants(derive, x)) return 0;
    const hr_step *step = &derive->builder->program->steps[derive->producer[x]];
    if (step->op != HR_OP_linear || attr_of(step)->act == HR_ACT_NONE) return 0;
    return step;
}

static void emit_dx(hr_derive *derive, const hr_step *step, int32_t dy)
{
    const int32_t x = step->in[X];
    const hr_step *maker = activated(derive, x);
    hr_linear_attr attr = *attr_of(step);
    attr.act = maker ? attr_of(maker)->act : HR_ACT_NONE;
    int32_t addend;
    const int32_t dx = hr_derive_emit(derive, x, &addend);
    hr_step *made = hr_build_step(derive->builder, HR_OP_linear_dx, &attr, sizeof attr);
    made->in[DY] = dy;
    made->in[W] = step->in[W];
    made->in[ADDEND] = addend;
    if (maker) made->in[AUX] = hr_act_needs_pre(attr.act) ? maker->out[PRE] : x;
    made->out[0] = dx;
}

static void emit_dw(hr_derive *derive, const hr_step *step, int32_t dy)
{
    const int32_t dw = hr_derive_param(derive, step->in[W]);
    const int32_t db = hr_derive_param(derive, step->in[BIAS]);
    hr_linear_attr attr = *attr_of(step);
    if (dw == HR_NONE && db == HR_NONE) return;
    if (dw == HR_NONE) attr.K = 0;
    hr_step *made = hr_build_step(derive->builder, HR_OP_linear_dw, &attr, sizeof attr);
    if (dw != HR_NONE) made->in[0] = step->in[X];
    made->in[1] = dy;
    made->out[0] = dw;
    made->out[1] = db;
}

/* dx = dy W^T, dW = x^T dy. If y is an activation, its only reader is a product whose dx already
 * multiplied by act', so dy is the gradient before the activation. */
static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    const hr_step step = derive->builder->program->steps[index];
    const int32_t dy = derive->gradient[step.out[Y]];
    if (dy == HR_NONE) return HR_OK;
    if (attr_of(&step)->act != HR_ACT_NONE && derive->uses[step.out[Y]] != 1)
        return hr_fail(err, HR_FAILURE,
                       "step %d (linear): an activation must have one reader, this one has %d",
                       index, derive->uses[step.out[Y]]);
    emit_dw(derive, &step, dy);
    if (hr_derive_wants(derive, step.in[X])) emit_dx(derive, &step, dy);
    return HR_OK;
}

/* For y = x W^T: dx = dy W, dW = dy^T x. */
static hr_status derivative_back(hr_derive *derive, int32_t index, hr_error *err)
{
    const hr_step step = derive->builder->program->steps[index];
    const int32_t dy = derive->gradient[step.out[0]];
    (void)err;
    if (dy == HR_NONE) return HR_OK;
    const int32_t dw = hr_derive_param(derive, step.in[W]);
    hr_step *made;
    if (dw != HR_NONE) {
        made = hr_build_step(derive->builder, HR_OP_linear_dw, step.attr, HR_ATTR_BYTES);
        made->in[0] = dy;
        made->in[1] = step.in[DY];
        made->out[0] = dw;
    }
    if (!hr_derive_wants(derive, step.in[DY])) return HR_OK;
    int32_t addend;
    const int32_t dx = hr_derive_emit(derive, step.in[DY], &addend);
    made = hr_build_step(derive->builder, HR_OP_linear, step.attr, HR_ATTR_BYTES);
    made->in[X] = dy;
    made->in[W] = step.in[W];
    made->in[RESIDUAL] = addend;
    made->out[Y] = dx;
    return HR_OK;
}

/* Turns a clone that must only produce pre into a product without activation. */
static void only_pre(hr_step *clone)
{
    ((hr_linear_attr *)clone->attr)->act = HR_ACT_NONE;
    clone->in[RESIDUAL] = HR_NONE;
    clone->out[Y] = clone->out[PRE];
    clone->out[PRE] = HR_NONE;
}

static int64_t flops(const void *attr, int64_t rows)
{
    const hr_linear_attr *shape = attr;
    return 2 * rows * shape->K * shape->N;
}

/* Block sizes of the kernels: a KiB of the reduction by this many columns. */
enum { BLOCK_BYTES = 1024, BLOCK_COLUMNS = 512, TILE_COLUMNS = 32 };

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
    const hr_linear_attr *shape = attr_of(step);
    items_mm(shape, bf16, rows, shape->K, shape->N, items);
}

static void items_dx(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    const hr_linear_attr *shape = attr_of(step);
    items_mm(shape, bf16, rows, shape->N, shape->K, items);
}

/* Cost items: the pass for db; elements of x and dy that are packed, once per block of the other's
 * columns; sums stored between blocks of tokens. */
static void items_dw(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    const hr_linear_attr *shape = attr_of(step);
    if (step->out[1] != HR_NONE) items[0] = rows * shape->N;
    if (step->out[0] == HR_NONE) return;
    items[1] = rows * shape->K * blocks(shape->N, BLOCK_COLUMNS);
    items[2] = rows * shape->N * blocks(shape->K, BLOCK_COLUMNS);
    items[3] = shape->K * shape->N * (blocks(rows, BLOCK_BYTES / (bf16 ? 2 : 4)) - 1);
}

const hr_op hr_linear_op = { .name = "linear",
                             .in = "rwWR",
                             .out = "rR",
                             .reuse = { 1 << RESIDUAL },
                             .residual = 1 + RESIDUAL,
                             .remade_by = 1 + HR_OP_activation,
                             .without_first = only_pre,
                             .derivative = derivative,
                             .scratch_bytes = hr_linear_scratch_bytes,
                             .flops = flops,
                             .items = items };

const hr_op hr_linear_dx_op = { .name = "linear_dx",
                                .in = "rwRR",
                                .out = "r",
                                .reuse = { 1 << ADDEND | 1 << AUX },
                                .derivative = derivative_back,
                                .scratch_bytes = hr_linear_dx_scratch_bytes,
                                .flops = flops,
                                .items = items_dx };

const hr_op hr_linear_dw_op = { .name = "linear_dw",
                                .in = "Rr",
                                .out = "AA",
                                .scratch_bytes = hr_linear_dw_scratch_bytes,
                                .flops = flops,
                                .items = items_dw };
