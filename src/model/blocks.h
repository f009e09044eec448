/* SPDX-License-Identifier: Apache-2.0 */
/* model/blocks.h - pieces that families share. */
#ifndef HR_MODEL_BLOCKS_H
#define HR_MODEL_BLOCKS_H

#include "graph/builder.h"
#include "headroom/config.h"
#include "ops/attention/attention.h"

/* The end of a branch: residual + dropout(x W + bias). Without dropout the residual is added in the
 * product's epilogue. bias may be HR_NONE. */
int32_t hr_block_join(hr_builder *builder, const hr_config *config, const char *name, int32_t x,
                      int32_t weight, int32_t bias, int32_t residual);

/* The same for a branch after which the layer goes on from the sum: marks what of it may be
 * computed again. */
int32_t hr_block_join_mid(hr_builder *builder, const hr_config *config, const char *name, int32_t x,
                          int32_t weight, int32_t bias, int32_t residual);

/* What a config says about attention: heads, mask, scale, dropout. Offsets 0, heads side by
 * side. */
hr_attention_attr hr_block_attention(const hr_config *config);

#endif
