/* SPDX-License-Identifier: Apache-2.0 */
/* ops/activation/activation.c - builder function and properties of the stand-alone activation. */
#include "ops/activation/activation.h"

#include "ops/activation/activation_build.h"
#include "ops/list.h"

int32_t hr_build_activation(hr_builder *builder, const char *name, int32_t x, hr_act act)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    const int64_t N = builder->program->tensors[x].dims[1];
    const hr_linear_attr attr = { .N = N, .T = builder->T, .act = act };
    const int32_t y = hr_build_rows(builder, name, builder->dtype, N);
    hr_step *step = hr_build_step(builder, HR_OP_activation, &attr, sizeof attr);
    step->in[0] = x;
    step->out[0] = y;
    return y;
}

/* The product that reads y applies act' (ops/linear/linear.c), so x has the gradient of y, which
 * `residual` passes on. */
static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    (void)derive, (void)index, (void)err;
    return HR_OK;
}

const hr_op hr_activation_op = { .name = "activation",
                                 .in = "r",
                                 .out = "r",
                                 .reuse = { 1 << 0 },
                                 .residual = 1,
                                 .derivative = derivative };
