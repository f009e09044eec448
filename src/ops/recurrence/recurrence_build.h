/* SPDX-License-Identifier: Apache-2.0 */
/* ops/recurrence/recurrence_build.h - adds a gated linear recurrence to a program. */
#ifndef HR_OPS_RECURRENCE_BUILD_H
#define HR_OPS_RECURRENCE_BUILD_H

#include "graph/builder.h"
#include "ops/recurrence/recurrence.h"

/* y = x + ReLU(recurrence of u); backward needs only u. If the builder has caches, the first cache
 * of the layer is the initial state. Returns y. */
int32_t hr_build_recurrence(hr_builder *builder, const char *name, int32_t u, int32_t x,
                            int32_t alpha);

/* Creates the state of C channels of one sequence and the step that clears it. Its lifetime is one
 * iteration of `home`, the loop around all steps that clear and use it. */
int32_t hr_build_recurrence_state(hr_builder *builder, int64_t C, int32_t home);

#endif
