/* SPDX-License-Identifier: Apache-2.0 */
/* model/llama.c - Llama: RMSNorm, rotary on whole heads, several queries to a key, a gated MLP, no
 * bias, an untied head.
 *
 *     h = h + attention(rope(RMS_1(h) wq), rope(RMS_1(h) wk), RMS_1(h) wv) wo
 *     h = h + (silu(RMS_2(h) wgate) o (RMS_2(h) wup)) wdown
 *
 * Source   Touvron et al. 2023, arXiv:2302.13971; grouped queries: Ainslie et al. 2023,
 *          arXiv:2305.13245. */
#include <stddef.h>

#include "model/blocks.h"
#include "model/family.h"
#include "ops/attention/attention_build.h"
#include "ops/embed/embed_build.h"
#include "ops/glu/glu_build.h"
#include "ops/linear/linear_build.h"
#include "ops/norm/norm_build.h"
#include "ops/rope/rope_build.h"

enum { WQ, WK, WV, WO, GATE, UP, DOWN, NORM_1, NORM_2 };

#define STD 0.02
#define LAYER "model.layers.%lld."

static void params(hr_builder *builder, const hr_config *config, hr_model *model)
{
    const int64_t D = config->model.d_model, F = config->model.d_ff, V = config->model.vocab_size;
    const int64_t head_dim = hr_config_head_dim(config);
    const int64_t Q = config->model.n_heads * head_dim, K = hr_config_kv_heads(config) * head_dim;
    const hr_param_shape one = { HR_PARAM_VECTOR, D, 0, 1, true, false };
    const struct {
        const char *name;
        hr_param_shape shape;
    } weights[] = {
        [WQ] = { LAYER "self_attn.q_proj.weight", { HR_PARAM_MATRIX, D, Q, STD, false, true } },
        [WK] = { LAYER "self_attn.k_proj.weight", { HR_PARAM_MATRIX, D, K, STD, false, true } },
        [WV] = { LAYER "self_attn.v_proj.weight", { HR_PARAM_MATRIX, D, K, STD, false, true } },
        [WO] = { LAYER "self_attn.o_proj.weight", { HR_PARAM_MATRIX, Q, D, STD, false, true } },
        [GATE] = { LAYER "mlp.gate_proj.weight", { HR_PARAM_MATRIX, D, F, STD, false, true } },
        [UP] = { LAYER "mlp.up_proj.weight", { HR_PARAM_MATRIX, D, F, STD, false, true } },
        [DOWN] = { LAYER "mlp.down_proj.weight", { HR_PARAM_MATRIX, F, D, STD, false, true } },
        [NORM_1] = { LAYER "input_layernorm.weight", one },
        [NORM_2] = { LAYER "post_attention_layernorm.weight", one },
    };
    model->table = hr_build_param(builder, (hr_param_shape){ HR_PARAM_TABLE, V, D, STD },
                                  "model.embed_tokens.weight");
    model->positions = HR_NONE;
    for (int64_t i = 0; i < config->model.n_layers; i++) {
        builder->layer = (int16_t)i;
        for (size_t w = 0; w < sizeof weights / sizeof *weights; w++)
            model->layers[i][w] = hr_build_param(builder, weights[w].shape, weights[w].name,
                                                 (long long)i);
    }
    builder->layer = HR_NONE;
    model->final_gain = hr_build_param(builder, one, "model.norm.weight");
    model->final_bias = HR_NONE;
    model->head = hr_build_param(
        builder, (hr_param_shape){ HR_PARAM_MATRIX, D, V, STD, false, true }, "lm_head.weight");
}

static void tables(hr_builder *builder, const hr_config *config, hr_model *model)
{
    const hr_rope_scaling scaling = { config->model.rope_scaling.kind,
                                      config->model.rope_scaling.factor,
                                      config->model.rope_scaling.low_freq_factor,
                                      config->model.rope_scaling.high_freq_factor,
                                      config->model.rope_scaling.original_positions };
    model->rope_table = hr_build_rope_table(builder, config->train.seq_len,
                                            (int32_t)hr_config_head_dim(config),
                                            config->model.rope_theta, scaling);
}

static int32_t project(hr_builder *builder, const char *name, int32_t x, int32_t weight,
                       hr_intermediate mark)
{
    const int32_t y = hr_build_linear(builder, name, x, weight, HR_NONE, HR_ACT_NONE, HR_NONE);
    return hr_build_mark(builder, y, mark);
}

static int32_t rotate(hr_builder *builder, const char *name, int32_t x, const hr_model *model,
                      int32_t heads, int64_t head_dim, hr_intermediate mark)
{
    const hr_rope_attr attr = {
        .rotary = (int32_t)head_dim, .heads = heads, .runs = 1, .head_stride = head_dim
    };
    return hr_build_mark(builder, hr_build_rope(builder, name, x, model->rope_table, attr), mark);
}

static int32_t attention(hr_builder *builder, const hr_config *config, const hr_model *model,
                         const int32_t *w, int32_t h)
{
    const hr_attention_attr attr = hr_block_attention(config);
    const int32_t norm = hr_build_rms_norm(builder, "norm_1", h, w[NORM_1], config->model.norm_eps);
    const int32_t q = project(builder, "q", norm, w[WQ], HR_INTERMEDIATE_Q);
    const int32_t k = project(builder, "k", norm, w[WK], HR_INTERMEDIATE_K);
    const int32_t v = project(builder, "v", norm, w[WV], HR_INTERMEDIATE_V);
    const int32_t turned_q = rotate(builder, "q_rotated", q, model, attr.H, attr.head_width,
                                    HR_INTERMEDIATE_Q);
    const int32_t turned_k = rotate(builder, "k_rotated", k, model, attr.G, attr.head_width,
                                    HR_INTERMEDIATE_K);
    const int32_t o = hr_build_attention(builder, "attention", turned_q, turned_k, v, attr);
    return hr_block_join_mid(builder, config, "attention_out", o, w[WO], HR_NONE, h);
}

static int32_t mlp(hr_builder *builder, const hr_config *config, const int32_t *w, int32_t h)
{
    const int32_t norm = hr_build_rms_norm(builder, "norm_2", h, w[NORM_2], config->model.norm_eps);
    const int32_t gate = project(builder, "gate", norm, w[GATE], HR_INTERMEDIATE_GATE);
    const int32_t up = project(builder, "up", norm, w[UP], HR_INTERMEDIATE_UP);
    const int32_t gated = hr_build_glu(builder, "gated", gate, up, HR_GLU_SILU);
    return hr_block_join(builder, config, "layer_out", gated, w[DOWN], HR_NONE, h);
}

static int32_t forward(hr_builder *builder, const hr_config *config, const hr_model *model,
                       int32_t ids)
{
    builder->block = HR_BLOCK_EMBED;
    int32_t h = hr_build_embed(builder, "embedding", ids, model->table, HR_NONE, 0);
    for (int64_t i = 0; i < config->model.n_layers; i++) {
        builder->layer = (int16_t)i;
        builder->block = HR_BLOCK_ATTENTION;
        h = attention(builder, config, model, model->layers[i], h);
        builder->block = HR_BLOCK_MLP;
        h = mlp(builder, config, model->layers[i], h);
    }
    builder->layer = HR_NONE;
    builder->block = HR_BLOCK_NONE;
    return hr_build_rms_norm(builder, "final_norm", h, model->final_gain, config->model.norm_eps);
}

const hr_family_spec hr_family_llama = { .name = "llama",
                                         .architecture = "LlamaForCausalLM",
                                         .initialisation = "normal 0.02; norms 1",
                                         .params = params,
                                         .tables = tables,
                                         .forward = forward };
