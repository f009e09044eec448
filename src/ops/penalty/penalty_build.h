/* SPDX-License-Identifier: Apache-2.0 */
/* ops/penalty/penalty_build.h - adds what keeps adapters of a token small to a program. */
#ifndef HR_OPS_PENALTY_BUILD_H
#define HR_OPS_PENALTY_BUILD_H

#include "graph/builder.h"
#include "ops/penalty/penalty.h"

/* Adds weight times the length of a parameter to the loss, and its gradient to that of the
 * parameter, which is complete otherwise. */
void hr_build_penalty(hr_builder *builder, int32_t param, double weight, int32_t scale,
                      int32_t sums, int32_t slot);

/* Computes G of the adapter of outer products that begins with parameter `a`. */
void hr_build_gram(hr_builder *builder, int32_t a);

/* Adds a weight times the squared lengths of the vectors of rows u to the loss. In training the
 * step also writes the gradient of u, and adds to that of G.
 *
 *   attr  weight, slot and slots */
void hr_build_restrain(hr_builder *builder, int32_t a, int32_t u, int32_t labels, int32_t scale,
                       int32_t sums, hr_restrain_attr attr);

/* Adds the gradient of G to those of Wa and Wb. */
void hr_build_gram_bwd(hr_builder *builder, int32_t a);

#endif
