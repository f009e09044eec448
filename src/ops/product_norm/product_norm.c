/* SPDX-License-Identifier: Apache-2.0 */
/* ops/product_norm/product_norm.c - builder function and properties of product_norm. */
#include "ops/product_norm/product_norm.h"

#include <stddef.h>

#include "base/checked.h"
#include "ops/embed/embed.h"
#include "ops/linear/linear.h"
#include "ops/list.h"
#include "ops/product_norm/product_norm_build.h"
#include "ops/product_norm/product_norm_scratch.h"

void hr_product_norm_find_writers(const hr_program *program, int32_t *writers)
{
    enum { NONE = HR_NONE, SEVERAL = HR_NONE - 1 };
    for (int32_t t = 0; t < program->tensor_max; t++) writers[t] = NONE;
    for (int32_t s = 0; s < program->step_count; s++)
        for (int32_t k = 0; k < HR_OUT_MAX; k++) {
            const int32_t out = program->steps[s].out[k];
            if (out == HR_NONE) continue;
            int32_t *writer = &writers[hr_tensor_root(program, out)];
            *writer = *writer == NONE && k == 0 && out == hr_tensor_root(program, out) ? s
                                                                                       : SEVERAL;
        }
}

static bool describe(const hr_step *writer, hr_product_norm_attr *attr)
{
    if (writer->op == HR_OP_linear_dw) {
        const hr_linear_attr *linear = (const hr_linear_attr *)writer->attr;
        attr->K = linear->K;
        attr->N = linear->N;
        return attr->rows <= attr->K * attr->N / (attr->K + attr->N);
    }
    if (writer->op != HR_OP_embed_bwd) return false;
    const hr_embed_attr *embed = (const hr_embed_attr *)writer->attr;
    attr->N = embed->D;
    return embed->layout == HR_ROWS && attr->rows <= embed->V / 4;
}

static void keep(hr_program *program, int32_t tensor)
{
    for (; tensor != HR_NONE; tensor = program->tensors[tensor].view_of)
        program->tensors[tensor].home = 0;
}

bool hr_build_product_norm(hr_builder *builder, int32_t index, const int32_t *writers, int32_t part)
{
    hr_program *program = builder->program;
    const int32_t found = writers[program->params[index].gradient];
    const hr_step *writer = &program->steps[hr_max(found, 0)];
    hr_product_norm_attr attr = { .param = index };
    if (found < 0) return false;
    const int32_t x = writer->in[0], dy = writer->in[1];
    attr.rows = program->tensors[dy].dims[0];
    if (!describe(writer, &attr)) return false;
    keep(program, x);
    keep(program, dy);
    hr_step *step = hr_build_step(builder, HR_OP_product_norm, &attr, sizeof attr);
    step->in[0] = x;
    step->in[1] = dy;
    step->out[0] = part;
    return true;
}

static int64_t flops(const void *attr, int64_t rows)
{
    const hr_product_norm_attr *shape = attr;
    int64_t pairs = 0; /* of tokens */
    (void)rows;
    for (int64_t i = 0; i < hr_product_norm_blocks(shape->rows); i++)
        for (int64_t j = 0; j <= i; j++)
            pairs += hr_product_norm_tokens(shape->rows, i) *
                     hr_product_norm_tokens(shape->rows, j);
    return 2 * pairs * (shape->K + shape->N);
}

static int32_t measures(const void *attr)
{
    return ((const hr_product_norm_attr *)attr)->param;
}

const hr_op hr_product_norm_op = { .name = "product_norm",
                                   .in = "ww",
                                   .out = "w",
                                   .measures = measures,
                                   .flops = flops };
