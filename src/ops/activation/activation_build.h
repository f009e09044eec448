/* SPDX-License-Identifier: Apache-2.0 */
/* ops/activation/activation_build.h - adds an activation function to a program, where the product
 * before it cannot apply it. */
#ifndef HR_OPS_ACTIVATION_BUILD_H
#define HR_OPS_ACTIVATION_BUILD_H

#include "graph/builder.h"
#include "ops/activation/activation.h"

/* y = act(x). Returns y. Its first reader must be a product, whose derivative applies act'. */
int32_t hr_build_activation(hr_builder *builder, const char *name, int32_t x, hr_act act);

#endif
