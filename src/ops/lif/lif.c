/* SPDX-License-Identifier: Apache-2.0 */
/* ops/lif/lif.c - builder function, derivative and properties of leaky integrate-and-fire
 * neurons. */
#include "ops/lif/lif.h"

#include "ops/lif/lif_build.h"
#include "ops/list.h"

enum { U, X, W };        /* inputs of lif */
enum { Y, STATE };       /* outputs of lif */
enum { DY = 0 };         /* inputs of lif_bwd (U and W at 1 and 2) */
enum { DU = 0, DW = 1 }; /* outputs of lif_bwd */

int32_t hr_build_lif(hr_builder *builder, const char *name, int32_t u, int32_t x, int32_t w,
                     hr_lif_attr attr)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    attr.C = builder->program->tensors[u].dims[1];
    attr.T = builder->T;
    const int32_t y = hr_build_rows(builder, name, builder->dtype, attr.C);
    hr_step *step = hr_build_step(builder, HR_OP_lif, &attr, sizeof attr);
    step->in[U] = u;
    step->in[X] = x;
    step->in[W] = w;
    step->out[Y] = y;
    step->out[STATE] = builder->caches ? builder->caches[builder->layer][0] : HR_NONE;
    return y;
}

/* dx is dy, so only u and w need new gradients. */
static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    const hr_step step = derive->builder->program->steps[index];
    const int32_t dy = derive->gradient[step.out[Y]];
    if (dy == HR_NONE) return HR_OK;
    int32_t addend;
    const int32_t dw = hr_derive_param(derive, step.in[W]);
    const int32_t du = hr_derive_emit(derive, step.in[U], &addend);
    if (addend != HR_NONE)
        return hr_fail(err, HR_FAILURE, "step %d (lif): what neurons integrate may have one reader",
                       index);
    hr_step *made = hr_build_step(derive->builder, HR_OP_lif_bwd, step.attr, HR_ATTR_BYTES);
    made->in[DY] = dy;
    made->in[1] = step.in[U];
    made->in[2] = step.in[W];
    made->out[DU] = du;
    made->out[DW] = dw;
    return HR_OK;
}

const hr_op hr_lif_op = { .name = "lif",
                          .in = "rrw",
                          .out = "rU",
                          .reuse = { 1 << U | 1 << X },
                          .residual = 1 + X,
                          .derivative = derivative };

const hr_op hr_lif_bwd_op = { .name = "lif_bwd",
                              .in = "rrw",
                              .out = "rA",
                              .reuse = { 1 << 0 | 1 << 1 } };
