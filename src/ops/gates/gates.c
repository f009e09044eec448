/* SPDX-License-Identifier: Apache-2.0 */
/* ops/gates/gates.c - builder function, derivative and properties of a gated branch. */
#include "ops/gates/gates.h"

#include "ops/gates/gates_build.h"
#include "ops/list.h"

int32_t hr_build_gates(hr_builder *builder, const char *name, int32_t z, int32_t x,
                       int32_t residual, hr_gates_attr attr)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    const int32_t o = hr_build_rows(builder, name, builder->dtype,
                                    (int64_t)attr.H * attr.head_width);
    hr_step *step = hr_build_step(builder, HR_OP_gates, &attr, sizeof attr);
    step->in[0] = z;
    step->in[1] = x;
    step->in[2] = residual;
    step->out[0] = o;
    return o;
}

static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    const hr_step step = derive->builder->program->steps[index];
    const int32_t d_o = derive->gradient[step.out[0]];
    int32_t addend = HR_NONE, other = HR_NONE;
    if (d_o == HR_NONE) return HR_OK;
    const int32_t dz = hr_derive_emit(derive, step.in[0], &addend);
    const int32_t dx = hr_derive_emit(derive, step.in[1], &other);
    if (other != HR_NONE)
        return hr_fail(err, HR_FAILURE, "step %d (gates): a branch may have one reader", index);
    const int64_t heads = ((const hr_gates_attr *)step.attr)->H;
    const int32_t dots = hr_build_rows(derive->builder, "gradient times value", HR_F32, heads);
    hr_step *made = hr_build_step(derive->builder, HR_OP_gates_bwd, step.attr, HR_ATTR_BYTES);
    made->in[0] = d_o;
    made->in[1] = step.in[0];
    made->in[2] = step.in[1];
    made->in[3] = addend;
    made->out[0] = dz;
    made->out[1] = dx;
    made->out[2] = dots;
    return HR_OK;
}

const hr_op hr_gates_op = { .name = "gates",
                            .in = "rrR",
                            .out = "r",
                            .reuse = { 1 << 1 | 1 << 2 },
                            .residual = 3,
                            .derivative = derivative };

const hr_op hr_gates_bwd_op = { .name = "gates_bwd",
                                .in = "rrrR",
                                .out = "rrR",
                                .reuse = { 1 << 3, 1 << 2 } };
