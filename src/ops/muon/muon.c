/* SPDX-License-Identifier: Apache-2.0 */
/* ops/muon/muon.c - builder function and properties of Muon's update. It needs the whole matrix, so
 * it cannot be split, and its states are in memory. */
#include "ops/muon/muon.h"

#include <math.h>

#include "base/checked.h"
#include "ops/list.h"
#include "ops/muon/muon_build.h"
#include "ops/update/update_build.h"

void hr_build_muon(hr_builder *builder, int32_t index, hr_muon_attr attr, hr_muon_scale scale,
                   int32_t scales, int32_t norm_scale, int32_t lr)
{
    const hr_param *param = &builder->program->params[index];
    const double inputs = (double)param->dims[0], outputs = (double)param->dims[1];
    hr_step *step = hr_build_update(builder, index, HR_OP_muon, attr.update, 1, scales, norm_scale,
                                    lr);
    if (!step) return;
    attr.update = *(const hr_update_attr *)step->attr;
    attr.shape = scale == HR_MUON_ORIGINAL ? sqrt(fmax(1, outputs / inputs))
                                           : 0.2 * sqrt(fmax(outputs, inputs));
    attr.K = param->dims[0];
    attr.N = param->dims[1];
    attr.layout = builder->program->tensors[param->gradient].layout;
    _Static_assert(sizeof attr <= HR_ATTR_BYTES, "the attributes of a step");
    *(hr_muon_attr *)step->attr = attr;
}

static int64_t flops(const void *attr, int64_t rows)
{
    const hr_muon_attr *muon = attr;
    const int64_t M = hr_min(muon->K, muon->N), L = hr_max(muon->K, muon->N);
    (void)rows;
    return muon->steps * (4 * M * M * L + 2 * M * M * M);
}

const hr_op hr_muon_op = { .name = "muon", .in = "wWw", .out = "uuWuu", .flops = flops };
