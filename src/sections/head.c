/* SPDX-License-Identifier: Apache-2.0 */
/* sections/head.c - finds heads in a file, and puts strips in their place. */
#include "sections/head.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "config/config.h"
#include "ops/linear/linear.h"
#include "ops/list.h"
#include "ops/loss/loss.h"

enum {
    STRIPS_MOST = 64,
    COLUMNS_MOST = 4 * HR_LOSS_BLOCK,
    OF_STRIP = 7, /* tensors of a strip in a step, and steps */
    HEADS = 3     /* in the step, its repetition for the norm, and evaluation */
};

/* A head: the product of the logits, and behind it the loss and the product of the gradient, or the
 * first of these steps. */
typedef struct {
    hr_step product, loss, back;
    int32_t steps;   /* 1 to 3; 0: there is none */
    bool emits;      /* the second is a service that takes logits */
    int64_t columns; /* of a strip */
} head;

typedef struct {
    hr_program *program;
    hr_step rest;        /* a step without room */
    int32_t count, most; /* steps before the ones behind the head, and where these are meanwhile */
    bool full;
} cutting;

int32_t hr_head_most(const hr_config *config)
{
    const bool away = config->memory.weights != HR_PLACE_HOST;
    return away ? HEADS * OF_STRIP * STRIPS_MOST : 0;
}

/* ---- which heads */

/* Whether step `s` alone reads a tensor, as its first operand. */
static bool is_only_reader(const hr_program *program, int32_t s, int32_t tensor)
{
    int32_t count = 0;
    for (int32_t t = 0; t < program->step_count; t++)
        for (int32_t i = 0; i < HR_IN_MAX; i++) count += program->steps[t].in[i] == tensor;
    return count == 1 && s < program->step_count && program->steps[s].in[0] == tensor;
}

/* A strip is no larger than the largest other weight, whose windows are there anyway, and than some
 * columns, since its logits are an activation. */
static int64_t columns_of(const hr_program *program, const hr_tensor *weight)
{
    int64_t largest = 0;
    for (int32_t p = 0; p < program->param_count; p++) {
        const hr_tensor *other = &program->tensors[program->params[p].weight];
        if (other->space == HR_SPACE_BASE && other->layer != HR_NONE)
            largest = hr_max(largest, hr_tensor_bytes(other));
    }
    const int64_t N = weight->dims[1];
    const int64_t block = hr_tensor_bytes(weight) / N * HR_LOSS_BLOCK;
    const int64_t blocks = hr_min(hr_max(largest / hr_max(block, 1), 1),
                                  COLUMNS_MOST / HR_LOSS_BLOCK);
    const int64_t least = (N + STRIPS_MOST - 1) / STRIPS_MOST;
    return hr_round_up(hr_max(blocks * HR_LOSS_BLOCK, least), HR_LOSS_BLOCK);
}

static bool is_in_file(const hr_program *program, int32_t tensor)
{
    for (int32_t p = 0; p < program->param_count; p++)
        if (program->params[p].weight == tensor)
            return program->tensors[tensor].space == HR_SPACE_BASE &&
                   program->params[p].external_transposed;
    return false;
}

/* The head whose product is step `s`; one that stays whole is none. */
static head find_head(const hr_program *program, int32_t s)
{
    const hr_step *steps = program->steps + s, *product = steps;
    head found = { .steps = 0 };
    if (product->op != HR_OP_linear || product->block != HR_BLOCK_HEAD ||
        product->in[2] != HR_NONE || product->in[3] != HR_NONE || product->out[1] != HR_NONE ||
        !is_in_file(program, product->in[1]) || !is_only_reader(program, s + 1, product->out[0]))
        return found;
    const hr_tensor *weight = &program->tensors[product->in[1]];
    found.columns = columns_of(program, weight);
    if (found.columns >= weight->dims[1]) return found;
    found.product = steps[0];
    if (steps[1].op == HR_OP_sample)
        found.steps = program->tensors[product->out[0]].rows == 1 ? 1 : 0;
    found.emits = steps[1].op == HR_OP_emit;
    if (steps[1].op != HR_OP_loss && !found.emits) return found;
    found.loss = steps[1];
    if (found.emits) {
        found.steps = 2;
        return found;
    }
    const int32_t gradient = steps[1].out[1];
    if (gradient == HR_NONE) found.steps = 2;
    else if (is_only_reader(program, s + 2, gradient) && steps[2].op == HR_OP_linear_dx) {
        found.back = steps[2];
        found.steps = 3;
    }
    return found;
}

/* ---- the new list */

static hr_step *append(cutting *c, const hr_step *like, int16_t op, const void *attr, size_t bytes)
{
    c->full |= c->count == c->most;
    hr_step *step = c->full ? &c->rest : &c->program->steps[c->count++];
    *step = *like;
    step->op = op;
    for (int32_t i = 0; i < HR_IN_MAX; i++) step->in[i] = HR_NONE;
    for (int32_t k = 0; k < HR_OUT_MAX; k++) step->out[k] = HR_NONE;
    memset(step->attr, 0, sizeof step->attr);
    memcpy(step->attr, attr, bytes);
    return step;
}

static int32_t add_tensor(cutting *c, hr_tensor tensor)
{
    c->full |= c->program->tensor_count == c->program->tensor_max;
    if (c->full) return 0;
    c->program->tensors[c->program->tensor_count] = tensor;
    return c->program->tensor_count++;
}

/* Rows like those of the logits. */
static int32_t add_rows(cutting *c, const head *of, const char *name, hr_dtype dtype, int64_t width)
{
    hr_tensor rows = c->program->tensors[of->product.out[0]];
    snprintf(rows.name, sizeof rows.name, "%s", name);
    rows.dtype = (uint8_t)dtype;
    rows.dims[1] = width;
    rows.row_bytes = width * hr_dtype_bytes(dtype);
    rows.fixed_bytes = 0;
    return add_tensor(c, rows);
}

/* The columns of a strip of the weight, which are adjacent in its layout. */
static int32_t add_columns(cutting *c, const head *of, int64_t first, int64_t count)
{
    const int32_t weight = of->product.in[1];
    hr_tensor view = c->program->tensors[weight];
    const int64_t bytes = hr_dtype_bytes((hr_dtype)view.dtype);
    snprintf(view.name, sizeof view.name, "%.30s, columns %lld", c->program->tensors[weight].name,
             (long long)first);
    view.view_of = weight;
    view.view_offset_bytes = hr_layout_elements((hr_layout)view.layout, view.dims[0], first) *
                             bytes;
    view.view_loop = HR_NONE;
    view.dims[1] = count;
    view.fixed_bytes = hr_layout_elements((hr_layout)view.layout, view.dims[0], count) * bytes;
    return add_tensor(c, view);
}

/* The product of a strip; returns its logits. */
static int32_t append_product(cutting *c, const head *of, const hr_step *like, int32_t columns,
                              int32_t logits)
{
    hr_linear_attr attr;
    memcpy(&attr, of->product.attr, sizeof attr);
    attr.N = c->program->tensors[columns].dims[1];
    if (logits == HR_NONE)
        logits = add_rows(c, of, "logits of columns", (hr_dtype)c->program->dtype, attr.N);
    hr_step *step = append(c, like, HR_OP_linear, &attr, sizeof attr);
    step->in[0] = of->product.in[0];
    step->in[1] = columns;
    step->out[0] = logits;
    return logits;
}

/* The one row of logits, strip by strip. */
static void append_row(cutting *c, const head *of, const int32_t *weights, int32_t count)
{
    for (int32_t i = 0; i < count && !c->full; i++) {
        hr_tensor view = c->program->tensors[of->product.out[0]];
        const int64_t bytes = hr_dtype_bytes((hr_dtype)view.dtype);
        view.view_of = of->product.out[0];
        view.view_offset_bytes = i * of->columns * bytes;
        view.view_loop = HR_NONE;
        view.dims[1] = c->program->tensors[weights[i]].dims[1];
        view.row_bytes = view.dims[1] * bytes;
        append_product(c, of, &of->product, weights[i], add_tensor(c, view));
    }
}

/* The loss over the strips; returns the sums of each row. */
static int32_t append_loss(cutting *c, const head *of, const int32_t *weights, int32_t count)
{
    hr_loss_attr attr;
    int32_t part = HR_NONE;
    memcpy(&attr, of->loss.attr, sizeof attr);
    for (int32_t i = 0; i < count && !c->full; i++) {
        const int32_t logits = append_product(c, of, &of->product, weights[i], HR_NONE);
        attr.first = i * of->columns;
        attr.V = c->program->tensors[weights[i]].dims[1];
        hr_step *step = append(c, &of->loss, HR_OP_loss_part, &attr, sizeof attr);
        step->in[0] = logits;
        step->in[1] = of->loss.in[1];
        step->in[2] = part;
        part = add_rows(c, of, "sums of exponentials", HR_F32,
                        HR_LOSS_PART_BYTES / (int64_t)sizeof(float));
        step->out[0] = part;
        if (i + 1 == count) step->out[1] = of->loss.out[0];
    }
    return part;
}

/* A service takes the logits of one strip after the other. */
static void append_emits(cutting *c, const head *of, const int32_t *weights, int32_t count)
{
    for (int32_t i = 0; i < count && !c->full; i++) {
        const int32_t logits = append_product(c, of, &of->product, weights[i], HR_NONE);
        append(c, &of->loss, HR_OP_emit, of->loss.attr, HR_ATTR_BYTES)->in[0] = logits;
    }
}

/* The gradient of the strips. */
static void append_back(cutting *c, const head *of, const int32_t *weights, int32_t count,
                        int32_t part)
{
    hr_step again = of->back;
    hr_linear_attr shape;
    hr_loss_attr attr;
    int32_t sums = HR_NONE;
    again.direction = HR_DIR_RECOMPUTED;
    memcpy(&shape, of->back.attr, sizeof shape);
    memcpy(&attr, of->loss.attr, sizeof attr);
    for (int32_t i = 0; i < count && !c->full; i++) {
        const int32_t logits = append_product(c, of, &again, weights[i], HR_NONE);
        attr.first = i * of->columns;
        attr.V = shape.N = c->program->tensors[weights[i]].dims[1];
        const int32_t gradient = add_rows(c, of, "d.logits of columns", (hr_dtype)c->program->dtype,
                                          attr.V);
        hr_step *step = append(c, &of->back, HR_OP_loss_dx, &attr, sizeof attr);
        step->in[0] = logits;
        step->in[1] = of->loss.in[1];
        step->in[2] = of->loss.in[2];
        step->in[3] = part;
        step->out[0] = gradient;
        step = append(c, &of->back, HR_OP_linear_dx, &shape, sizeof shape);
        step->in[0] = gradient;
        step->in[1] = weights[i];
        step->in[4] = sums;
        if (i + 1 < count)
            step->out[1] = sums = add_rows(c, of, "sums of d.input", HR_F32, shape.K);
        else {
            step->in[2] = of->back.in[2];
            step->in[3] = of->back.in[3];
            step->out[0] = of->back.out[0];
        }
    }
}

/* Puts strips in the place of the steps of a head, which begin at step `s`. */
static void replace_head(cutting *c, int32_t s, const head *of)
{
    hr_program *program = c->program;
    const int64_t N = program->tensors[of->product.in[1]].dims[1];
    const int32_t behind = program->step_count - s - of->steps;
    const size_t bytes = (size_t)behind * sizeof *program->steps;
    int32_t weights[STRIPS_MOST], count = 0;
    c->count = s;
    c->most = program->step_max - behind;
    memmove(program->steps + c->most, program->steps + s + of->steps, bytes);
    for (int64_t first = 0; first < N; first += of->columns)
        weights[count++] = add_columns(c, of, first, hr_min(of->columns, N - first));
    if (of->steps == 1) append_row(c, of, weights, count);
    else if (of->emits) append_emits(c, of, weights, count);
    else {
        const int32_t part = append_loss(c, of, weights, count);
        if (of->steps == 3) append_back(c, of, weights, count, part);
    }
    memmove(program->steps + c->count, program->steps + c->most, bytes);
    program->step_count = c->count + behind;
}

hr_status hr_head_cut(hr_program *program, hr_error *err)
{
    cutting c = { .program = program };
    for (int32_t s = 0; s < program->step_count && !c.full; s++) {
        const head found = find_head(program, s);
        if (!found.steps) continue;
        replace_head(&c, s, &found);
        s = c.count - 1;
    }
    hr_program_span_loops(program);
    if (!c.full) return HR_OK;
    return hr_fail(err, HR_FAILURE, "the program has more than %d operations and %d tensors",
                   program->step_max, program->tensor_max);
}
