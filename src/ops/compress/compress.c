/* SPDX-License-Identifier: Apache-2.0 */
/* ops/compress/compress.c - builder function, derivative and properties of compression. */
#include "ops/compress/compress.h"

#include <string.h>

#include "ops/compress/compress_build.h"
#include "ops/list.h"

int32_t hr_build_compress(hr_builder *builder, const char *name, int32_t x,
                          hr_compress_weights weights, hr_compress_attr attr)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    attr.T = builder->T;
    attr.y_width = hr_compress_width(&attr);
    if (weights.w1 == HR_NONE) attr.hidden = 0;
    const int32_t y = hr_build_rows(builder, name, builder->dtype, attr.y_width);
    hr_step *step = hr_build_step(builder, HR_OP_compress, &attr, sizeof attr);
    step->in[0] = x;
    step->in[1] = weights.position;
    step->in[2] = weights.w1;
    step->in[3] = weights.b1;
    step->in[4] = weights.w2;
    step->in[5] = weights.b2;
    step->out[0] = y;
    return y;
}

void hr_build_compress_cached(hr_builder *builder, int32_t x, int32_t added,
                              hr_compress_weights weights, hr_compress_attr attr, int32_t y)
{
    if (hr_build_status(builder) != HR_OK) return;
    attr.T = builder->T;
    attr.y_width = hr_compress_width(&attr);
    if (weights.w1 == HR_NONE) attr.hidden = 0;
    hr_step *step = hr_build_step(builder, HR_OP_compress_cached, &attr, sizeof attr);
    const int32_t in[HR_IN_MAX] = { x,          weights.position, weights.w1,        weights.b1,
                                    weights.w2, weights.b2,       builder->position, added };
    memcpy(step->in, in, sizeof in);
    step->out[0] = y;
}

static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    const hr_step step = derive->builder->program->steps[index];
    const int32_t dy = derive->gradient[step.out[0]];
    int32_t addend = HR_NONE, sums[5];
    (void)err;
    if (dy == HR_NONE) return HR_OK;
    const int32_t dx = hr_derive_emit(derive, step.in[0], &addend);
    for (int32_t i = 0; i < 5; i++)
        sums[i] = step.in[1 + i] == HR_NONE ? HR_NONE : hr_derive_param(derive, step.in[1 + i]);
    hr_step *made = hr_build_step(derive->builder, HR_OP_compress_bwd, step.attr, HR_ATTR_BYTES);
    for (int32_t i = 0; i < 5; i++) made->in[i] = step.in[i];
    made->in[5] = dy;
    made->in[6] = addend;
    made->out[0] = dx;
    for (int32_t i = 0; i < 5; i++) made->out[1 + i] = sums[i];
    return HR_OK;
}

static int64_t flops(const void *of, int64_t rows)
{
    const hr_compress_attr *attr = of;
    const int64_t M = attr->hidden, K = attr->head_width;
    return 2 * attr->G * (rows / attr->stride) * M * (attr->length * K + K);
}

static int64_t flops_backward(const void *attr, int64_t rows)
{
    return 3 * flops(attr, rows);
}

_Static_assert(sizeof(hr_compress_attr) <= HR_ATTR_BYTES, "attributes of a step");

const hr_op hr_compress_op = { .name = "compress",
                               .in = "rWWWWW",
                               .out = "r",
                               .derivative = derivative,
                               .flops = flops };

const hr_op hr_compress_cached_op = { .name = "compress_cached",
                                      .in = "wWWWWWwr",
                                      .out = "u",
                                      .flops = flops };

const hr_op hr_compress_bwd_op = { .name = "compress_bwd",
                                   .in = "rWWWWrR",
                                   .out = "rAAAAA",
                                   .flops = flops_backward };
