/* SPDX-License-Identifier: Apache-2.0 */
/* ops/modulate/modulate_build.h - adds the factor of an adapter that is a function of the token. */
#ifndef HR_OPS_MODULATE_BUILD_H
#define HR_OPS_MODULATE_BUILD_H

#include "graph/builder.h"
#include "ops/modulate/modulate.h"

/* The factor of projections u and p; columns in groups of R. Returns y. */
int32_t hr_build_modulate(hr_builder *builder, const char *name, int32_t u, int32_t p,
                          hr_modulate_form form, int64_t R, double scale);

#endif
