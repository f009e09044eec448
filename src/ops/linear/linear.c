/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear.c - builder functions, derivative and properties of matrix products. */
#include "ops/linear/linear.h"

#include <stddef.h>

#include "ops/linear/linear_build.h"
#include "ops/list.h"

enum { X, W, BIAS, RESIDUAL };                    /* inputs of linear */
enum { Y, PRE };                                  /* outputs of linear */
enum { DY = 0, ADDEND = 2, AUX = 3, BEFORE = 4 }; /* inputs of linear_dx (W as above) */

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

/* The first step after that of its maker that reads x as its first operand. */
static int32_t first_reader(const hr_derive *derive, int32_t x)
{
    const hr_program *program = derive->builder->program;
    int32_t s = derive->producer[x] + 1;
    while (s < program->step_count - 1 && program->steps[s].in[0] != x) s++;
    return s;
}

/* The step that produced x, if it ends in an activation whose derivative fits into the epilogue of
 * the dx of step `index`: the first reader of x, which adds to the gradients of all others. */
static const hr_step *activated(const hr_derive *derive, int32_t x, int32_t index)
{
    const hr_step *step = &derive->builder->program->steps[derive->producer[x]];
    if (step->op != HR_OP_linear && step->op != HR_OP_activation) return NULL;
    return attr_of(step)->act != HR_ACT_NONE && first_reader(derive, x) == index ? step : NULL;
}

/* The input of the activation of its maker, which may be that of its output (ReLU). */
static int32_t input_of_activation(const hr_step *maker, int32_t x)
{
    if (!hr_act_needs_pre(attr_of(maker)->act)) return x;
    return maker->op == HR_OP_linear ? maker->out[PRE] : maker->in[0];
}

static void emit_dx(hr_derive *derive, const hr_step *step, int32_t index, int32_t dy)
{
    const int32_t x = step->in[X];
    const hr_step *maker = activated(derive, x, index);
    hr_linear_attr attr = *attr_of(step);
    attr.act = maker ? attr_of(maker)->act : HR_ACT_NONE;
    int32_t addend;
    const int32_t dx = hr_derive_emit(derive, x, &addend);
    hr_step *made = hr_build_step(derive->builder, HR_OP_linear_dx, &attr, sizeof attr);
    made->in[DY] = dy;
    made->in[W] = step->in[W];
    made->in[ADDEND] = addend;
    if (maker) made->in[AUX] = input_of_activation(maker, x);
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

/* dx = dy W^T, dW = x^T dy. If y is an activation, its first reader is a product whose dx already
 * multiplied by act', so dy is the gradient before the activation. */
static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    const hr_step step = derive->builder->program->steps[index];
    const int32_t dy = derive->gradient[step.out[Y]];
    if (dy == HR_NONE) return HR_OK;
    const hr_step *steps = derive->builder->program->steps;
    if (attr_of(&step)->act != HR_ACT_NONE &&
        steps[first_reader(derive, step.out[Y])].op != HR_OP_linear)
        return hr_fail(err, HR_FAILURE,
                       "step %d (linear): the first reader of an activation must be a product",
                       index);
    emit_dw(derive, &step, dy);
    if (hr_derive_wants(derive, step.in[X])) emit_dx(derive, &step, index, dy);
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

const hr_op hr_linear_op = { .name = "linear",
                             .in = "rwWR",
                             .out = "rR",
                             .reuse = { 1 << RESIDUAL },
                             .residual = 1 + RESIDUAL,
                             .remade_by = 1 + HR_OP_activation,
                             .without_first = only_pre,
                             .derivative = derivative,
                             .flops = flops };

const hr_op hr_linear_dx_op = { .name = "linear_dx",
                                .in = "rwRRR",
                                .out = "RR",
                                .reuse = { 1 << ADDEND | 1 << AUX, 1 << BEFORE },
                                .derivative = derivative_back,
                                .flops = flops };

static int64_t flops_dw(const void *attr, int64_t rows)
{
    const hr_linear_attr *shape = attr;
    return 2 * rows * shape->K * hr_linear_columns(shape);
}

/* x is packed again for each strip. Of 512 columns, which are packed at once anyway, strips are as
 * fast as the whole; of 128 they take 1.28 times as long for 32,768 x 2,048 over 128 tokens, of 96
 * 1.36 and of 64 1.45 times (one thread of Zen 5 with AVX-512, fp32, 2026-11). */
static hr_strips strips(const void *attr)
{
    const hr_linear_attr *shape = attr;
    const int64_t panels = (shape->N + HR_PANEL_WIDTH - 1) / HR_PANEL_WIDTH;
    return (hr_strips){ panels, 96 / HR_PANEL_WIDTH, 512 / HR_PANEL_WIDTH };
}

static void cut_strip(hr_step *step, int64_t first, int64_t units)
{
    hr_linear_attr *shape = (hr_linear_attr *)step->attr;
    shape->strip_first = first * HR_PANEL_WIDTH;
    shape->strip = units * HR_PANEL_WIDTH;
    step->out[1] = HR_NONE;
}

static void only_db(hr_step *step)
{
    ((hr_linear_attr *)step->attr)->K = 0;
    step->in[0] = HR_NONE;
}

const hr_op hr_linear_dw_op = { .name = "linear_dw",
                                .in = "Rr",
                                .out = "AA",
                                .without_first = only_db,
                                .strips = strips,
                                .cut_strip = cut_strip,
                                .flops = flops_dw };
