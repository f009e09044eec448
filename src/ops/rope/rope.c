/* SPDX-License-Identifier: Apache-2.0 */
/* ops/rope/rope.c - builder functions, derivative and properties of RoPE. */
#include "ops/rope/rope.h"

#include "ops/list.h"
#include "ops/rope/rope_build.h"

int32_t hr_build_rope_table(hr_builder *builder, int64_t T, int32_t rotary, double theta,
                            hr_rope_scaling scaling)
{
    const hr_rope_attr attr = { .T = T,
                                .rotary = rotary,
                                .theta = theta,
                                .split = T >= HR_ROPE_SPLIT_FROM && rotary <= HR_ROPE_ROTARY_MAX,
                                .scaling = scaling };
    const int64_t doubles = hr_rope_split_rows(T);
    const int32_t table = hr_build_fixed(builder, "rotary angles", HR_ROLE_TABLE, HR_F32, HR_ROWS,
                                         attr.split ? 2 * doubles : T, rotary, HR_NONE);
    hr_step *step = hr_build_step(builder, HR_OP_rope_table, &attr, sizeof attr);
    step->out[0] = table;
    builder->splits_rope = attr.split;
    return table;
}

int32_t hr_build_rope(hr_builder *builder, const char *name, int32_t x, int32_t table,
                      hr_rope_attr attr)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    attr.width = builder->program->tensors[x].dims[1];
    attr.T = builder->T;
    attr.split = builder->splits_rope;
    const int32_t y = hr_build_rows(builder, name, builder->dtype, attr.width);
    hr_step *step = hr_build_step(builder, HR_OP_rope, &attr, sizeof attr);
    step->in[0] = x;
    step->in[1] = table;
    step->in[2] = builder->caches ? builder->position : HR_NONE;
    step->in[3] = builder->separate ? builder->begins : HR_NONE;
    step->out[0] = y;
    return y;
}

/* The gradient of a rotation is the inverse rotation. */
static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    const hr_step step = derive->builder->program->steps[index];
    const int32_t dy = derive->gradient[step.out[0]];
    if (dy == HR_NONE) return HR_OK;
    hr_rope_attr attr = *(const hr_rope_attr *)step.attr;
    attr.inverse = !attr.inverse;
    int32_t addend;
    const int32_t dx = hr_derive_emit(derive, step.in[0], &addend);
    if (addend != HR_NONE)
        return hr_fail(err, HR_FAILURE, "step %d (rope): what is rotated may have one reader",
                       index);
    hr_step *made = hr_build_step(derive->builder, HR_OP_rope, &attr, sizeof attr);
    made->in[0] = dy;
    made->in[1] = step.in[1];
    made->in[2] = step.in[2];
    made->in[3] = step.in[3];
    made->out[0] = dx;
    return HR_OK;
}

const hr_op hr_rope_table_op = { .name = "rope_table", .in = "", .out = "w" };

const hr_op hr_rope_op = { .name = "rope",
                           .in = "rwWR",
                           .out = "r",
                           .reuse = { 1 << 0 },
                           .derivative = derivative };
