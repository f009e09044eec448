/* SPDX-License-Identifier: Apache-2.0 */
/* model/blocks.h - pieces that families share. */
#ifndef HR_MODEL_BLOCKS_H
#define HR_MODEL_BLOCKS_H

#include "graph/builder.h"
#include "headroom/config.h"
#include "model/family.h"
#include "ops/attention/attention.h"

/* A weight that every layer has. */
typedef struct {
    const char *name; /* with one %lld for the layer */
    hr_param_shape shape;
} hr_layer_weight;

/* Declares `count` weights for each layer, in this order. A null name: the family has none such. */
void hr_block_layers(hr_builder *builder, const hr_config *config, hr_model *model,
                     const hr_layer_weight *weights, int32_t count);

/* Declares the table [V, D], alone or as what the head is too. */
void hr_block_table(hr_builder *builder, const hr_config *config, hr_model *model, double std,
                    const char *name);

/* Declares the head [D, V], unless it is the table. */
void hr_block_head(hr_builder *builder, const hr_config *config, hr_model *model, double std,
                   const char *name);

/* A branch of a layer with its residual: from the stream `h` before it to that after it. */
typedef int32_t hr_block_branch(hr_builder *builder, const hr_config *config, const hr_model *model,
                                const int32_t *weights, int32_t h);

/* All layers, each attention and then mlp (null: there is none). Returns the stream after the
 * last. */
int32_t hr_block_stack(hr_builder *builder, const hr_config *config, const hr_model *model,
                       int32_t h, hr_block_branch *attention, hr_block_branch *mlp);

/* Queries, keys and values in one buffer: a strategy keeps them together or not at all. */
void hr_block_mark_qkv(hr_builder *builder, int32_t qkv);

/* The product x W + bias, bias HR_NONE: without. */
int32_t hr_block_project(hr_builder *builder, const char *name, int32_t x, int32_t weight,
                         int32_t bias, hr_intermediate mark);

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
