/* SPDX-License-Identifier: Apache-2.0 */
/* ops/last_row/last_row_build.h - adds last_row to a program. */
#ifndef HR_OPS_LAST_ROW_BUILD_H
#define HR_OPS_LAST_ROW_BUILD_H

#include "graph/builder.h"
#include "ops/last_row/last_row.h"

/* Returns the last row of x, [1, D]. Later operations of the builder have one row. */
int32_t hr_build_last_row(hr_builder *builder, const char *name, int32_t x);

#endif
