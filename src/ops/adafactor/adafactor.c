/* SPDX-License-Identifier: Apache-2.0 */
/* ops/adafactor/adafactor.c - builder function and properties of Adafactor's update. It needs the
 * whole matrix, so it cannot be split, and its states are in memory. */
#include "ops/adafactor/adafactor.h"

#include "ops/adafactor/adafactor_build.h"
#include "ops/list.h"
#include "ops/update/update_build.h"

void hr_build_adafactor(hr_builder *builder, int32_t index, hr_adafactor_attr attr,
                        int32_t norm_scale, int32_t lr)
{
    const hr_param *param = &builder->program->params[index];
    const bool vector = param->dims[1] == 0;
    hr_step *step = hr_build_update(builder, index, HR_OP_adafactor, attr.update, 0, 0, norm_scale,
                                    lr);
    if (!step) return;
    const int32_t weight = step->out[1], residual = step->out[2];
    attr.update = *(const hr_update_attr *)step->attr;
    attr.K = vector ? 1 : param->dims[0];
    attr.N = vector ? param->dims[0] : param->dims[1];
    attr.layout = builder->program->tensors[param->gradient].layout;
    _Static_assert(sizeof attr <= HR_ATTR_BYTES, "the attributes of a step");
    *(hr_adafactor_attr *)step->attr = attr;
    step->out[1] = param->states[vector ? HR_ADAFACTOR_COLUMNS : HR_ADAFACTOR_ROWS];
    step->out[2] = param->states[vector ? HR_ADAFACTOR_ROWS : HR_ADAFACTOR_COLUMNS];
    if (attr.update.beta1 > 0) step->out[3] = param->states[HR_ADAFACTOR_MOMENT];
    step->out[4] = weight;
    step->out[5] = residual;
}

const hr_op hr_adafactor_op = { .name = "adafactor", .in = "wWw", .out = "uuuUWu" };
