/* SPDX-License-Identifier: Apache-2.0 */
/* model/gpt_neo.c - GPT-Neo: learned positions, GELU's tanh form, tied embeddings, no biases for
 * queries, keys and values, scores that are not divided by the square root of the head width, and
 * layers that attend to all tokens or to a window, as model.attention.layer_types says.
 *
 *     h = h + attention(LN_1(h)), then h = h + mlp(LN_2(h))
 *
 * Source   Black et al. 2021, GPT-Neo, doi:10.5281/zenodo.5297715. */
#include "model/blocks.h"
#include "model/layer_types.h"
#include "ops/attention/attention_build.h"
#include "ops/linear/linear_build.h"
#include "ops/norm/norm_build.h"

enum {
    LN_1,
    LN_1_BIAS,
    WK,
    WV,
    WQ,
    OUT,
    OUT_BIAS,
    LN_2,
    LN_2_BIAS,
    UP,
    UP_BIAS,
    DOWN,
    DOWN_BIAS,
    WEIGHTS
};

#define STD 0.02
#define LAYER "transformer.h.%lld."

static void params(hr_builder *builder, const hr_config *config, hr_model *model)
{
    const int64_t D = config->model.d_model, F = config->model.d_ff;
    const hr_param_shape one = { HR_PARAM_VECTOR, D, 0, 1, true, false };
    const hr_param_shape zero = { HR_PARAM_VECTOR, D, 0, 0, true, false };
    const hr_param_shape square = { HR_PARAM_MATRIX, D, D, STD, false, true };
    const hr_layer_weight weights[] = {
        [LN_1] = { LAYER "ln_1.weight", one },
        [LN_1_BIAS] = { LAYER "ln_1.bias", zero },
        [WK] = { LAYER "attn.attention.k_proj.weight", square },
        [WV] = { LAYER "attn.attention.v_proj.weight", square },
        [WQ] = { LAYER "attn.attention.q_proj.weight", square },
        [OUT] = { LAYER "attn.attention.out_proj.weight", square },
        [OUT_BIAS] = { LAYER "attn.attention.out_proj.bias", zero },
        [LN_2] = { LAYER "ln_2.weight", one },
        [LN_2_BIAS] = { LAYER "ln_2.bias", zero },
        [UP] = { LAYER "mlp.c_fc.weight", { HR_PARAM_MATRIX, D, F, STD, false, true } },
        [UP_BIAS] = { LAYER "mlp.c_fc.bias", { HR_PARAM_VECTOR, F, 0, 0, true, false } },
        [DOWN] = { LAYER "mlp.c_proj.weight", { HR_PARAM_MATRIX, F, D, STD, false, true } },
        [DOWN_BIAS] = { LAYER "mlp.c_proj.bias", zero },
    };
    const hr_param_shape positions = { HR_PARAM_ADDEND, hr_config_positions(config), D, STD };
    hr_block_table(builder, config, model, STD, "transformer.wte.weight");
    model->positions = hr_build_param(builder, positions, "transformer.wpe.weight");
    hr_block_layers(builder, config, model, weights, WEIGHTS);
    model->final_gain = hr_build_param(builder, one, "transformer.ln_f.weight");
    model->final_bias = hr_build_param(builder, zero, "transformer.ln_f.bias");
    hr_block_head(builder, config, model, STD, "lm_head.weight");
}

static int32_t attention(hr_builder *builder, const hr_config *config, const hr_model *model,
                         const hr_layer *layer, int32_t h)
{
    const int32_t *w = layer->weights;
    (void)model;
    const int32_t norm = hr_build_norm(builder, "norm_1", h, w[LN_1], w[LN_1_BIAS],
                                       config->model.norm_eps);
    const int32_t q = hr_block_project(builder, "q", norm, w[WQ], HR_NONE, HR_INTERMEDIATE_Q);
    const int32_t k = hr_block_project(builder, "k", norm, w[WK], HR_NONE, HR_INTERMEDIATE_K);
    const int32_t v = hr_block_project(builder, "v", norm, w[WV], HR_NONE, HR_INTERMEDIATE_V);
    hr_attention_attr attr = hr_block_attention(config, layer);
    attr.scale = 1;
    const int32_t o = hr_build_attention(builder, "attention", q, k, v, attr);
    return hr_block_join_mid(builder, config, "attention_out", o, w[OUT], w[OUT_BIAS], h);
}

static int32_t mlp(hr_builder *builder, const hr_config *config, const hr_model *model,
                   const hr_layer *layer, int32_t h)
{
    const int32_t *w = layer->weights;
    (void)model;
    const int32_t norm = hr_build_norm(builder, "norm_2", h, w[LN_2], w[LN_2_BIAS],
                                       config->model.norm_eps);
    const int32_t up = hr_build_linear(builder, "up", norm, w[UP], w[UP_BIAS], HR_ACT_GELU_TANH,
                                       HR_NONE);
    return hr_block_join(builder, config, "layer_out", up, w[DOWN], w[DOWN_BIAS], h);
}

static int32_t forward(hr_builder *builder, const hr_config *config, const hr_model *model,
                       int32_t ids)
{
    return hr_block_learned_positions(builder, config, model, ids, attention, mlp);
}

const hr_family_spec hr_family_gpt_neo = { .name = "gpt_neo",
                                           .traits = HR_LEARNS_POSITIONS | HR_MAY_TIE | HR_TIES |
                                                     HR_SLIDES | HR_MIXES_ATTENTION,
                                           .initialization = "normal(0.02); biases 0, norms 1",
                                           .kind = hr_layer_type,
                                           .params = params,
                                           .forward = forward };
