/* SPDX-License-Identifier: Apache-2.0 */
/* ops/glu/glu.c - builder function, derivative and properties of the gated activation. */
#include "ops/glu/glu.h"

#include "ops/glu/glu_build.h"
#include "ops/list.h"

int32_t hr_build_glu(hr_builder *builder, const char *name, int32_t gate, int32_t up)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    const hr_glu_attr attr = { builder->program->tensors[gate].dims[1] };
    const int32_t y = hr_build_rows(builder, name, builder->dtype, attr.N);
    hr_build_mark(builder, y, HR_INTERMEDIATE_ACTIVATION);
    hr_step *step = hr_build_step(builder, HR_OP_glu, &attr, sizeof attr);
    step->in[0] = gate;
    step->in[1] = up;
    step->out[0] = y;
    return y;
}

/* One step computes both gradients, because both read dy. */
static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    const hr_step step = derive->builder->program->steps[index];
    const int32_t dy = derive->gradient[step.out[0]];
    if (dy == HR_NONE) return HR_OK;
    int32_t gate_addend, up_addend;
    const int32_t dgate = hr_derive_emit(derive, step.in[0], &gate_addend);
    const int32_t dup = hr_derive_emit(derive, step.in[1], &up_addend);
    if (gate_addend != HR_NONE || up_addend != HR_NONE)
        return hr_fail(err, HR_FAILURE,
                       "step %d (glu): a gate and what it lets through may have one reader each",
                       index);
    hr_step *made = hr_build_step(derive->builder, HR_OP_glu_bwd, step.attr, HR_ATTR_BYTES);
    made->in[0] = dy;
    made->in[1] = step.in[0];
    made->in[2] = step.in[1];
    made->out[0] = dgate;
    made->out[1] = dup;
    return HR_OK;
}

const hr_op hr_glu_op = { .name = "glu",
                          .in = "rr",
                          .out = "r",
                          .reuse = { 1 << 0 | 1 << 1 },
                          .derivative = derivative };

const hr_op hr_glu_bwd_op = { .name = "glu_bwd",
                              .in = "rrr",
                              .out = "rr",
                              .reuse = { 1 << 0 | 1 << 1 | 1 << 2, 1 << 0 | 1 << 1 | 1 << 2 } };
