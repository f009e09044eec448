/* SPDX-License-Identifier: Apache-2.0 */
/* ops/norm/norm_build.h - adds a LayerNorm to a program. */
#ifndef HR_OPS_NORM_BUILD_H
#define HR_OPS_NORM_BUILD_H

#include "graph/builder.h"
#include "ops/norm/norm.h"

/* y = LayerNorm(x) gain + bias. Returns y. */
int32_t hr_build_norm(hr_builder *builder, const char *name, int32_t x, int32_t gain, int32_t bias,
                      double eps);

#endif
