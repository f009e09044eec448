/* SPDX-License-Identifier: Apache-2.0 */
/* ops/embed/embed.c - builder function, derivative and properties of embeddings. */
#include "ops/embed/embed.h"

#include <stddef.h>

#include "base/checked.h"
#include "ops/embed/embed_build.h"
#include "ops/list.h"

/* Reads the rows of a table in the files of the model that the ids choose. */
static int32_t look_up(hr_builder *builder, int32_t ids, int32_t table, int64_t D)
{
    const hr_dtype dtype = (hr_dtype)builder->program->tensors[table].dtype;
    const int32_t rows = hr_build_rows(builder, "looked up", dtype, D);
    hr_step *step = hr_build_step(builder, HR_OP_lookup, NULL, 0);
    step->in[0] = ids;
    step->in[1] = table;
    step->out[0] = rows;
    return rows;
}

int32_t hr_build_embed(hr_builder *builder, const char *name, int32_t ids, int32_t table,
                       int32_t positions, int64_t skip)
{
    if (hr_build_status(builder) != HR_OK) return HR_NONE;
    const hr_tensor *words = &builder->program->tensors[table];
    const bool in_rows = words->layout == HR_ROWS;
    hr_embed_attr attr = { .V = words->dims[in_rows ? 0 : 1],
                           .D = words->dims[in_rows ? 1 : 0],
                           .T = builder->T,
                           .positions = positions == HR_NONE
                                            ? 0
                                            : builder->program->tensors[positions].dims[0],
                           .skip = skip,
                           .layout = words->layout,
                           .dtype = words->dtype };
    int32_t rows = HR_NONE;
    if (hr_tensor_is_away(builder->program, table)) {
        rows = look_up(builder, ids, table, attr.D);
        table = HR_NONE;
        attr.layout = HR_ROWS;
    }
    const int32_t y = hr_build_rows(builder, name, builder->dtype, attr.D);
    hr_step *step = hr_build_step(builder, HR_OP_embed, &attr, sizeof attr);
    step->in[0] = ids;
    step->in[1] = table;
    step->in[2] = positions;
    step->in[3] = builder->caches ? builder->position : HR_NONE;
    step->in[4] = builder->separate && positions != HR_NONE ? builder->begins : HR_NONE;
    step->in[5] = rows;
    step->out[0] = y;
    return y;
}

/* Returns the gradient accumulator of a head that shares the table, if saving the gradients per
 * token needs fewer bytes than a second accumulator. The step before the update then adds them to
 * it. */
static int32_t head_sum(const hr_derive *derive, int32_t table, int32_t dy)
{
    const hr_tensor *tensors = derive->builder->program->tensors;
    const int32_t sum = hr_derive_sum(derive, table);
    if (sum == HR_NONE || hr_tensor_bytes(&tensors[dy]) >= hr_tensor_bytes(&tensors[sum]))
        return HR_NONE;
    return sum;
}

static hr_status derivative(hr_derive *derive, int32_t index, hr_error *err)
{
    (void)err;
    hr_builder *builder = derive->builder;
    const hr_step step = builder->program->steps[index];
    const int32_t dy = derive->gradient[step.out[0]];
    if (dy == HR_NONE) return HR_OK;
    const int32_t sum = step.in[1] == HR_NONE ? HR_NONE : head_sum(derive, step.in[1], dy);
    const int32_t table = sum == HR_NONE ? hr_derive_param(derive, step.in[1]) : sum;
    const int32_t positions = hr_derive_param(derive, step.in[2]);
    if (table == HR_NONE && positions == HR_NONE) return HR_OK;
    hr_step *made = sum == HR_NONE
                        ? hr_build_step(builder, HR_OP_embed_bwd, step.attr, HR_ATTR_BYTES)
                        : hr_build_late(builder, HR_OP_embed_bwd, step.attr, HR_ATTR_BYTES);
    made->in[0] = step.in[0];
    made->in[1] = dy;
    made->in[2] = step.in[4];
    made->out[0] = table;
    made->out[1] = positions;
    return HR_OK;
}

const hr_op hr_embed_op = { .name = "embed", .in = "rWWWRR", .out = "r", .derivative = derivative };

/* Every strip looks at all ids; 64 rows of dE take longer to clear than that. */
static hr_strips strips(const void *attributes)
{
    const hr_embed_attr *attr = attributes;
    return (hr_strips){ attr->layout == HR_ROWS ? attr->V : 0, 64, 64 };
}

static void cut_strip(hr_step *step, int64_t first, int64_t units)
{
    hr_embed_attr *attr = (hr_embed_attr *)step->attr;
    attr->strip_first = first;
    attr->strip = units;
    step->out[1] = HR_NONE;
}

const hr_op hr_embed_bwd_op = { .name = "embed_bwd",
                                .in = "rrR",
                                .out = "AA",
                                .strips = strips,
                                .cut_strip = cut_strip };
