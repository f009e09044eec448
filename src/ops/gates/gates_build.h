/* SPDX-License-Identifier: Apache-2.0 */
/* ops/gates/gates_build.h - adds a gated branch to a program. */
#ifndef HR_OPS_GATES_BUILD_H
#define HR_OPS_GATES_BUILD_H

#include "graph/builder.h"
#include "ops/gates/gates.h"

/* residual + gate x; residual may be HR_NONE. */
int32_t hr_build_gates(hr_builder *builder, const char *name, int32_t z, int32_t x,
                       int32_t residual, hr_gates_attr attr);

#endif
