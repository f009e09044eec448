/* SPDX-License-Identifier: Apache-2.0 */
/* ops/magnitude/magnitude_build.h - adds the lengths of columns, and products with trained lengths,
 * to a program. */
#ifndef HR_OPS_MAGNITUDE_BUILD_H
#define HR_OPS_MAGNITUDE_BUILD_H

#include "graph/builder.h"
#include "ops/magnitude/magnitude.h"

/* The lengths of the columns of every parameter whose adapter has magnitudes; `first`: of new
 * magnitudes, too. */
void hr_build_lengths(hr_builder *builder, bool first);

/* y = x c m + bias + residual for a product x with the weight of parameter `of`; bias and residual
 * may be HR_NONE. Returns y. */
int32_t hr_build_magnitude(hr_builder *builder, const char *name, int32_t x, int32_t of,
                           int32_t bias, int32_t residual);

#endif
