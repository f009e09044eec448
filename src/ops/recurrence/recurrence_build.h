/* SPDX-License-Identifier: Apache-2.0 */
/* ops/recurrence/recurrence_build.h - adds a gated linear recurrence to a program. */
#ifndef HR_OPS_RECURRENCE_BUILD_H
#define HR_OPS_RECURRENCE_BUILD_H

#include "graph/builder.h"
#include "ops/recurrence/recurrence.h"

/* y = x + what of the recurrence of u is above zero; for the derivative u alone is kept. Where the
 * builder has caches, the first of its layer is the state to go on from. Returns y. */
int32_t hr_build_recurrence(hr_builder *builder, const char *name, int32_t u, int32_t x,
                            int32_t alpha);

/* The state of C channels of one sequence, and the step that clears it, at the builder's place. It
 * lives in one turn of `home`: the loop around all that clears it and goes on from it. */
int32_t hr_build_recurrence_state(hr_builder *builder, int64_t C, int32_t home);

#endif
