/* SPDX-License-Identifier: Apache-2.0 */
/* ops/match/match.c - builder function, derivative and properties. The forward step also writes the
 * gradient, so that y and t need not be kept. */
#include "ops/match/match.h"

#include "ops/dropout/dropout_build.h"
#include "ops/list.h"
#include "ops/match/match_build.h"

void hr_build_match(hr_builder *builder, int32_t y, int32_t t, int32_t labels, int32_t scale,
                    int32_t sums, hr_match_attr attr)
{
    if (hr_build_status(builder) != HR_OK) return;
    int32_t gradient = HR_NONE;
    attr.D = builder->program->tensors[y].dims[1];
    if (builder->training) gradient = hr_build_rows(builder, "d.match", builder->dtype, attr.D);
    hr_step *step = hr_build_step(builder, HR_OP_match, &attr, sizeof attr);
    step->in[0] = y;
    step->in[1] = t;
    step->in[2] = labels;
    step->in[3] = scale;
    step->out[0] = sums;
    step->out[1] = gradient;
}

static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    (void)err;
    const hr_step step = derive->builder->program->steps[index];
    hr_derive_add(derive, step.in[0], step.out[1]);
    return HR_OK;
}

const hr_op hr_match_op = { .name = "match",
                            .in = "rrrW",
                            .out = "aR",
                            .reuse = { 0, 1 << 0 | 1 << 1 },
                            .derivative = derivative };
