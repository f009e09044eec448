/* SPDX-License-Identifier: Apache-2.0 */
/* ops/magnitude/magnitude.c - builder functions, derivative and properties. */
#include "ops/magnitude/magnitude.h"

#include "ops/list.h"
#include "ops/magnitude/magnitude_build.h"

void hr_build_lengths(hr_builder *builder, bool first)
{
    const hr_program *program = builder->program;
    const int32_t average = hr_program_average(program);
    for (int32_t p = 0; p < program->param_count && builder->status == HR_OK; p++) {
        const hr_param *param = &program->params[p];
        if (param->lengths == HR_NONE || param->adapter == HR_NONE) continue;
        const hr_param *a = &program->params[param->adapter], *b = a + 1, *m = a + 2;
        const hr_length_attr attr = { .K = param->dims[0],
                                      .N = param->dims[1],
                                      .R = a->dims[1],
                                      .scale = a->adapter_scale,
                                      .layout = program->tensors[a->weight].layout };
        builder->layer = program->tensors[param->weight].layer;
        hr_step *step = hr_build_step(builder, HR_OP_length, &attr, sizeof attr);
        step->in[0] = param->weight;
        step->in[1] = a->weight;
        step->in[2] = b->weight;
        step->out[!first] = param->lengths;
        if (!first) continue;
        step->out[2] = m->weight;
        if (average != HR_NONE) step->out[3] = m->states[average];
    }
    builder->layer = HR_NONE;
}

int32_t hr_build_magnitude(hr_builder *builder, const char *name, int32_t x, int32_t of,
                           int32_t bias, int32_t residual)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    const hr_program *program = builder->program;
    const hr_param *param = &program->params[of];
    const hr_magnitude_attr attr = { .N = param->dims[1], .T = builder->T };
    const int32_t y = hr_build_rows(builder, name, builder->dtype, attr.N);
    hr_step *step = hr_build_step(builder, HR_OP_magnitude, &attr, sizeof attr);
    step->in[0] = x;
    step->in[1] = program->params[param->adapter + 2].weight;
    step->in[2] = param->lengths;
    step->in[3] = bias;
    step->in[4] = residual;
    step->out[0] = y;
    return y;
}

static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    (void)err;
    const hr_step step = derive->builder->program->steps[index];
    const int32_t dy = derive->gradient[step.out[0]];
    if (dy == HR_NONE) return HR_OK;
    int32_t addend;
    const int32_t dm = hr_derive_param(derive, step.in[1]);
    const int32_t dx = hr_derive_emit(derive, step.in[0], &addend);
    hr_step *made = hr_build_step(derive->builder, HR_OP_magnitude_bwd, step.attr, HR_ATTR_BYTES);
    made->in[0] = dy;
    made->in[1] = step.in[0];
    made->in[2] = step.in[1];
    made->in[3] = step.in[2];
    made->in[4] = addend;
    made->out[0] = dx;
    made->out[1] = dm;
    return HR_OK;
}

const hr_op hr_length_op = { .name = "length", .in = "www", .out = "WUUU" };

const hr_op hr_magnitude_op = { .name = "magnitude",
                                .in = "rwwWR",
                                .out = "r",
                                .reuse = { 1 << 0 | 1 << 4 },
                                .residual = 5,
                                .derivative = derivative };

const hr_op hr_magnitude_bwd_op = { .name = "magnitude_bwd",
                                    .in = "rrwwR",
                                    .out = "rA",
                                    .reuse = { 1 << 0 | 1 << 1 | 1 << 4 } };
