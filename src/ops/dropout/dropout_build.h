/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dropout/dropout_build.h - adds dropout of a branch to a program. */
#ifndef HR_OPS_DROPOUT_BUILD_H
#define HR_OPS_DROPOUT_BUILD_H

#include "graph/builder.h"
#include "ops/dropout/dropout.h"

/* y = residual + scale dropout(x); residual may be HR_NONE. Returns y. */
int32_t hr_build_dropout(hr_builder *builder, const char *name, int32_t x, int32_t residual,
                         double p, double scale);

/* Adds a gradient that a forward step wrote to that of a tensor: a sum if later steps read the
 * tensor too. Nothing if the tensor needs none. */
void hr_derive_add(hr_derive *derive, int32_t tensor, int32_t gradient);

#endif
