/* SPDX-License-Identifier: Apache-2.0 */
/* ops/recurrence/recurrence.c - builder functions, derivative and properties of the gated linear
 * recurrence. */
#include "ops/recurrence/recurrence.h"

#include "ops/list.h"
#include "ops/recurrence/recurrence_build.h"

enum { U, X, ALPHA };        /* inputs of recurrence */
enum { Y, STATE };           /* outputs of recurrence */
enum { DY = 0 };             /* inputs of recurrence_bwd (U and ALPHA at 1 and 2) */
enum { DU = 0, DALPHA = 1 }; /* outputs of recurrence_bwd */

int32_t hr_build_recurrence(hr_builder *builder, const char *name, int32_t u, int32_t x,
                            int32_t alpha)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    const hr_recurrence_attr attr = { builder->program->tensors[u].dims[1], builder->T };
    const int32_t y = hr_build_rows(builder, name, builder->dtype, attr.C);
    hr_step *step = hr_build_step(builder, HR_OP_recurrence, &attr, sizeof attr);
    step->in[U] = u;
    step->in[X] = x;
    step->in[ALPHA] = alpha;
    step->out[Y] = y;
    step->out[STATE] = builder->caches ? builder->caches[builder->layer][0] : HR_NONE;
    return y;
}

int32_t hr_build_recurrence_state(hr_builder *builder, int64_t C, int32_t home)
{
    const hr_recurrence_attr attr = { C, builder->T };
    const int32_t state = hr_build_fixed(builder, "state", HR_ROLE_ACTIVATION, HR_F32, HR_ROWS, C,
                                         0, home);
    hr_build_step(builder, HR_OP_recurrence_clear, &attr, sizeof attr)->out[0] = state;
    return state;
}

/* dx is dy, so only u and alpha need new gradients. */
static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    const hr_step step = derive->builder->program->steps[index];
    const int32_t dy = derive->gradient[step.out[Y]];
    if (dy == HR_NONE) return HR_OK;
    int32_t addend;
    const int32_t dalpha = hr_derive_param(derive, step.in[ALPHA]);
    const int32_t du = hr_derive_emit(derive, step.in[U], &addend);
    if (addend != HR_NONE)
        return hr_fail(err, HR_FAILURE,
                       "step %d (recurrence): what a recurrence runs over may have one reader",
                       index);
    hr_step *made = hr_build_step(derive->builder, HR_OP_recurrence_bwd, step.attr, HR_ATTR_BYTES);
    made->in[DY] = dy;
    made->in[1] = step.in[U];
    made->in[2] = step.in[ALPHA];
    made->out[DU] = du;
    made->out[DALPHA] = dalpha;
    return HR_OK;
}

const hr_op hr_recurrence_op = { .name = "recurrence",
                                 .in = "rrw",
                                 .out = "rU",
                                 .reuse = { 1 << U | 1 << X },
                                 .residual = 1 + X,
                                 .derivative = derivative };

const hr_op hr_recurrence_clear_op = { .name = "recurrence_clear", .in = "", .out = "w" };

const hr_op hr_recurrence_bwd_op = { .name = "recurrence_bwd",
                                     .in = "rrw",
                                     .out = "rA",
                                     .reuse = { 1 << 0 | 1 << 1 } };
