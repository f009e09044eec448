/* SPDX-License-Identifier: Apache-2.0 */
/* ops/gates/gates.c - builder function, derivative and properties of gated branches. */
#include "ops/gates/gates.h"

#include "ops/gates/gates_build.h"
#include "ops/list.h"

int32_t hr_build_gates(hr_builder *builder, const char *name, int32_t z,
                       const int32_t branches[HR_GATES_MOST], hr_gates_attr attr)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    const int32_t o = hr_build_rows(builder, name, builder->dtype,
                                    (int64_t)attr.H * attr.head_width);
    hr_step *step = hr_build_step(builder, HR_OP_gates, &attr, sizeof attr);
    step->in[0] = z;
    for (int32_t i = 0; i < attr.branches; i++) step->in[1 + i] = branches[i];
    step->out[0] = o;
    return o;
}

static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    const hr_step step = derive->builder->program->steps[index];
    const int32_t d_o = derive->gradient[step.out[0]];
    int32_t gradients[1 + HR_GATES_MOST], addend = HR_NONE;
    if (d_o == HR_NONE) return HR_OK;
    for (int32_t i = 0; i < 1 + HR_GATES_MOST; i++) {
        gradients[i] = step.in[i] == HR_NONE ? HR_NONE
                                             : hr_derive_emit(derive, step.in[i], &addend);
        if (addend != HR_NONE)
            return hr_fail(err, HR_FAILURE, "step %d (gates): a branch may have one reader", index);
    }
    hr_step *made = hr_build_step(derive->builder, HR_OP_gates_bwd, step.attr, HR_ATTR_BYTES);
    made->in[0] = d_o;
    for (int32_t i = 0; i < 1 + HR_GATES_MOST; i++) {
        made->in[1 + i] = step.in[i];
        made->out[i] = gradients[i];
    }
    return HR_OK;
}

const hr_op hr_gates_op = { .name = "gates",
                            .in = "rrrR",
                            .out = "r",
                            .reuse = { 1 << 1 | 1 << 2 | 1 << 3 },
                            .derivative = derivative };

const hr_op hr_gates_bwd_op = { .name = "gates_bwd",
                                .in = "rrrrR",
                                .out = "rrrR",
                                .reuse = { 0, 1 << 2, 1 << 3, 1 << 4 } };
