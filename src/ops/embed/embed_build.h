/* SPDX-License-Identifier: Apache-2.0 */
/* ops/embed/embed_build.h - adds an embedding, with optional learned positions, to a program. */
#ifndef HR_OPS_EMBED_BUILD_H
#define HR_OPS_EMBED_BUILD_H

#include "graph/builder.h"
#include "ops/embed/embed.h"

/* y = table[ids] + positions[skip + position]; positions may be HR_NONE. A table in panel layout is
 * the weight of the head. Returns y. */
int32_t hr_build_embed(hr_builder *builder, const char *name, int32_t ids, int32_t table,
                       int32_t positions, int64_t skip);

#endif
