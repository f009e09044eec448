/* SPDX-License-Identifier: Apache-2.0 */
/* ops/glu/glu_build.h - adds a gated activation to a program. */
#ifndef HR_OPS_GLU_BUILD_H
#define HR_OPS_GLU_BUILD_H

#include "graph/builder.h"
#include "ops/glu/glu.h"

/* y = act(gate) * up, marked as the activation of its layer. Returns y. */
int32_t hr_build_glu(hr_builder *builder, const char *name, int32_t gate, int32_t up);

#endif
