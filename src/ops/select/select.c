/* SPDX-License-Identifier: Apache-2.0 */
/* ops/select/select.c - builder function, derivative and properties. */
#include "ops/select/select.h"

#include "ops/list.h"
#include "ops/select/select_build.h"

int32_t hr_build_select(hr_builder *builder, const char *name, int32_t y, int32_t t,
                        hr_select_attr attr)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    attr.D = builder->program->tensors[y].dims[1];
    attr.T = builder->T;
    attr.site = builder->site++;
    const int32_t made = hr_build_rows(builder, name, builder->dtype, attr.D);
    hr_step *step = hr_build_step(builder, HR_OP_select, &attr, sizeof attr);
    step->in[0] = y;
    step->in[1] = t;
    step->out[0] = made;
    return made;
}

static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    const hr_step step = derive->builder->program->steps[index];
    const int32_t gradient = derive->gradient[step.out[0]];
    int32_t addend;
    if (gradient == HR_NONE || !hr_derive_wants(derive, step.in[0])) return HR_OK;
    const int32_t dy = hr_derive_emit(derive, step.in[0], &addend);
    if (addend != HR_NONE)
        return hr_fail(err, HR_FAILURE, "step %d (select): no later step may read its rows", index);
    hr_step *made = hr_build_step(derive->builder, HR_OP_select, step.attr, HR_ATTR_BYTES);
    made->in[0] = gradient;
    made->out[0] = dy;
    return HR_OK;
}

_Static_assert(sizeof(hr_select_attr) <= HR_ATTR_BYTES, "attributes of a step");

const hr_op hr_select_op = { .name = "select",
                             .in = "rR",
                             .out = "r",
                             .reuse = { 1 << 0 | 1 << 1 },
                             .derivative = derivative };
