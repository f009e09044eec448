/* SPDX-License-Identifier: Apache-2.0 */
/* model/gpt2.c - GPT-2: learned positions, one product for q, k and v (all queries first), GELU's
 * tanh form, biases, tied embeddings. Files store its matrices as [in, out].
 *
 *     h = h + attention(LN_1(h)), then h = h + mlp(LN_2(h))
 *
 * Source   Radford et al. 2019, Language Models are Unsupervised Multitask Learners. */
#include <math.h>

#include "model/blocks.h"
#include "ops/attention/attention_build.h"
#include "ops/linear/linear_build.h"
#include "ops/norm/norm_build.h"

enum {
    LN_1,
    LN_1_BIAS,
    QKV,
    QKV_BIAS,
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
    const double out = STD / sqrt(2.0 * (double)config->model.n_layers);
    const hr_param_shape one = { HR_PARAM_VECTOR, D, 0, 1, true, false };
    const hr_param_shape zero = { HR_PARAM_VECTOR, D, 0, 0, true, false };
    const hr_layer_weight weights[] = {
        [LN_1] = { LAYER "ln_1.weight", one },
        [LN_1_BIAS] = { LAYER "ln_1.bias", zero },
        [QKV] = { LAYER "attn.c_attn.weight", { HR_PARAM_MATRIX, D, 3 * D, STD, false, false } },
        [QKV_BIAS] = { LAYER "attn.c_attn.bias", { HR_PARAM_VECTOR, 3 * D, 0, 0, true, false } },
        [OUT] = { LAYER "attn.c_proj.weight", { HR_PARAM_MATRIX, D, D, out, false, false } },
        [OUT_BIAS] = { LAYER "attn.c_proj.bias", zero },
        [LN_2] = { LAYER "ln_2.weight", one },
        [LN_2_BIAS] = { LAYER "ln_2.bias", zero },
        [UP] = { LAYER "mlp.c_fc.weight", { HR_PARAM_MATRIX, D, F, STD, false, false } },
        [UP_BIAS] = { LAYER "mlp.c_fc.bias", { HR_PARAM_VECTOR, F, 0, 0, true, false } },
        [DOWN] = { LAYER "mlp.c_proj.weight", { HR_PARAM_MATRIX, F, D, out, false, false } },
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
    const int64_t D = config->model.d_model;
    const int32_t norm = hr_build_norm(builder, "norm_1", h, w[LN_1], w[LN_1_BIAS],
                                       config->model.norm_eps);
    const int32_t qkv = hr_build_linear(builder, "qkv", norm, w[QKV], w[QKV_BIAS], HR_ACT_NONE,
                                        HR_NONE);
    hr_block_mark_qkv(builder, qkv);
    hr_attention_attr attr = hr_block_attention(config, layer);
    attr.k_offset = D;
    attr.v_offset = 2 * D;
    const int32_t o = hr_build_attention(builder, "attention", qkv, HR_NONE, HR_NONE, attr);
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

const hr_family_spec hr_family_gpt2 = {
    .name = "gpt2",
    .traits = HR_LEARNS_POSITIONS | HR_MAY_TIE | HR_TIES,
    .initialization = "normal(0.02); attention output and MLP down-projection normal(0.02 / sqrt(2 "
                      "n_layers)); biases 0, norms 1",
    .params = params,
    .forward = forward
};
