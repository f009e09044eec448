/* SPDX-License-Identifier: Apache-2.0 */
/* ops/choose/choose.c - builder function and properties of the choice of blocks. */
#include "ops/choose/choose.h"

#include "ops/choose/choose_build.h"
#include "ops/list.h"

int32_t hr_build_choose(hr_builder *builder, const char *name, int32_t q, int32_t kc, int32_t lse,
                        hr_choose_attr attr)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    attr.T = builder->T;
    attr.q_width = builder->program->tensors[q].dims[1];
    attr.k_width = builder->program->tensors[kc].dims[1];
    const int32_t blocks = hr_build_rows(builder, name, HR_U16, (int64_t)attr.G * attr.count);
    hr_step *step = hr_build_step(builder, HR_OP_choose, &attr, sizeof attr);
    step->in[0] = q;
    step->in[1] = kc;
    step->in[2] = lse;
    step->in[3] = builder->caches ? builder->position : HR_NONE;
    step->out[0] = blocks;
    return blocks;
}

static int64_t flops(const void *of, int64_t rows)
{
    const hr_choose_attr *attr = of;
    return 2 * rows * attr->H * (attr->T / attr->stride / 2 + 1) * attr->head_width;
}

_Static_assert(sizeof(hr_choose_attr) <= HR_ATTR_BYTES, "attributes of a step");

/* A part of a sequence has the compressed keys of all of it. */
static bool has_parts(const void *attr)
{
    (void)attr;
    return true;
}

const hr_op hr_choose_op = { .name = "choose",
                             .in = "rsRW",
                             .out = "r",
                             .has_parts = has_parts,
                             .flops = flops };
