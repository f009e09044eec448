/* SPDX-License-Identifier: Apache-2.0 */
/* ops/rope/rope_build.h - adds RoPE to a program. */
#ifndef HR_OPS_ROPE_BUILD_H
#define HR_OPS_ROPE_BUILD_H

#include "graph/builder.h"
#include "ops/rope/rope.h"

/* The table of angles of T positions, computed once in the current section of the builder. */
int32_t hr_build_rope_table(hr_builder *builder, int64_t T, int32_t rotary, double theta,
                            hr_rope_scaling scaling);

/* Rotates the heads that `attr` describes (this function sets width and T); a continued sequence
 * starts at the builder's position. Returns y. */
int32_t hr_build_rope(hr_builder *builder, const char *name, int32_t x, int32_t table,
                      hr_rope_attr attr);

#endif
