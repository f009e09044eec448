/* SPDX-License-Identifier: Apache-2.0 */
/* ops/gates/gates_build.h - adds gated branches to a program. */
#ifndef HR_OPS_GATES_BUILD_H
#define HR_OPS_GATES_BUILD_H

#include "graph/builder.h"
#include "ops/gates/gates.h"

/* x: the outputs of attr.branches steps of attention. */
int32_t hr_build_gates(hr_builder *builder, const char *name, int32_t z, const int32_t *x,
                       hr_gates_attr attr);

#endif
