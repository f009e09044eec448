/* SPDX-License-Identifier: Apache-2.0 */
/* model/llama.c - Llama: RMSNorm, RoPE on whole heads, grouped queries, a gated MLP, no biases, a
 * tied or untied head.
 *
 * Source   Touvron et al. 2023, arXiv:2302.13971; grouped queries: Ainslie et al. 2023,
 *          arXiv:2305.13245. */
#include "model/llama.h"

#include <stddef.h>

#include "headroom/stages.h"
#include "ops/attention/attention_build.h"
#include "ops/glu/glu_build.h"
#include "ops/linear/linear_build.h"
#include "ops/norm/norm_build.h"
#include "ops/rope/rope_build.h"

#define STD 0.02
#define LAYER "model.layers.%lld."

void hr_llama_params(hr_builder *builder, const hr_config *config, hr_model *model,
                     hr_llama_form form)
{
    const int64_t D = config->model.d_model, F = config->model.d_ff;
    const int64_t head_dim = hr_config_head_dim(config);
    const int64_t Q = config->model.n_heads * head_dim, K = hr_config_kv_heads(config) * head_dim;
    const hr_param_shape one = { HR_PARAM_VECTOR, D, 0, 1, true, false };
    const hr_param_shape head = { HR_PARAM_VECTOR, head_dim, 0, 1, true, false };
    const hr_param_shape bq = { HR_PARAM_VECTOR, Q, 0, 0, true, false };
    const hr_param_shape bk = { HR_PARAM_VECTOR, K, 0, 0, true, false };
    const bool bias = form.qkv_bias, norms = form.head_norms;
    hr_layer_weight weights[HR_LLAMA_WEIGHTS] = {
        [HR_LLAMA_WQ] = { LAYER "self_attn.q_proj.weight",
                          { HR_PARAM_MATRIX, D, Q, STD, false, true } },
        [HR_LLAMA_WK] = { LAYER "self_attn.k_proj.weight",
                          { HR_PARAM_MATRIX, D, K, STD, false, true } },
        [HR_LLAMA_WV] = { LAYER "self_attn.v_proj.weight",
                          { HR_PARAM_MATRIX, D, K, STD, false, true } },
        [HR_LLAMA_WO] = { LAYER "self_attn.o_proj.weight",
                          { HR_PARAM_MATRIX, Q, D, STD, false, true } },
        [HR_LLAMA_GATE] = { LAYER "mlp.gate_proj.weight",
                            { HR_PARAM_MATRIX, D, F, STD, false, true, .place = HR_MLP_GATE } },
        [HR_LLAMA_UP] = { LAYER "mlp.up_proj.weight",
                          { HR_PARAM_MATRIX, D, F, STD, false, true, .place = HR_MLP_UP } },
        [HR_LLAMA_DOWN] = { LAYER "mlp.down_proj.weight",
                            { HR_PARAM_MATRIX, F, D, STD, false, true, .place = HR_MLP_DOWN } },
        [HR_LLAMA_NORM_1] = { LAYER "input_layernorm.weight", one },
        [HR_LLAMA_NORM_2] = { LAYER "post_attention_layernorm.weight", one },
        [HR_LLAMA_BQ] = { bias ? LAYER "self_attn.q_proj.bias" : NULL, bq },
        [HR_LLAMA_BK] = { bias ? LAYER "self_attn.k_proj.bias" : NULL, bk },
        [HR_LLAMA_BV] = { bias ? LAYER "self_attn.v_proj.bias" : NULL, bk },
        [HR_LLAMA_NORM_Q] = { norms ? LAYER "self_attn.q_norm.weight" : NULL, head },
        [HR_LLAMA_NORM_K] = { norms ? LAYER "self_attn.k_norm.weight" : NULL, head },
    };
    hr_nsa_weights(config, weights + HR_LLAMA_NSA);
    hr_block_table(builder, config, model, STD, "model.embed_tokens.weight");
    hr_block_layers(builder, model, weights, HR_LLAMA_WEIGHTS);
    model->final_gain = hr_build_param(builder, one, "model.norm.weight");
    model->final_bias = HR_NONE;
    hr_block_head(builder, config, model, STD, "lm_head.weight");
}

/* The choices of the recipe are the values of the operation. */
_Static_assert((int)HR_ROPE_SCALING_NONE == HR_ROPE_NONE &&
                   (int)HR_ROPE_SCALING_LINEAR == HR_ROPE_LINEAR &&
                   (int)HR_ROPE_SCALING_LLAMA3 == HR_ROPE_LLAMA3 &&
                   (int)HR_ROPE_SCALING_YARN == HR_ROPE_YARN &&
                   (int)HR_ROPE_SCALING_DYNAMIC == HR_ROPE_DYNAMIC,
               "model.rope_scaling.kind");

void hr_llama_tables(hr_builder *builder, const hr_config *config, hr_model *model)
{
    const bool yarn = config->model.rope_scaling.kind == HR_ROPE_SCALING_YARN;
    const hr_rope_scaling scaling = {
        config->model.rope_scaling.kind,
        config->model.rope_scaling.factor,
        yarn ? config->model.rope_scaling.beta_slow : config->model.rope_scaling.low_freq_factor,
        yarn ? config->model.rope_scaling.beta_fast : config->model.rope_scaling.high_freq_factor,
        config->model.rope_scaling.original_positions,
        config->model.rope_scaling.attention_factor
    };
    model->rope_table = hr_build_rope_table(builder, hr_config_longest(config),
                                            (int32_t)hr_config_head_dim(config),
                                            config->model.rope_theta, scaling);
}

static int32_t rotate(hr_builder *builder, const char *name, int32_t x, const hr_model *model,
                      int32_t heads, int64_t head_dim, hr_intermediate mark)
{
    const hr_rope_attr attr = {
        .rotary = (int32_t)head_dim, .heads = heads, .runs = 1, .head_stride = head_dim
    };
    return hr_build_mark(builder, hr_build_rope(builder, name, x, model->rope_table, attr), mark);
}

/* The norm of each head of queries or keys, in families that have it. */
static int32_t norm_heads(hr_builder *builder, const hr_config *config, const char *name, int32_t x,
                          int32_t gain, hr_intermediate mark)
{
    if (gain == HR_NONE) return x;
    return hr_build_mark(builder, hr_build_rms_norm(builder, name, x, gain, config->model.norm_eps),
                         mark);
}

/* Keys and values of a branch of sparse attention: its own, or those of dense attention. */
static void project_branch(hr_builder *builder, const hr_model *model, const int32_t *w,
                           int32_t norm, int32_t branch, int32_t own, const hr_attention_attr *attr,
                           hr_nsa_keys *keys)
{
    if (w[own] == HR_NONE) return;
    const int32_t k = hr_block_project(builder, "k", norm, w[own], HR_NONE, HR_INTERMEDIATE_K);
    keys->v[branch] = hr_block_project(builder, "v", norm, w[own + 1], HR_NONE, HR_INTERMEDIATE_V);
    keys->k[branch] = rotate(builder, "k_rotated", k, model, attr->G, attr->head_width,
                             HR_INTERMEDIATE_K);
}

/* Attention over rotated keys. */
static int32_t attend(hr_builder *builder, const hr_config *config, const hr_model *model,
                      const int32_t *w, int32_t norm, int32_t q, int32_t k, int32_t v,
                      const hr_attention_attr *attr)
{
    hr_nsa_keys keys = { { k, k, k }, { v, v, v } };
    if (!hr_nsa_is_on(config)) return hr_build_attention(builder, "attention", q, k, v, *attr);
    project_branch(builder, model, w, norm, 0, HR_LLAMA_NSA + HR_NSA_COMPRESSED_K, attr, &keys);
    project_branch(builder, model, w, norm, 2, HR_LLAMA_NSA + HR_NSA_WINDOW_K, attr, &keys);
    return hr_build_nsa(builder, config, w + HR_LLAMA_NSA, norm, q, keys, attr);
}

static int32_t attention(hr_builder *builder, const hr_config *config, const hr_model *model,
                         const hr_layer *layer, hr_block_rows rows)
{
    const int32_t *w = layer->weights;
    const hr_attention_attr attr = hr_block_attention(config, layer);
    const int32_t norm = hr_build_rms_norm(builder, "norm_1", rows.input, w[HR_LLAMA_NORM_1],
                                           config->model.norm_eps);
    int32_t q = hr_block_project(builder, "q", norm, w[HR_LLAMA_WQ], w[HR_LLAMA_BQ],
                                 HR_INTERMEDIATE_Q);
    int32_t k = hr_block_project(builder, "k", norm, w[HR_LLAMA_WK], w[HR_LLAMA_BK],
                                 HR_INTERMEDIATE_K);
    const int32_t v = hr_block_project(builder, "v", norm, w[HR_LLAMA_WV], w[HR_LLAMA_BV],
                                       HR_INTERMEDIATE_V);
    q = norm_heads(builder, config, "q_norm", q, w[HR_LLAMA_NORM_Q], HR_INTERMEDIATE_Q);
    k = norm_heads(builder, config, "k_norm", k, w[HR_LLAMA_NORM_K], HR_INTERMEDIATE_K);
    q = rotate(builder, "q_rotated", q, model, attr.H, attr.head_width, HR_INTERMEDIATE_Q);
    k = rotate(builder, "k_rotated", k, model, attr.G, attr.head_width, HR_INTERMEDIATE_K);
    const int32_t o = attend(builder, config, model, w, norm, q, k, v, &attr);
    return hr_block_join_mid(builder, config, "attention_out", o, w[HR_LLAMA_WO], HR_NONE,
                             rows.residual);
}

static int32_t mlp(hr_builder *builder, const hr_config *config, const hr_model *model,
                   const hr_layer *layer, hr_block_rows rows)
{
    const int32_t *w = layer->weights;
    (void)model;
    const int32_t norm = hr_build_rms_norm(builder, "norm_2", rows.input, w[HR_LLAMA_NORM_2],
                                           config->model.norm_eps);
    const int32_t gate = hr_block_project(builder, "gate", norm, w[HR_LLAMA_GATE], HR_NONE,
                                          HR_INTERMEDIATE_GATE);
    const int32_t up = hr_block_project(builder, "up", norm, w[HR_LLAMA_UP], HR_NONE,
                                        HR_INTERMEDIATE_UP);
    const int32_t gated = hr_build_glu(builder, "gated", gate, up);
    return hr_block_join(builder, config, "layer_out", gated, w[HR_LLAMA_DOWN], HR_NONE,
                         rows.residual);
}

int32_t hr_llama_layers(hr_builder *builder, const hr_config *config, const hr_model *model,
                        int32_t h)
{
    h = hr_block_stack(builder, config, model, h, attention, mlp);
    return hr_block_end(builder, config, model, h);
}

int32_t hr_llama_forward(hr_builder *builder, const hr_config *config, const hr_model *model,
                         int32_t ids)
{
    builder->block = HR_BLOCK_EMBED;
    const int32_t h = hr_block_embed(builder, "embedding", ids, model->table, HR_NONE, 0);
    return hr_llama_layers(builder, config, model, h);
}

static void params(hr_builder *builder, const hr_config *config, hr_model *model)
{
    hr_llama_params(builder, config, model, (hr_llama_form){ .qkv_bias = false });
}

const hr_family_spec hr_family_llama = { .name = "llama",
                                         .traits = HR_GATES | HR_READS_GROUPS | HR_PARTS_SEQUENCES |
                                                   HR_SELECTS_KEYS | HR_SLIDES | HR_ROTATES_ALL |
                                                   HR_MAY_TIE,
                                         .initialization = "normal(0.02); norms 1",
                                         .kind = hr_layer_type,
                                         .params = params,
                                         .tables = hr_llama_tables,
                                         .forward = hr_llama_forward };
