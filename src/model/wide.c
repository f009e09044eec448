/* SPDX-License-Identifier: Apache-2.0 */
/* model/wide.c - the shape of NeuroGen with a trained trunk: a recurrence instead of attention, and
 * a decoder of any width behind a wide expansion. No norms, no positions.
 *
 *     x = tok_emb[ids];   for each layer: s[t] = a s[t-1] + (1 - a) x[t] w_in,
 *                         a = 1 / (1 + exp(-alpha)),   x = x + max(s, 0)
 *     with model.trunk=lif: x = x + spikes of neurons with input x w_in (ops/lif/lif.h)
 *     logits = max(x w_expand + b_expand, 0) decoder,  or ... decoder.a decoder.b
 *
 * The expansion is a step of the head. Of its output, tokens by D_out, only the rows of a loss
 * chunk exist at a time, as of the logits, and sampling expands the one row that it needs. */
#include <math.h>
#include <stddef.h>

#include "model/blocks.h"
#include "ops/lif/lif_build.h"
#include "ops/linear/linear_build.h"
#include "ops/recurrence/recurrence_build.h"

enum { W_IN, MIXING, WEIGHTS }; /* alpha, or the synapses w_rec */

#define LAYER "layers.%lld."

/* Gates range from forgetting within a token or two to remembering for fifty: alpha is random, so
 * that channels differ. */
#define ALPHA_STD 2.0

/* The output matrix starts smaller, so that the first predictions are close to uniform. */
#define FIRST_LOGITS 0.25

static void params(hr_builder *builder, const hr_config *config, hr_model *model)
{
    const int64_t D = config->model.d_model, V = config->model.vocab_size;
    const int64_t X = hr_config_expansion(config), R = config->model.decoder_rank;
    const double std = 1 / sqrt((double)D), std_wide = 1 / sqrt((double)X);
    const hr_layer_weight weights[] = {
        [W_IN] = { LAYER "w_in", { HR_PARAM_MATRIX, D, D, std, false, false } },
        [MIXING] = { LAYER "alpha", { HR_PARAM_VECTOR, D, 0, ALPHA_STD, false, false } },
    };
    const int64_t S = config->model.lif.synapses;
    const hr_layer_weight neurons[] = {
        [W_IN] = weights[W_IN],
        [MIXING] = { LAYER "w_rec",
                     { HR_PARAM_VECTOR, S * D, 0, 1 / sqrt((double)S), false, false } },
    };
    hr_block_table(builder, config, model, 1, "tok_emb");
    hr_block_layers(builder, model, config->model.trunk == HR_TRUNK_LIF ? neurons : weights,
                    WEIGHTS);
    model->final_gain = model->final_bias = HR_NONE;
    model->expansion = hr_build_param(
        builder, (hr_param_shape){ HR_PARAM_MATRIX, D, X, std, false, false }, "w_expand");
    model->expansion_bias = hr_build_param(
        builder, (hr_param_shape){ HR_PARAM_VECTOR, X, 0, 0, true, false }, "b_expand");
    if (R)
        model->factor = hr_build_param(
            builder, (hr_param_shape){ HR_PARAM_MATRIX, X, R, std_wide, false, false },
            "decoder.a");
    const double std_head = FIRST_LOGITS / sqrt((double)(R ? R : X));
    model->head = hr_build_param(
        builder, (hr_param_shape){ HR_PARAM_MATRIX, R ? R : X, V, std_head, false, false },
        R ? "decoder.b" : "decoder");
}

/* A layer mixes tokens, so tiles split it as they split attention: between sequences. */
static int32_t mix(hr_builder *builder, const hr_config *config, const hr_model *model,
                   const hr_layer *layer, hr_block_rows rows)
{
    const int32_t *w = layer->weights;
    const int32_t u = hr_block_project(builder, "u", rows.input, w[W_IN], HR_NONE,
                                       HR_INTERMEDIATE_UP);
    const hr_lif_attr neurons = { .block = (int32_t)config->model.lif.block,
                                  .winners = (int32_t)config->model.lif.winners,
                                  .synapses = (int32_t)config->model.lif.synapses };
    (void)model;
    if (config->model.trunk == HR_TRUNK_LIF)
        return hr_build_lif(builder, "layer_out", u, rows.residual, w[MIXING], neurons);
    return hr_build_recurrence(builder, "layer_out", u, rows.residual, w[MIXING]);
}

static int32_t forward(hr_builder *builder, const hr_config *config, const hr_model *model,
                       int32_t ids)
{
    builder->block = HR_BLOCK_EMBED;
    const int32_t x = hr_block_embed(builder, "embedding", ids, model->table, HR_NONE, 0);
    return hr_block_stack(builder, config, model, x, mix, NULL);
}

static int32_t expand(hr_builder *builder, const hr_config *config, const hr_model *model,
                      int32_t hidden)
{
    const int32_t z = hr_block_product(builder, "expansion", hidden, model->expansion,
                                       model->expansion_bias, HR_ACT_RELU, HR_NONE, 0);
    if (config->model.decoder_rank == 0) return z;
    return hr_block_product(builder, "factor", z, model->factor, HR_NONE, HR_ACT_NONE, HR_NONE, 0);
}

const hr_family_spec hr_family_wide = {
    .name = "wide",
    .traits = HR_READS_EXPANSION | HR_HAS_STATES | HR_STORES_INPUTS_FIRST,
    .initialization = "matrices normal(1 / sqrt(rows)), the output matrix a quarter of that; "
                      "embedding normal(1), alpha normal(2), w_rec normal(1 / sqrt(synapses)); "
                      "b_expand 0",
    .params = params,
    .forward = forward,
    .expand = expand
};
