/* SPDX-License-Identifier: Apache-2.0 */
/* ops/activation/activation.c - properties of the stand-alone activation. Model families do not
 * build it; recompute uses it in place of a product (graph/op.h, remade_by). */
#include "ops/activation/activation.h"

#include "ops/list.h"

const hr_op hr_activation_op = { .name = "activation", .in = "r", .out = "r", .reuse = { 1 << 0 } };
