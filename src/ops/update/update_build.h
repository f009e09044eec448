/* SPDX-License-Identifier: Apache-2.0 */
/* ops/update/update_build.h - adds the global gradient norm and the weight updates to a program. */
#ifndef HR_OPS_UPDATE_BUILD_H
#define HR_OPS_UPDATE_BUILD_H

#include "graph/builder.h"
#include "ops/update/update.h"

/* Adds up the two gradients of weights that are used twice. */
void hr_build_merges(hr_builder *builder);

/* Computes the norm of all gradients and the scale that limits it to `limit` (0: no limit). Returns
 * the tensor [2]: norm, scale.
 *   of_products  where it takes less time, from the operands of the product that computes a
 *                gradient (ops/product_norm)
 *   scratch      one number per tensor, if of_products */
int32_t hr_build_norm_scale(hr_builder *builder, double limit, bool of_products, int32_t loss_scale,
                            hr_region *scratch);

/* Adds the update of parameter `index`, unless it is frozen, by HR_OP_adamw, HR_OP_sgd or
 * HR_OP_lion, or another operation with the operands of one of them. It reads the gradient, the
 * norm and the learning rate, updates the master and the first `states` states in place, with their
 * scales if they are coded (the states from `scales` on), and writes the weight. Returns the step;
 * null: none.
 *   attr        elements, decay and lr_scale are set here
 *   norm_scale  tensor of hr_build_norm_scale; HR_NONE: no scaling */
hr_step *hr_build_update(hr_builder *builder, int32_t index, int32_t op, hr_update_attr attr,
                         int32_t states, int32_t scales, int32_t norm_scale, int32_t lr);

/* Updates the average of parameter `index`, its state `state`, with `decay`, unless it is frozen.
 * Call it after all updates. */
void hr_build_average(hr_builder *builder, int32_t index, int32_t state, double decay);

#endif
