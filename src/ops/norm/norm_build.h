/* SPDX-License-Identifier: Apache-2.0 */
/* ops/norm/norm_build.h - adds a LayerNorm or an RMSNorm to a program. */
#ifndef HR_OPS_NORM_BUILD_H
#define HR_OPS_NORM_BUILD_H

#include "graph/builder.h"
#include "ops/norm/norm.h"

/* Both functions take rows whose width is a multiple of the gain's length, and normalise each group
 * of that length on its own. An output with one group is marked as a norm output. An output with
 * several groups is part of another value (q, k), and the caller marks it. */

/* y = LayerNorm(x) gain + bias; bias may be HR_NONE. Returns y. */
int32_t hr_build_norm(hr_builder *builder, const char *name, int32_t x, int32_t gain, int32_t bias,
                      double eps);

/* y = RMSNorm(x) gain. Returns y. */
int32_t hr_build_rms_norm(hr_builder *builder, const char *name, int32_t x, int32_t gain,
                          double eps);

#endif
