/* SPDX-License-Identifier: Apache-2.0 */
/* graph/derivative.c - the backward steps of a range of forward steps, emitted in reverse.
 *
 * Gradients of token rows are written once: a step that adds to a gradient collected earlier takes
 * it as an addend, and the plan decides whether the sum may overwrite it. At a residual connection,
 * the input shares the gradient of the sum, and no step is emitted. */
#include <stdio.h>

#include "base/assert.h"
#include "graph/builder.h"

static const hr_op *op_of(const hr_derive *derive, int32_t step)
{
    const hr_program *program = derive->builder->program;
    return hr_step_op(program, &program->steps[step]);
}

/* Returns the row operand that the step adds to its output unchanged (the residual). */
static int32_t residual_of(const hr_derive *derive, int32_t step)
{
    const uint8_t residual = op_of(derive, step)->residual;
    return residual ? derive->builder->program->steps[step].in[residual - 1] : HR_NONE;
}

/* Passes the gradient of a step's output to its residual, and further along residuals that have no
 * other use, so that later steps find it as their addend. */
static bool share(hr_derive *derive, int32_t step)
{
    const hr_program *program = derive->builder->program;
    if (derive->gradient[program->steps[step].out[0]] == HR_NONE) return true; /* none to pass on */
    while (!derive->shared[step]) {
        const int32_t residual = residual_of(derive, step);
        derive->shared[step] = true;
        if (residual == HR_NONE) return true;
        if (derive->gradient[residual] != HR_NONE) return false;
        derive->gradient[residual] = derive->gradient[program->steps[step].out[0]];
        if (derive->uses[residual] != 1 || !hr_derive_wants(derive, residual)) return true;
        step = derive->producer[residual];
    }
    return true;
}

/* Returns true when the step needs backward steps: it depends on a trainable parameter, or it is in
 * the lowest layer that has one. That layer gets its complete backward pass, so that it has the
 * same steps as the layers above. */
static bool is_reached(const hr_derive *derive, const hr_step *step)
{
    const hr_param *params = derive->builder->program->params;
    if (step->layer != HR_NONE && step->layer == derive->lowest) return true;
    for (int32_t i = 0; i < HR_IN_MAX; i++) {
        const int32_t in = step->in[i];
        if (hr_derive_wants(derive, in)) return true;
        if (in != HR_NONE && derive->param[in] != HR_NONE && !params[derive->param[in]].rule.frozen)
            return true;
    }
    return false;
}

static void note_producers(hr_derive *derive, int32_t first, int32_t last)
{
    const hr_program *program = derive->builder->program;
    for (int32_t s = first; s <= last; s++) {
        const hr_step *step = &program->steps[s];
        if (!op_of(derive, s)->derivative || !is_reached(derive, step)) continue;
        for (int32_t i = 0; i < HR_OUT_MAX; i++)
            if (step->out[i] != HR_NONE) derive->producer[step->out[i]] = s;
    }
}

/* Finds the lowest layer that needs backward steps, before the rule about that layer applies. */
static int32_t find_lowest(const hr_derive *derive, int32_t first, int32_t last)
{
    const hr_program *program = derive->builder->program;
    for (int32_t s = first; s <= last; s++)
        if (program->steps[s].layer != HR_NONE && op_of(derive, s)->derivative &&
            is_reached(derive, &program->steps[s]))
            return program->steps[s].layer;
    return HR_NONE;
}

static void survey(hr_derive *derive, int32_t first, int32_t last)
{
    const hr_program *program = derive->builder->program;
    for (int32_t t = 0; t < program->tensor_max; t++) {
        derive->gradient[t] = derive->producer[t] = derive->param[t] = HR_NONE;
        derive->uses[t] = 0;
    }
    for (int32_t p = 0; p < program->param_count; p++) derive->param[program->params[p].weight] = p;
    for (int32_t s = first; s <= last; s++)
        for (int32_t i = 0; i < HR_IN_MAX; i++)
            if (program->steps[s].in[i] != HR_NONE) derive->uses[program->steps[s].in[i]]++;
    derive->lowest = HR_NONE;
    note_producers(derive, first, last);
    if (derive->builder->alone) return;
    derive->lowest = find_lowest(derive, first, last);
    note_producers(derive, first, last); /* again: now with all steps of the lowest layer */
}

hr_status hr_build_derivative(hr_builder *builder, int32_t first, int32_t last, hr_region *scratch,
                              hr_error *err)
{
    hr_program *program = builder->program;
    const int64_t kept = scratch->used, most = program->tensor_max;
    hr_derive derive = { .builder = builder,
                         .gradient = hr_region_take(scratch, most, sizeof(int32_t)),
                         .producer = hr_region_take(scratch, most, sizeof(int32_t)),
                         .uses = hr_region_take(scratch, most, sizeof(int32_t)),
                         .param = hr_region_take(scratch, most, sizeof(int32_t)),
                         .shared = hr_region_take(scratch, program->step_max, sizeof(bool)) };
    const int16_t layer = builder->layer;
    const uint8_t block = builder->block;
    hr_status status = hr_build_status(builder);

    if (!derive.gradient || !derive.producer || !derive.uses || !derive.param || !derive.shared)
        status = hr_fail(err, HR_FAILURE, "the derivative needs %lld bytes more for its tables",
                         (long long)(4 * most * (int64_t)sizeof(int32_t) + program->step_max));
    if (status == HR_OK) survey(&derive, first, last);
    builder->direction = HR_DIR_BACKWARD;
    for (int32_t s = last; s >= first && status == HR_OK; s--) {
        const hr_step *step = &program->steps[s];
        const hr_op *op = op_of(&derive, s);
        if (!op->derivative || !is_reached(&derive, step)) continue;
        builder->layer = step->layer;
        builder->block = step->block;
        if (!share(&derive, s))
            return hr_fail(err, HR_FAILURE,
                           "step %d (%s): the gradient of its residual would need an addition", s,
                           op->name);
        status = op->derivative(&derive, s, err);
        if (status == HR_OK) status = hr_build_status(builder);
    }
    builder->direction = HR_DIR_NONE;
    builder->layer = layer;
    builder->block = block;
    scratch->used = kept;
    return status;
}

bool hr_derive_wants(const hr_derive *derive, int32_t tensor)
{
    return tensor != HR_NONE && derive->producer[tensor] != HR_NONE;
}

int32_t hr_derive_emit(hr_derive *derive, int32_t tensor, int32_t *addend)
{
    hr_builder *builder = derive->builder;
    const hr_tensor *value = &builder->program->tensors[tensor];
    char name[HR_TENSOR_NAME_BYTES];
    snprintf(name, sizeof name, "d.%.60s", value->name);
    *addend = derive->gradient[tensor];
    const int32_t made = hr_build_rows(builder, name, (hr_dtype)value->dtype, value->dims[1]);
    if (made != HR_NONE) builder->program->tensors[made].layer = value->layer;
    derive->gradient[tensor] = made;
    return made;
}

void hr_derive_set(hr_derive *derive, int32_t tensor, int32_t gradient)
{
    HR_ASSERT(derive->gradient[tensor] == HR_NONE);
    derive->gradient[tensor] = gradient;
}

int32_t hr_derive_param(hr_derive *derive, int32_t weight)
{
    if (weight == HR_NONE) return HR_NONE;
    const int32_t p = derive->param[weight];
    HR_ASSERT(p != HR_NONE); /* every weight is in the table of parameters */
    hr_param *param = &derive->builder->program->params[p];
    if (param->rule.frozen) return HR_NONE;
    const bool again = param->gradient != HR_NONE;
    int32_t *sum = again ? &param->gradient_again : &param->gradient;
    HR_ASSERT(*sum == HR_NONE);
    return *sum = hr_build_like_weight(derive->builder, p, again ? "grad 2" : "grad",
                                       HR_ROLE_GRADIENT, 0);
}

int32_t hr_derive_sum(const hr_derive *derive, int32_t weight)
{
    return derive->builder->program->params[derive->param[weight]].gradient;
}
