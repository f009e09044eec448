/* SPDX-License-Identifier: Apache-2.0 */
/* ops/gates/gates.c - builder function, derivative and properties of gated branches. */
#include "ops/gates/gates.h"

#include "ops/gates/gates_build.h"
#include "ops/list.h"

int32_t hr_build_gates(hr_builder *builder, const char *name, int32_t z, const int32_t *x,
                       hr_gates_attr attr)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    const int32_t o = hr_build_rows(builder, name, builder->dtype,
                                    (int64_t)attr.H * attr.head_width);
    hr_step *step = hr_build_step(builder, HR_OP_gates, &attr, sizeof attr);
    step->in[0] = z;
    for (int32_t b = 0; b < attr.branches; b++) step->in[HR_GATES_X + b] = x[b];
    step->out[0] = o;
    return o;
}

/* The gradient of a branch is that of the sum: attention_bwd has the gate in its probabilities. */
static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    hr_builder *builder = derive->builder;
    const hr_step step = builder->program->steps[index];
    const hr_gates_attr *attr = (const hr_gates_attr *)step.attr;
    const int32_t d_o = derive->gradient[step.out[0]];
    int32_t addend = HR_NONE;
    if (d_o == HR_NONE) return HR_OK;
    const int32_t dz = hr_derive_emit(derive, step.in[0], &addend);
    if (addend != HR_NONE)
        return hr_fail(err, HR_FAILURE, "step %d (gates): gates may have one reader", index);
    hr_step *made = hr_build_step(builder, HR_OP_gates_bwd, attr, sizeof *attr);
    made->in[0] = d_o;
    made->in[1] = step.in[0];
    made->out[0] = dz;
    for (int32_t b = 0; b < attr->branches; b++) {
        const int32_t x = step.in[HR_GATES_X + b];
        const hr_step *attention = &builder->program->steps[derive->producer[x]];
        made->in[HR_GATES_BWD_X + b] = x;
        made->in[HR_GATES_LSE + b] = attention->out[1];
        made->out[HR_GATES_SHIFTED + b] = hr_build_rows(builder, "lse - log gate", HR_F32, attr->H);
        made->out[HR_GATES_DOTS + b] = hr_build_rows(builder, "gradient times value", HR_F32,
                                                     attr->H);
        hr_derive_set(derive, x, d_o);
    }
    return HR_OK;
}

const hr_op hr_gates_op = { .name = "gates",
                            .in = "rrrR",
                            .out = "r",
                            .reuse = { 1 << 1 | 1 << 2 | 1 << 3 },
                            .derivative = derivative };

const hr_op hr_gates_bwd_op = { .name = "gates_bwd",
                                .in = "rrrrRrrR",
                                .out = "rrrRrrR",
                                .reuse = { 1 << 1, 1 << 5, 1 << 6, 1 << 7 } };
