/* SPDX-License-Identifier: Apache-2.0 */
/* ops/select/select_build.h - adds a choice between two values of rows to a program. */
#ifndef HR_OPS_SELECT_BUILD_H
#define HR_OPS_SELECT_BUILD_H

#include "graph/builder.h"
#include "ops/select/select.h"

/* Rows of y or of t, by sequence. Only y gets a gradient. Returns them.
 *
 *   attr  all but D, T and site */
int32_t hr_build_select(hr_builder *builder, const char *name, int32_t y, int32_t t,
                        hr_select_attr attr);

#endif
