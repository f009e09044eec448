/* SPDX-License-Identifier: Apache-2.0 */
/* model/opt.c - OPT, in the sizes with pre-norm: learned positions whose table has two extra rows
 * at the start, ReLU, biases, tied embeddings.
 *
 *     h = h + attention(LN_1(h)), then h = h + relu(LN_2(h) w1 + b1) w2 + b2
 *
 * Source   Zhang et al. 2022, arXiv:2205.01068. */
#include "model/blocks.h"
#include "ops/attention/attention_build.h"
#include "ops/embed/embed_build.h"
#include "ops/linear/linear_build.h"
#include "ops/norm/norm_build.h"

enum {
    WK,
    BK,
    WV,
    BV,
    WQ,
    BQ,
    OUT,
    OUT_BIAS,
    LN_1,
    LN_1_BIAS,
    W1,
    B1,
    W2,
    B2,
    LN_2,
    LN_2_BIAS,
    WEIGHTS
};

enum { POSITIONS_SKIPPED = 2 };

#define STD 0.02
#define MODEL "model.decoder."
#define LAYER MODEL "layers.%lld."

static void params(hr_builder *builder, const hr_config *config, hr_model *model)
{
    const int64_t D = config->model.d_model, F = config->model.d_ff;
    const int64_t P = hr_config_positions(config) + POSITIONS_SKIPPED;
    const hr_param_shape one = { HR_PARAM_VECTOR, D, 0, 1, true, false };
    const hr_param_shape zero = { HR_PARAM_VECTOR, D, 0, 0, true, false };
    const hr_param_shape square = { HR_PARAM_MATRIX, D, D, STD, false, true };
    const hr_layer_weight weights[] = {
        [WK] = { LAYER "self_attn.k_proj.weight", square },
        [BK] = { LAYER "self_attn.k_proj.bias", zero },
        [WV] = { LAYER "self_attn.v_proj.weight", square },
        [BV] = { LAYER "self_attn.v_proj.bias", zero },
        [WQ] = { LAYER "self_attn.q_proj.weight", square },
        [BQ] = { LAYER "self_attn.q_proj.bias", zero },
        [OUT] = { LAYER "self_attn.out_proj.weight", square },
        [OUT_BIAS] = { LAYER "self_attn.out_proj.bias", zero },
        [LN_1] = { LAYER "self_attn_layer_norm.weight", one },
        [LN_1_BIAS] = { LAYER "self_attn_layer_norm.bias", zero },
        [W1] = { LAYER "fc1.weight", { HR_PARAM_MATRIX, D, F, STD, false, true } },
        [B1] = { LAYER "fc1.bias", { HR_PARAM_VECTOR, F, 0, 0, true, false } },
        [W2] = { LAYER "fc2.weight", { HR_PARAM_MATRIX, F, D, STD, false, true } },
        [B2] = { LAYER "fc2.bias", zero },
        [LN_2] = { LAYER "final_layer_norm.weight", one },
        [LN_2_BIAS] = { LAYER "final_layer_norm.bias", zero },
    };
    hr_block_table(builder, config, model, STD, MODEL "embed_tokens.weight");
    model->positions = hr_build_param(builder, (hr_param_shape){ HR_PARAM_ADDEND, P, D, STD },
                                      MODEL "embed_positions.weight");
    hr_block_layers(builder, config, model, weights, WEIGHTS);
    model->final_gain = hr_build_param(builder, one, MODEL "final_layer_norm.weight");
    model->final_bias = hr_build_param(builder, zero, MODEL "final_layer_norm.bias");
    hr_block_head(builder, config, model, STD, "lm_head.weight");
}

static int32_t attention(hr_builder *builder, const hr_config *config, const hr_model *model,
                         const hr_layer *layer, int32_t h)
{
    const int32_t *w = layer->weights;
    (void)model;
    const int32_t norm = hr_build_norm(builder, "norm_1", h, w[LN_1], w[LN_1_BIAS],
                                       config->model.norm_eps);
    const int32_t q = hr_block_project(builder, "q", norm, w[WQ], w[BQ], HR_INTERMEDIATE_Q);
    const int32_t k = hr_block_project(builder, "k", norm, w[WK], w[BK], HR_INTERMEDIATE_K);
    const int32_t v = hr_block_project(builder, "v", norm, w[WV], w[BV], HR_INTERMEDIATE_V);
    const int32_t o = hr_build_attention(builder, "attention", q, k, v,
                                         hr_block_attention(config, layer));
    return hr_block_join_mid(builder, config, "attention_out", o, w[OUT], w[OUT_BIAS], h);
}

static int32_t mlp(hr_builder *builder, const hr_config *config, const hr_model *model,
                   const hr_layer *layer, int32_t h)
{
    const int32_t *w = layer->weights;
    (void)model;
    const int32_t norm = hr_build_norm(builder, "norm_2", h, w[LN_2], w[LN_2_BIAS],
                                       config->model.norm_eps);
    const int32_t up = hr_build_linear(builder, "up", norm, w[W1], w[B1], HR_ACT_RELU, HR_NONE);
    return hr_block_join(builder, config, "layer_out", up, w[W2], w[B2], h);
}

static int32_t forward(hr_builder *builder, const hr_config *config, const hr_model *model,
                       int32_t ids)
{
    builder->block = HR_BLOCK_EMBED;
    int32_t h = hr_build_embed(builder, "embedding", ids, model->table, model->positions,
                               POSITIONS_SKIPPED);
    h = hr_block_stack(builder, config, model, h, attention, mlp);
    return hr_build_norm(builder, "final_norm", h, model->final_gain, model->final_bias,
                         config->model.norm_eps);
}

const hr_family_spec hr_family_opt = { .name = "opt",
                                       .traits = HR_LEARNS_POSITIONS | HR_MAY_TIE | HR_TIES,
                                       .initialization = "normal(0.02); biases 0, norms 1",
                                       .params = params,
                                       .forward = forward };
