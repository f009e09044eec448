/* SPDX-License-Identifier: Apache-2.0 */
/* ops/penalty/penalty.c - builder functions, derivative and properties. */
#include "ops/penalty/penalty.h"

#include "ops/dropout/dropout_build.h"
#include "ops/list.h"
#include "ops/penalty/penalty_build.h"

void hr_build_penalty(hr_builder *builder, int32_t param, double weight, int32_t scale,
                      int32_t sums, int32_t slot)
{
    const hr_program *program = builder->program;
    const hr_param *of = &program->params[param];
    if (hr_build_status(builder) != HR_OK || of->gradient == HR_NONE) return;
    const int64_t elements = hr_tensor_bytes(&program->tensors[of->gradient]) /
                             (int64_t)sizeof(float);
    const hr_penalty_attr attr = { elements, weight, slot };
    hr_step *step = hr_build_step(builder, HR_OP_penalty, &attr, sizeof attr);
    step->in[0] = of->master;
    step->in[1] = scale;
    step->out[0] = of->gradient;
    step->out[1] = sums;
}

/* Wb is behind Wi, and Wa behind Wb. */
static hr_gram_attr gram_of(const hr_program *program, int32_t a)
{
    const hr_param *wi = &program->params[a], *wb = wi + 1, *wa = wi + 2;
    return (hr_gram_attr){ .K = wa->dims[0],
                           .N = wa->dims[1],
                           .M = wb->dims[1],
                           .R = wa->dims[1] / wi->rule.stack,
                           .layout = program->tensors[wa->weight].layout };
}

void hr_build_gram(hr_builder *builder, int32_t a)
{
    const int32_t run = 0;
    if (hr_build_status(builder) != HR_OK) return;
    hr_param *params = builder->program->params;
    const hr_gram_attr attr = gram_of(builder->program, a);
    const int32_t gram = hr_build_fixed(builder, "gram", HR_ROLE_SUM, HR_F32, HR_ROWS, attr.N,
                                        attr.R, run);
    hr_step *step = hr_build_step(builder, HR_OP_gram, &attr, sizeof attr);
    step->in[0] = params[a + 2].weight;
    step->in[1] = params[a + 1].weight;
    step->out[0] = params[a].lengths = gram;
    hr_build_fixed(builder, "d.gram", HR_ROLE_GRADIENT, HR_F32, HR_ROWS, attr.N, attr.R, run);
}

void hr_build_restrain(hr_builder *builder, int32_t a, int32_t u, int32_t labels, int32_t scale,
                       int32_t sums, hr_restrain_attr attr)
{
    if (hr_build_status(builder) != HR_OK) return;
    const hr_param *first = &builder->program->params[a];
    const int32_t gram = first->lengths;
    attr.R = first->dims[1] / first->rule.stack;
    attr.N = builder->program->tensors[u].dims[1];
    attr.T = builder->T;
    int32_t du = HR_NONE;
    if (builder->training) du = hr_build_rows(builder, "d.restrain", builder->dtype, attr.N);
    hr_step *step = hr_build_step(builder, HR_OP_restrain, &attr, sizeof attr);
    step->in[0] = u;
    step->in[1] = gram;
    step->in[2] = labels;
    step->in[3] = scale;
    step->out[0] = sums;
    step->out[1] = du;
    step->out[2] = builder->training ? gram + 1 : HR_NONE;
}

static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    (void)err;
    const hr_step step = derive->builder->program->steps[index];
    hr_derive_add(derive, step.in[0], step.out[1]);
    return HR_OK;
}

void hr_build_gram_bwd(hr_builder *builder, int32_t a)
{
    const hr_program *program = builder->program;
    hr_gram_attr attr = gram_of(program, a);
    for (int32_t i = 1; i < 3 && hr_build_status(builder) == HR_OK; i++) {
        const hr_param *param = &program->params[a + i];
        if (param->gradient == HR_NONE) continue;
        attr.of_rows = i == 1;
        hr_step *step = hr_build_step(builder, HR_OP_gram_bwd, &attr, sizeof attr);
        step->in[0] = param->weight;
        step->in[1] = program->params[a].lengths + 1;
        step->out[0] = param->gradient;
    }
}

const hr_op hr_penalty_op = { .name = "penalty", .in = "ww", .out = "uu" };

const hr_op hr_gram_op = { .name = "gram", .in = "ww", .out = "w" };

const hr_op hr_gram_bwd_op = { .name = "gram_bwd", .in = "ww", .out = "u" };

const hr_op hr_restrain_op = { .name = "restrain",
                               .in = "rwrW",
                               .out = "aRA",
                               .derivative = derivative };
