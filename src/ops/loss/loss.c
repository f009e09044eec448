/* SPDX-License-Identifier: Apache-2.0 */
/* ops/loss/loss.c - builder function, derivative and properties of the loss. The forward step also
 * writes the gradient, so that forward and backward of the head are adjacent and share a loss
 * chunk. */
#include "ops/loss/loss.h"

#include "ops/list.h"
#include "ops/loss/loss_build.h"

void hr_build_loss(hr_builder *builder, int32_t logits, int32_t targets, int32_t scale, double z,
                   int32_t loss_sum)
{
    if (hr_build_status(builder) != HR_OK) return;
    const hr_loss_attr attr = { .V = builder->program->tensors[logits].dims[1], .z = z };
    int32_t gradient = HR_NONE;
    if (builder->training) gradient = hr_build_rows(builder, "d.logits", builder->dtype, attr.V);
    hr_step *step = hr_build_step(builder, HR_OP_loss, &attr, sizeof attr);
    step->in[0] = logits;
    step->in[1] = targets;
    step->in[2] = scale;
    step->out[0] = loss_sum;
    step->out[1] = gradient;
}

static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    (void)err;
    const hr_step *step = &derive->builder->program->steps[index];
    hr_derive_set(derive, step->in[0], step->out[1]);
    return HR_OK;
}

const hr_op hr_loss_op = { .name = "loss",
                           .in = "rrW",
                           .out = "aR",
                           .reuse = { 0, 1 << 0 },
                           .derivative = derivative };

/* sections/head.c makes the last two, after all derivatives. */
const hr_op hr_loss_part_op = { .name = "loss_part",
                                .in = "rrR",
                                .out = "rA",
                                .reuse = { 1 << 2 } };

const hr_op hr_loss_dx_op = { .name = "loss_dx", .in = "rrWr", .out = "r", .reuse = { 1 << 0 } };
