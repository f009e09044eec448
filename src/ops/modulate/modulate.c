/* SPDX-License-Identifier: Apache-2.0 */
/* ops/modulate/modulate.c - builder function, derivative and properties. */
#include "ops/modulate/modulate.h"

#include "ops/list.h"
#include "ops/modulate/modulate_build.h"

int32_t hr_build_modulate(hr_builder *builder, const char *name, int32_t u, int32_t p,
                          hr_modulate_form form, int64_t R, double scale)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    const int64_t N = builder->program->tensors[u].dims[1];
    const hr_modulate_attr attr = { N, R, form, (float)scale };
    const int32_t y = hr_build_rows(builder, name, builder->dtype, N);
    hr_step *step = hr_build_step(builder, HR_OP_modulate, &attr, sizeof attr);
    step->in[0] = u;
    step->in[1] = p;
    step->out[0] = y;
    return y;
}

/* One step computes both gradients, because both read dy. */
static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    const hr_step step = derive->builder->program->steps[index];
    const int32_t dy = derive->gradient[step.out[0]];
    if (dy == HR_NONE) return HR_OK;
    int32_t u_addend, p_addend;
    const int32_t du = hr_derive_emit(derive, step.in[0], &u_addend);
    const int32_t dp = hr_derive_emit(derive, step.in[1], &p_addend);
    if (u_addend != HR_NONE || p_addend != HR_NONE)
        return hr_fail(err, HR_FAILURE,
                       "step %d (modulate): its projections may have one reader each", index);
    hr_step *made = hr_build_step(derive->builder, HR_OP_modulate_bwd, step.attr, HR_ATTR_BYTES);
    made->in[0] = dy;
    made->in[1] = step.in[0];
    made->in[2] = step.in[1];
    made->out[0] = du;
    made->out[1] = dp;
    return HR_OK;
}

const hr_op hr_modulate_op = { .name = "modulate",
                               .in = "rr",
                               .out = "r",
                               .reuse = { 1 << 0 | 1 << 1 },
                               .derivative = derivative };

const hr_op hr_modulate_bwd_op = { .name = "modulate_bwd",
                                   .in = "rrr",
                                   .out = "rr",
                                   .reuse = { 1 << 0 | 1 << 1 | 1 << 2,
                                              1 << 0 | 1 << 1 | 1 << 2 } };
