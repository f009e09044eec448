/* SPDX-License-Identifier: Apache-2.0 */
/* ops/choose/choose_build.h - adds the choice of blocks to a program. */
#ifndef HR_OPS_CHOOSE_BUILD_H
#define HR_OPS_CHOOSE_BUILD_H

#include "graph/builder.h"
#include "ops/choose/choose.h"

/* The blocks of queries q; lse may be HR_NONE. The caller sets all but T and widths. */
int32_t hr_build_choose(hr_builder *builder, const char *name, int32_t q, int32_t kc, int32_t lse,
                        hr_choose_attr attr);

#endif
