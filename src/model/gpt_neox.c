/* SPDX-License-Identifier: Apache-2.0 */
/* model/gpt_neox.c - GPT-NeoX as in Pythia: one product for q, k and v (head by head), RoPE on a
 * fraction of each head, exact GELU, biases, an untied head without bias.
 *
 *     parallel    h = h + attention(LN_1(h)) + mlp(LN_2(h))
 *     sequential  h = h + attention(LN_1(h)), then h = h + mlp(LN_2(h))
 *
 * Source   Black et al. 2022, arXiv:2204.06745; initialization: Nguyen and Salazar 2019
 *          (small_init), Wang and Komatsuzaki 2021 (wang_init). */
#include <math.h>

#include "headroom/stages.h"
#include "model/blocks.h"
#include "ops/attention/attention_build.h"
#include "ops/linear/linear_build.h"
#include "ops/norm/norm_build.h"
#include "ops/rope/rope_build.h"

enum {
    LN_1,
    LN_1_BIAS,
    LN_2,
    LN_2_BIAS,
    QKV,
    QKV_BIAS,
    DENSE,
    DENSE_BIAS,
    UP,
    UP_BIAS,
    DOWN,
    DOWN_BIAS,
    WEIGHTS
};

#define LAYER "gpt_neox.layers.%lld."

static void params(hr_builder *builder, const hr_config *config, hr_model *model)
{
    const int64_t D = config->model.d_model, F = config->model.d_ff;
    const double small = sqrt(2.0 / (5.0 * (double)D));
    const double wang = 2.0 / ((double)config->model.n_layers * sqrt((double)D));
    const hr_param_shape one = { HR_PARAM_VECTOR, D, 0, 1, true, false };
    const hr_param_shape zero = { HR_PARAM_VECTOR, D, 0, 0, true, false };
    const hr_param_shape qkv_bias = { HR_PARAM_VECTOR, 3 * D, 0, 0, true, false };
    const hr_param_shape up_bias = { HR_PARAM_VECTOR, F, 0, 0, true, false };
    const hr_layer_weight weights[] = {
        [LN_1] = { LAYER "input_layernorm.weight", one },
        [LN_1_BIAS] = { LAYER "input_layernorm.bias", zero },
        [LN_2] = { LAYER "post_attention_layernorm.weight", one },
        [LN_2_BIAS] = { LAYER "post_attention_layernorm.bias", zero },
        [QKV] = { LAYER "attention.query_key_value.weight",
                  { HR_PARAM_MATRIX, D, 3 * D, small, false, true } },
        [QKV_BIAS] = { LAYER "attention.query_key_value.bias", qkv_bias },
        [DENSE] = { LAYER "attention.dense.weight", { HR_PARAM_MATRIX, D, D, wang, false, true } },
        [DENSE_BIAS] = { LAYER "attention.dense.bias", zero },
        [UP] = { LAYER "mlp.dense_h_to_4h.weight",
                 { HR_PARAM_MATRIX, D, F, small, false, true, .place = HR_MLP_GATE } },
        [UP_BIAS] = { LAYER "mlp.dense_h_to_4h.bias", up_bias },
        [DOWN] = { LAYER "mlp.dense_4h_to_h.weight",
                   { HR_PARAM_MATRIX, F, D, wang, false, true, .place = HR_MLP_DOWN } },
        [DOWN_BIAS] = { LAYER "mlp.dense_4h_to_h.bias", zero },
    };
    model->parallel = config->model.parallel_residual;
    hr_block_table(builder, config, model, small, "gpt_neox.embed_in.weight");
    hr_block_layers(builder, model, weights, WEIGHTS);
    model->final_gain = hr_build_param(builder, one, "gpt_neox.final_layer_norm.weight");
    model->final_bias = hr_build_param(builder, zero, "gpt_neox.final_layer_norm.bias");
    hr_block_head(builder, config, model, small, "embed_out.weight");
}

/* Elements of a head with RoPE; even. */
static int32_t rotary(const hr_config *config)
{
    const int64_t head_width = config->model.d_model / config->model.n_heads;
    return (int32_t)((double)head_width * config->model.rotary_fraction) / 2 * 2;
}

static void tables(hr_builder *builder, const hr_config *config, hr_model *model)
{
    model->rope_table = HR_NONE;
    if (rotary(config) > 0)
        model->rope_table = hr_build_rope_table(builder, hr_config_longest(config), rotary(config),
                                                config->model.rope_theta,
                                                (hr_rope_scaling){ HR_ROPE_NONE });
}

static int32_t attention(hr_builder *builder, const hr_config *config, const hr_model *model,
                         const hr_layer *layer, hr_block_rows rows)
{
    const int32_t *w = layer->weights;
    const int32_t norm = hr_build_norm(builder, "norm_1", rows.input, w[LN_1], w[LN_1_BIAS],
                                       config->model.norm_eps);
    int32_t qkv = hr_block_product(builder, "qkv", norm, w[QKV], w[QKV_BIAS], HR_ACT_NONE, HR_NONE,
                                   hr_block_qkv);
    hr_attention_attr attr = hr_block_attention(config, layer);
    attr.k_offset = attr.head_width;
    attr.v_offset = 2 * attr.head_width;
    attr.q_head_stride = attr.k_head_stride = attr.v_head_stride = 3 * attr.head_width;
    if (model->rope_table != HR_NONE)
        qkv = hr_build_rope(builder, "qkv_rotated", qkv, model->rope_table,
                            (hr_rope_attr){ .rotary = rotary(config),
                                            .heads = attr.H,
                                            .runs = 2,
                                            .offset = { 0, attr.k_offset },
                                            .head_stride = attr.q_head_stride });
    hr_block_mark(builder, qkv, hr_block_qkv);
    const int32_t o = hr_build_attention(builder, "attention", qkv, HR_NONE, HR_NONE, attr);
    if (model->parallel)
        return hr_block_join(builder, config, "attention_out", o, w[DENSE], w[DENSE_BIAS],
                             rows.residual);
    return hr_block_join_mid(builder, config, "attention_out", o, w[DENSE], w[DENSE_BIAS],
                             rows.residual);
}

static int32_t mlp(hr_builder *builder, const hr_config *config, const hr_model *model,
                   const hr_layer *layer, hr_block_rows rows)
{
    const int32_t *w = layer->weights;
    (void)model;
    const int32_t norm = hr_build_norm(builder, "norm_2", rows.input, w[LN_2], w[LN_2_BIAS],
                                       config->model.norm_eps);
    const int32_t up = hr_block_product(builder, "up", norm, w[UP], w[UP_BIAS], HR_ACT_GELU,
                                        HR_NONE, 0);
    return hr_block_join(builder, config, "layer_out", up, w[DOWN], w[DOWN_BIAS], rows.residual);
}

static int32_t forward(hr_builder *builder, const hr_config *config, const hr_model *model,
                       int32_t ids)
{
    builder->block = HR_BLOCK_EMBED;
    int32_t h = hr_block_embed(builder, "embedding", ids, model->table, HR_NONE, 0);
    h = hr_block_stack(builder, config, model, h, attention, mlp);
    return hr_block_end(builder, config, model, h);
}

const hr_family_spec hr_family_gpt_neox = {
    .name = "gpt_neox",
    .traits = HR_ROTATES_SHARE | HR_MAY_TIE,
    .initialization = "normal(sqrt(2 / (5 d_model))) (small_init); attention output, MLP "
                      "down-projection normal(2 / (layers sqrt(d_model))) (wang_init); biases 0, "
                      "norms 1",
    .params = params,
    .tables = tables,
    .forward = forward
};
