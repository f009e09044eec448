/* SPDX-License-Identifier: Apache-2.0 */
/* ops/adafactor/adafactor.c - builder function and properties of Adafactor's update. It needs the
 * whole matrix, so it cannot be split, and its states are in memory. */
#include "ops/adafactor/adafactor.h"

#include "ops/adafactor/adafactor_build.h"
#include "ops/list.h"

void hr_build_adafactor(hr_builder *builder, int32_t index, hr_adafactor_attr attr,
                        int32_t norm_scale, int32_t lr)
{
    const hr_param *param = &builder->program->params[index];
    if (hr_build_status(builder) != HR_OK || param->gradient == HR_NONE) return;
    const bool vector = param->dims[1] == 0;
    attr.K = vector ? 1 : param->dims[0];
    attr.N = vector ? param->dims[0] : param->dims[1];
    attr.layout = builder->program->tensors[param->gradient].layout;
    attr.decay = param->rule.decay;
    attr.lr_scale = param->rule.lr_scale;
    hr_step *step = hr_build_step(builder, HR_OP_adafactor, &attr, sizeof attr);
    step->in[0] = param->gradient;
    step->in[1] = norm_scale;
    step->in[2] = lr;
    step->out[0] = param->master;
    step->out[1] = param->states[vector ? HR_ADAFACTOR_COLUMNS : HR_ADAFACTOR_ROWS];
    step->out[2] = param->states[vector ? HR_ADAFACTOR_ROWS : HR_ADAFACTOR_COLUMNS];
    if (attr.beta1 > 0) step->out[3] = param->states[HR_ADAFACTOR_MOMENT];
    if (param->weight != param->master) step->out[4] = param->weight;
}

const hr_op hr_adafactor_op = { .name = "adafactor", .in = "wWw", .out = "uuuUW" };
