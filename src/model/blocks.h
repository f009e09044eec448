/* SPDX-License-Identifier: Apache-2.0 */
/* model/blocks.h - layers and branches that model families share. */
#ifndef HR_MODEL_BLOCKS_H
#define HR_MODEL_BLOCKS_H

#include "config/config.h"
#include "graph/builder.h"
#include "model/family.h"
#include "model/npt_inputs.h"
#include "ops/attention/attention.h"
#include "ops/linear/linear.h"
#include "ops/match/match.h"
#include "ops/select/select.h"

/* A weight of every layer. */
typedef struct {
    const char *name; /* format with one %lld for the layer */
    hr_param_shape shape;
} hr_layer_weight;

/* Declares `count` weights for each layer, in this order. A null name: absent in this family. */
void hr_block_layers(hr_builder *builder, hr_model *model, const hr_layer_weight *weights,
                     int32_t count);

/* Declares the token embedding [V, D], which is also the head if the embeddings are tied. */
void hr_block_table(hr_builder *builder, const hr_config *config, hr_model *model, double std,
                    const char *name);

/* Declares the head [D, V], unless the embeddings are tied. */
void hr_block_head(hr_builder *builder, const hr_config *config, hr_model *model, double std,
                   const char *name);

/* The rows that a branch of a layer reads, and those that it adds its result to. */
typedef struct {
    int32_t input, residual;
} hr_block_rows;

/* A branch of a layer. Returns the stream after it. */
typedef int32_t hr_block_branch(hr_builder *builder, const hr_config *config, const hr_model *model,
                                const hr_layer *layer, hr_block_rows rows);

/* What the layers with adapters of a token are trained for, instead of the loss of the head: to
 * equal the standard layers on the same input. In training, layers after the last of them are not
 * built. */
typedef struct hr_teaching {
    hr_match_measure measure;
    bool direct;          /* what the layer adds to its input, and not its output, is compared */
    hr_npt_inputs inputs; /* of the layer after one */
    hr_select_attr mix;   /* of HR_NPT_MIXED */
    int32_t count;        /* of such layers */
    int32_t slots;        /* terms of the loss: of each layer, then of each part of adapters */
    double regularisation;
    int32_t labels, scale, sums; /* tensors of the objective (ops/match/match.h) */
    hr_region *scratch;          /* of derivatives; null: none is built */
} hr_teaching;

/* Whether each layer is trained alone: no gradient passes from one to that before. */
static inline bool hr_teaching_is_alone(const hr_teaching *teaching)
{
    return teaching->inputs == HR_NPT_TEACHER || teaching->inputs == HR_NPT_DETACHED;
}

/* What a recipe says of it, without tensors and scratch; count 0: its objective is the loss of the
 * head. */
hr_teaching hr_teaching_of(const hr_config *config, const hr_model *model,
                           const hr_program *program);

/* The slot of a part of an adapter in the sums. */
int32_t hr_teaching_slot(const hr_teaching *teaching, const hr_program *program, int32_t param);

/* All layers, each attention and then mlp (null: none), which reads the stream after attention, or
 * that before it (model->parallel). Returns the final stream; HR_NONE with builder->teaching in
 * training. */
int32_t hr_block_stack(hr_builder *builder, const hr_config *config, const hr_model *model,
                       int32_t h, hr_block_branch *attention, hr_block_branch *mlp);

/* The whole forward pass with learned positions: token embedding plus position, all layers, final
 * norm. Returns the hidden rows.
 *
 *   skipped  rows of the table of positions before that of position 0 */
int32_t hr_block_learned_positions(hr_builder *builder, const hr_config *config,
                                   const hr_model *model, int32_t ids, int32_t skipped,
                                   hr_block_branch *attention, hr_block_branch *mlp);

/* The final norm; a null bias makes it RMSNorm. h HR_NONE: nothing. */
int32_t hr_block_end(hr_builder *builder, const hr_config *config, const hr_model *model,
                     int32_t h);

/* Queries, keys and values in one buffer: a strategy saves all of them or none. */
extern const hr_intermediates hr_block_qkv;

/* Marks a tensor as all kinds of a set. Returns it. */
int32_t hr_block_mark(hr_builder *builder, int32_t tensor, hr_intermediates kinds);

/* y = table[ids] + positions, and what the adapter of the table adds. As hr_build_embed. */
int32_t hr_block_embed(hr_builder *builder, const char *name, int32_t ids, int32_t table,
                       int32_t positions, int64_t skip);

/* The product act(x W + bias) + residual, and what the adapter of W adds before the activation.
 * bias and residual may be HR_NONE; an activation has no residual.
 *
 *   kinds  that the result is; with an activation those of activations instead */
int32_t hr_block_product(hr_builder *builder, const char *name, int32_t x, int32_t weight,
                         int32_t bias, hr_act act, int32_t residual, hr_intermediates kinds);

/* The product x W + bias; bias HR_NONE: without bias. */
int32_t hr_block_project(hr_builder *builder, const char *name, int32_t x, int32_t weight,
                         int32_t bias, hr_intermediate mark);

/* The end of a branch: residual + dropout(x W + bias). Without dropout, the product's epilogue adds
 * the residual. bias may be HR_NONE. */
int32_t hr_block_join(hr_builder *builder, const hr_config *config, const char *name, int32_t x,
                      int32_t weight, int32_t bias, int32_t residual);

/* The same in the middle of a layer: also marks the sum as a value that may be recomputed. */
int32_t hr_block_join_mid(hr_builder *builder, const hr_config *config, const char *name, int32_t x,
                          int32_t weight, int32_t bias, int32_t residual);

/* Attributes of attention in a layer, by its kind: heads, mask, scale, dropout. Offsets are 0,
 * heads are adjacent. */
hr_attention_attr hr_block_attention(const hr_config *config, const hr_layer *layer);

#endif
