/* SPDX-License-Identifier: Apache-2.0 */
/* ops/product_norm/product_norm_build.h - adds product_norm to a program. */
#ifndef HR_OPS_PRODUCT_NORM_BUILD_H
#define HR_OPS_PRODUCT_NORM_BUILD_H

#include "graph/builder.h"
#include "ops/product_norm/product_norm.h"

/* Adds the sum of squares of the gradient of parameter `index` to the program, if one step alone
 * computes it, a product or an embedding, over so few tokens that this takes less time than the
 * gradient. The operands of that step then live as long as gradients do.
 *
 *   writers  of hr_product_norm_find_writers, before the first one is added
 *   part     out, [1] double
 *
 * Returns whether it did. */
bool hr_build_product_norm(hr_builder *builder, int32_t index, const int32_t *writers,
                           int32_t part);

/* Finds the steps that alone write a tensor, as their first output.
 *
 *   writers  [tensor_max] out; below 0: there is none */
void hr_product_norm_find_writers(const hr_program *program, int32_t *writers);

#endif
