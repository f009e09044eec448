/* SPDX-License-Identifier: Apache-2.0 */
/* ops/activation/activation.c - what the compiler knows about an activation alone. No family builds
 * one: it stands for a product in clones (graph/op.h, remade_by). */
#include "ops/activation/activation.h"

#include "ops/list.h"

const hr_op hr_activation_op = { .name = "activation", .in = "r", .out = "r", .reuse = { 1 << 0 } };
