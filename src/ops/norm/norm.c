/* SPDX-License-Identifier: Apache-2.0 */
/* ops/norm/norm.c - builder functions, derivative and properties of LayerNorm and RMSNorm. */
#include "ops/norm/norm.h"

#include "base/assert.h"
#include "ops/list.h"
#include "ops/norm/norm_build.h"

static int32_t build(hr_builder *builder, const char *name, int32_t x, int32_t gain, int32_t bias,
                     double eps, bool centered)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    const hr_tensor *tensors = builder->program->tensors;
    const int64_t width = tensors[x].dims[1], D = tensors[gain].dims[0];
    HR_ASSERT(D > 0 && width % D == 0); /* families reject other head widths */
    const hr_norm_attr attr = { D, width / D, builder->T, (float)eps, centered };
    const int32_t y = hr_build_rows(builder, name, builder->dtype, width);
    if (attr.groups == 1) hr_build_mark(builder, y, HR_INTERMEDIATE_NORM);
    const int64_t stats = attr.groups * hr_norm_stats(&attr);
    const int32_t stat = builder->training ? hr_build_rows(builder, "stat", HR_F32, stats)
                                           : HR_NONE;
    hr_step *step = hr_build_step(builder, HR_OP_norm, &attr, sizeof attr);
    step->in[0] = x;
    step->in[1] = gain;
    step->in[2] = bias;
    step->out[0] = y;
    step->out[1] = stat;
    return y;
}

int32_t hr_build_norm(hr_builder *builder, const char *name, int32_t x, int32_t gain, int32_t bias,
                      double eps)
{
    return build(builder, name, x, gain, bias, eps, true);
}

int32_t hr_build_rms_norm(hr_builder *builder, const char *name, int32_t x, int32_t gain,
                          double eps)
{
    return build(builder, name, x, gain, HR_NONE, eps, false);
}

static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    (void)err;
    const hr_step step = derive->builder->program->steps[index];
    const int32_t dy = derive->gradient[step.out[0]];
    if (dy == HR_NONE) return HR_OK;
    int32_t addend;
    const int32_t dgain = hr_derive_param(derive, step.in[1]);
    const int32_t dbias = hr_derive_param(derive, step.in[2]);
    const int32_t dx = hr_derive_emit(derive, step.in[0], &addend);
    hr_step *made = hr_build_step(derive->builder, HR_OP_norm_bwd, step.attr, HR_ATTR_BYTES);
    made->in[0] = dy;
    made->in[1] = step.in[0];
    made->in[2] = step.out[1];
    made->in[3] = step.in[1];
    made->in[4] = addend;
    made->out[0] = dx;
    made->out[1] = dgain;
    made->out[2] = dbias;
    return HR_OK;
}

const hr_op hr_norm_op = { .name = "norm",
                           .in = "rwW",
                           .out = "rR",
                           .reuse = { 1 << 0 },
                           .derivative = derivative };

const hr_op hr_norm_bwd_op = { .name = "norm_bwd",
                               .in = "rrrwR",
                               .out = "rAA",
                               .reuse = { 1 << 0 | 1 << 1 | 1 << 4 } };
