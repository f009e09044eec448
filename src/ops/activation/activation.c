/* SPDX-License-Identifier: Apache-2.0 */
/* ops/activation/activation.c - properties of the stand-alone activation. Model families do not
 * build it; recompute uses it in place of a product (graph/op.h, remade_by). */
#include "ops/activation/activation.h"

#include "ops/list.h"

/* Elements that need erf. */
static void items(const hr_step *step, bool bf16, int64_t rows, int64_t items[HR_ITEMS_MAX])
{
    const hr_linear_attr *shape = (const hr_linear_attr *)step->attr;
    (void)bf16;
    if (hr_act_needs_pre(shape->act)) items[0] = rows * shape->N;
}

const hr_op hr_activation_op = { .name = "activation",
                                 .in = "r",
                                 .out = "r",
                                 .reuse = { 1 << 0 },
                                 .items = items };
