/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/update_build.h - adds the norm of all gradients, and a weight's update, to a
 * program. */
#ifndef HR_OPS_UPDATE_BUILD_H
#define HR_OPS_UPDATE_BUILD_H

#include "graph/builder.h"
#include "ops/update/update.h"

/* Adds the gradients of weights that are used twice. */
void hr_build_merges(hr_builder *builder);

/* The norm of the gradients of all parameters that have one, and what they are multiplied by so
 * that it stays within `limit` (0: no limit). Returns the tensor [2]: norm, scale. */
int32_t hr_build_norm_scale(hr_builder *builder, double limit);

typedef struct {
    bool sgd;
    hr_update_attr attr; /* elements, decay and lr_scale are filled in for each parameter */
} hr_update_rule;

/* Updates parameter `index`, unless it is frozen. norm_scale HR_NONE: gradients as they are. */
void hr_build_update(hr_builder *builder, int32_t index, hr_update_rule rule, int32_t norm_scale,
                     int32_t lr);

/* Follows parameter `index` with an average that has `decay`, unless it is frozen. Comes behind the
 * updates of all. */
void hr_build_average(hr_builder *builder, int32_t index, double decay);

#endif
