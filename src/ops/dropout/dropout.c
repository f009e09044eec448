/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dropout/dropout.c - builder function, derivative and properties of dropout. */
#include "ops/dropout/dropout.h"

#include "ops/dropout/dropout_build.h"
#include "ops/list.h"

int32_t hr_build_dropout(hr_builder *builder, const char *name, int32_t x, int32_t residual,
                         double p, double scale)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    const int64_t D = builder->program->tensors[x].dims[1];
    const uint32_t site = p > 0 ? builder->site++ : 0;
    const hr_dropout_attr attr = { D, builder->T, (float)p, site, (float)scale };
    const int32_t y = hr_build_rows(builder, name, builder->dtype, D);
    hr_step *step = hr_build_step(builder, HR_OP_dropout, &attr, sizeof attr);
    step->in[0] = x;
    step->in[1] = residual;
    step->out[0] = y;
    return y;
}

/* dx applies the same mask and scale to dy. */
static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    const hr_step step = derive->builder->program->steps[index];
    const int32_t dy = derive->gradient[step.out[0]];
    (void)err;
    if (dy == HR_NONE || !hr_derive_wants(derive, step.in[0])) return HR_OK;
    int32_t addend;
    const int32_t dx = hr_derive_emit(derive, step.in[0], &addend);
    hr_step *made = hr_build_step(derive->builder, HR_OP_dropout, step.attr, HR_ATTR_BYTES);
    made->in[0] = dy;
    made->in[1] = addend;
    made->out[0] = dx;
    return HR_OK;
}

void hr_derive_add(hr_derive *derive, int32_t tensor, int32_t gradient)
{
    int32_t addend;
    if (!hr_derive_wants(derive, tensor)) return;
    if (derive->gradient[tensor] == HR_NONE) {
        hr_derive_set(derive, tensor, gradient);
        return;
    }
    const hr_dropout_attr attr = { .D = derive->builder->program->tensors[tensor].dims[1],
                                   .T = derive->builder->T,
                                   .scale = 1 };
    const int32_t sum = hr_derive_emit(derive, tensor, &addend);
    hr_step *made = hr_build_step(derive->builder, HR_OP_dropout, &attr, sizeof attr);
    made->in[0] = gradient;
    made->in[1] = addend;
    made->out[0] = sum;
}

const hr_op hr_dropout_op = { .name = "dropout",
                              .in = "rR",
                              .out = "r",
                              .reuse = { 1 << 0 | 1 << 1 },
                              .residual = 2,
                              .derivative = derivative };
