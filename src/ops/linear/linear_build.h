/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_build.h - adds a matrix product with its epilogue to a program. */
#ifndef HR_OPS_LINEAR_BUILD_H
#define HR_OPS_LINEAR_BUILD_H

#include "graph/builder.h"
#include "ops/linear/linear.h"

/* y = act(x W + bias) + residual; bias and residual may be HR_NONE. Returns y. */
int32_t hr_build_linear(hr_builder *builder, const char *name, int32_t x, int32_t weight,
                        int32_t bias, hr_act act, int32_t residual);

/* y = x W^T, the product of linear_dx, as a forward operation. Returns y. */
int32_t hr_build_linear_back(hr_builder *builder, const char *name, int32_t x, int32_t weight);

#endif
