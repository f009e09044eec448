/* SPDX-License-Identifier: Apache-2.0 */
/* model/yxanul.c - Yxanul: Llama's decoder between a factorised embedding and its transpose.
 *
 *     h = E[ids] P^T ... logits = (RMS(h) P) E^T
 *
 * E is [V, r] and P is [d, r]; each is used twice, and its gradients add. With an untied head,
 * logits = RMS(h) W, and E and P are used once. */
#include <math.h>

#include "model/llama.h"
#include "ops/linear/linear_build.h"

#define STD 0.02
#define LAYER "layers.%lld."

static void params(hr_builder *builder, const hr_config *config, hr_model *model)
{
    const int64_t D = config->model.d_model, F = config->model.d_ff, V = config->model.vocab_size;
    const int64_t head_dim = hr_config_head_dim(config), R = hr_config_embedding_rank(config);
    const int64_t Q = config->model.n_heads * head_dim, K = hr_config_kv_heads(config) * head_dim;
    const double out = STD / sqrt(2.0 * (double)config->model.n_layers);
    /* x = E[ids] P^T sums r products. With this factor it has the deviation of E, like an embedding
     * that is not factorised. With 0.02 for both it would be 0.02^2 sqrt(r), 0.002 at r = 32, and
     * so would be the scale of the gradient that reaches the layers. */
    const double factor = 1 / sqrt((double)R);
    const hr_param_shape one = { HR_PARAM_VECTOR, D, 0, 1, true, false };
    const hr_layer_weight weights[HR_LLAMA_WEIGHTS] = {
        [HR_LLAMA_WQ] = { LAYER "wq", { HR_PARAM_MATRIX, D, Q, STD, false, false } },
        [HR_LLAMA_WK] = { LAYER "wk", { HR_PARAM_MATRIX, D, K, STD, false, false } },
        [HR_LLAMA_WV] = { LAYER "wv", { HR_PARAM_MATRIX, D, K, STD, false, false } },
        [HR_LLAMA_WO] = { LAYER "wo", { HR_PARAM_MATRIX, Q, D, out, false, false } },
        [HR_LLAMA_GATE] = { LAYER "gate", { HR_PARAM_MATRIX, D, F, STD, .place = HR_MLP_GATE } },
        [HR_LLAMA_UP] = { LAYER "up", { HR_PARAM_MATRIX, D, F, STD, .place = HR_MLP_UP } },
        [HR_LLAMA_DOWN] = { LAYER "down", { HR_PARAM_MATRIX, F, D, out, .place = HR_MLP_DOWN } },
        [HR_LLAMA_NORM_1] = { LAYER "norm_attn", one },
        [HR_LLAMA_NORM_2] = { LAYER "norm_mlp", one },
    };
    const hr_param_shape tied = { HR_PARAM_MATRIX, R, V, STD, false, true, .looked_up = true };
    const hr_param_shape alone = { HR_PARAM_TABLE, V, R, STD, false, false };
    model->table = hr_build_param(builder, model->tied ? tied : alone, "E");
    model->factor = hr_build_param(
        builder, (hr_param_shape){ HR_PARAM_MATRIX, D, R, factor, .plain = true }, "P");
    model->positions = HR_NONE;
    hr_block_layers(builder, model, weights, HR_LLAMA_WEIGHTS);
    model->final_gain = hr_build_param(builder, one, "norm_f");
    model->final_bias = HR_NONE;
    hr_block_head(builder, config, model, STD, "head");
}

static int32_t forward(hr_builder *builder, const hr_config *config, const hr_model *model,
                       int32_t ids)
{
    builder->block = HR_BLOCK_EMBED;
    const int32_t e = hr_block_embed(builder, "token", ids, model->table, HR_NONE, 0);
    const int32_t h = hr_build_linear_back(builder, "embedding", e, model->factor);
    const int32_t norm = hr_llama_layers(builder, config, model, h);
    if (norm == HR_NONE) return HR_NONE; /* the objective is of layers (model/blocks.h) */
    if (!model->tied) return norm;
    return hr_build_linear(builder, "final_factor", norm, model->factor, HR_NONE, HR_ACT_NONE,
                           HR_NONE);
}

const hr_family_spec hr_family_yxanul = {
    .name = "yxanul",
    .traits = HR_GATES | HR_READS_GROUPS | HR_PARTS_SEQUENCES | HR_SLIDES | HR_READS_RANK |
              HR_ROTATES_ALL | HR_MAY_TIE | HR_TIES | HR_STORES_INPUTS_FIRST,
    .initialization = "normal(0.02); embedding projection normal(1 / sqrt(rank)); attention output "
                      "and MLP down-projection normal(0.02 / sqrt(2 n_layers)); norms 1",
    .kind = hr_layer_type,
    .params = params,
    .tables = hr_llama_tables,
    .forward = forward
};
