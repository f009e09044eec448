/* SPDX-License-Identifier: Apache-2.0 */
/* ops/recurrence/recurrence_build.h - adds a gated linear recurrence to a program. */
#ifndef HR_OPS_RECURRENCE_BUILD_H
#define HR_OPS_RECURRENCE_BUILD_H

#include "graph/builder.h"
#include "ops/recurrence/recurrence.h"

/* y = x + what of the recurrence of u is above zero; of the derivative alone u is kept. state is
 * HR_NONE where every sequence is whole. Returns y. */
int32_t hr_build_recurrence(hr_builder *builder, const char *name, int32_t u, int32_t x,
                            int32_t alpha, int32_t state);

#endif
