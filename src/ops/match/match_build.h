/* SPDX-License-Identifier: Apache-2.0 */
/* ops/match/match_build.h - adds the distance of rows from others to a program. */
#ifndef HR_OPS_MATCH_BUILD_H
#define HR_OPS_MATCH_BUILD_H

#include "graph/builder.h"
#include "ops/match/match.h"

/* Adds the errors of rows y against t to one of `sums`. In training the step also writes the
 * gradient of y times `scale`; otherwise scale may be HR_NONE.
 *
 *   attr  all but D */
void hr_build_match(hr_builder *builder, int32_t y, int32_t t, int32_t labels, int32_t scale,
                    int32_t sums, hr_match_attr attr);

#endif
