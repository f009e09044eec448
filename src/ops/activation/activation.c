/* SPDX-License-Identifier: Apache-2.0 */
/* ops/activation/activation.c - what the compiler knows about an activation alone. No family builds
 * one: it stands for a product in clones (graph/op.h, remade_by). */
#include "ops/activation/activation.h"

#include "ops/list.h"

static int64_t items(const void *attr, int64_t rows)
{
    const hr_linear_attr *shape = attr;
    return shape->act == HR_ACT_GELU ? rows * shape->N : 0;
}

const hr_op hr_activation_op = { .name = "activation",
                                 .in = "r",
                                 .out = "r",
                                 .reuse = { 1 << 0 },
                                 .items = items };
