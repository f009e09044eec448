/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/update.c - builder functions and properties of gradient norms and weight updates. */
#include "ops/update/update.h"

#include <stddef.h>

#include "base/assert.h"
#include "ops/list.h"
#include "ops/product_norm/product_norm_build.h"
#include "ops/update/update_build.h"
#include "ops/update/update_scratch.h"

static int64_t elements_of(const hr_program *program, int32_t tensor)
{
    const hr_tensor *t = &program->tensors[tensor];
    return hr_tensor_bytes(t) / hr_dtype_bytes((hr_dtype)t->dtype);
}

void hr_build_merges(hr_builder *builder)
{
    const hr_program *program = builder->program;
    for (int32_t p = 0; p < program->param_count && hr_build_status(builder) == HR_OK; p++) {
        const hr_param *param = &program->params[p];
        if (param->gradient_again == HR_NONE) continue;
        const hr_merge_attr attr = { elements_of(program, param->gradient) };
        hr_step *step = hr_build_step(builder, HR_OP_merge, &attr, sizeof attr);
        step->in[0] = param->gradient_again;
        step->out[0] = param->gradient;
    }
}

int32_t hr_build_norm_scale(hr_builder *builder, double limit, bool of_products, int32_t loss_scale,
                            hr_region *scratch)
{
    const hr_program *program = builder->program;
    const int64_t kept = scratch->used;
    int32_t *writers = of_products
                           ? hr_region_take_raw(scratch, program->tensor_max, sizeof *writers)
                           : NULL;
    const int32_t run = 0;
    if (of_products && !writers && hr_build_status(builder) == HR_OK)
        builder->status = hr_fail(builder->err, HR_FAILURE,
                                  "out of memory for the norm of %d tensors", program->tensor_max);
    if (writers) hr_product_norm_find_writers(program, writers);
    hr_clip_attr clip = { hr_program_trained(program, 0), limit };
    const int32_t parts = hr_build_fixed(builder, HR_NORM_PARTS, HR_ROLE_SUM, HR_F64, HR_ROWS,
                                         clip.count, 0, run);
    const int32_t scale = hr_build_fixed(builder, "gradient norm and scale", HR_ROLE_SUM, HR_F64,
                                         HR_ROWS, 2, 0, run);
    int64_t count = 0;
    for (int32_t p = 0; p < program->param_count && hr_build_status(builder) == HR_OK; p++) {
        if (program->params[p].gradient == HR_NONE) continue;
        const hr_sumsq_attr attr = { elements_of(program, program->params[p].gradient) };
        const int32_t part = hr_build_view(builder, "gradient norm part", parts,
                                           count++ * (int64_t)sizeof(double), 1);
        if (writers && hr_build_product_norm(builder, p, writers, part)) continue;
        hr_step *step = hr_build_step(builder, HR_OP_sumsq, &attr, sizeof attr);
        step->in[0] = program->params[p].gradient;
        step->out[0] = part;
    }
    HR_ASSERT(count == clip.count || hr_build_status(builder) != HR_OK);
    hr_step *step = hr_build_step(builder, HR_OP_clip, &clip, sizeof clip);
    step->in[0] = parts;
    step->in[1] = loss_scale;
    step->out[0] = scale;
    scratch->used = kept;
    return scale;
}

/* How the master of a parameter is stored. */
static hr_master_kind master_of(const hr_program *program, int32_t index)
{
    if (program->tensors[program->params[index].master].dtype == HR_F32) return HR_MASTER_F32;
    if (hr_program_residual(program, index) == HR_NONE) return HR_MASTER_ROUNDED;
    const int32_t state = hr_program_residual_state(program);
    return program->states[state].shape == HR_STATE_RESIDUAL ? HR_MASTER_RESIDUAL
                                                             : HR_MASTER_RESIDUAL_BYTES;
}

hr_step *hr_build_update(hr_builder *builder, int32_t index, int32_t op, hr_update_attr attr,
                         int32_t states, int32_t scales, int32_t norm_scale, int32_t lr)
{
    const hr_param *param = &builder->program->params[index];
    int32_t out = 0;
    if (hr_build_status(builder) != HR_OK || param->gradient == HR_NONE) return NULL;
    attr.elements = elements_of(builder->program, param->gradient);
    attr.decay = param->rule.decay;
    attr.lr_scale = param->rule.lr_scale;
    attr.moments = builder->program->tensors[param->states[0]].dtype;
    attr.param = index;
    attr.master = (uint8_t)master_of(builder->program, index);
    const bool scaled = attr.moments == HR_U8;
    hr_step *step = hr_build_step(builder, op, &attr, sizeof attr);
    step->in[0] = param->gradient;
    step->in[1] = norm_scale;
    step->in[2] = lr;
    step->out[out++] = param->master;
    for (int32_t i = 0; i < states; i++) step->out[out++] = param->states[i];
    if (param->weight != param->master) step->out[out] = param->weight;
    for (int32_t i = 0; i < states && scaled; i++)
        step->out[1 + out + i] = param->states[scales + i];
    step->out[1 + out + states] = hr_program_residual(builder->program, index);
    return step;
}

void hr_build_average(hr_builder *builder, int32_t index, int32_t state, double decay)
{
    const hr_param *param = &builder->program->params[index];
    const bool moves = param->gradient != HR_NONE || param->rule.rests;
    if (hr_build_status(builder) != HR_OK || !moves) return;
    const hr_average_attr attr = { elements_of(builder->program, param->master), decay,
                                   (uint8_t)master_of(builder->program, index) };
    hr_step *step = hr_build_step(builder, HR_OP_average, &attr, sizeof attr);
    step->in[0] = param->master;
    step->in[1] = hr_program_residual(builder->program, index);
    step->out[0] = param->states[state];
}

const hr_op hr_merge_op = { .name = "merge", .in = "w", .out = "u" };

static void split_sumsq(hr_step *step, int64_t first, int64_t elements)
{
    (void)first;
    ((hr_sumsq_attr *)step->attr)->elements = elements;
}

const hr_op hr_sumsq_op = { .name = "sumsq", .in = "w", .out = "a", .split = split_sumsq };

const hr_op hr_clip_op = { .name = "clip", .in = "wW", .out = "w" };

_Static_assert(HR_PIECE_ELEMENTS % HR_UPDATE_RUN_ELEMENTS == 0, "a piece is whole runs");

_Static_assert(HR_STRIP_QUANTUM % HR_UPDATE_RUN_ELEMENTS == 0, "a strip is whole runs");

static void split(hr_step *step, int64_t first, int64_t elements)
{
    hr_update_attr *attr = (hr_update_attr *)step->attr;
    attr->first = first;
    attr->elements = elements;
}

const hr_op hr_adamw_op = { .name = "adamw", .in = "wWw", .out = "uuuWuuu", .split = split };

const hr_op hr_sgd_op = { .name = "sgd", .in = "wWw", .out = "uuWuu", .split = split };

const hr_op hr_lion_op = { .name = "lion", .in = "wWw", .out = "uuWuu", .split = split };

const hr_op hr_average_op = { .name = "average", .in = "wW", .out = "u" };
