/* SPDX-License-Identifier: Apache-2.0 */
/* model/needle.c - the decoder of "Pythia-70M on a home-made framework": learned positions, a
 * separate norm before each of q, k and v, sequential residuals, ReLU, an untied head without bias.
 *
 *     h = h + (attention(LN_q(h) wq, LN_k(h) wk, LN_v(h) wv)) wo
 *     h = h + relu(LN_mlp(h) w1 + b1) w2 + b2 */
#include <math.h>

#include "model/blocks.h"
#include "ops/attention/attention_build.h"
#include "ops/linear/linear_build.h"
#include "ops/norm/norm_build.h"

enum {
    LN_Q,
    LN_Q_BIAS,
    LN_K,
    LN_K_BIAS,
    LN_V,
    LN_V_BIAS,
    WQ,
    WK,
    WV,
    WO,
    LN_MLP,
    LN_MLP_BIAS,
    W1,
    B1,
    W2,
    B2,
    WEIGHTS
};

#define LAYER "layers.%lld."

static void params(hr_builder *builder, const hr_config *config, hr_model *model)
{
    const int64_t D = config->model.d_model, F = config->model.d_ff, V = config->model.vocab_size;
    const double std = 0.02, std_out = 0.02 / sqrt(2.0 * (double)config->model.n_layers);
    const hr_param_shape square = { HR_PARAM_MATRIX, D, D, std, false, false };
    const hr_param_shape one = { HR_PARAM_VECTOR, D, 0, 1, true, false };
    const hr_param_shape zero = { HR_PARAM_VECTOR, D, 0, 0, true, false };
    const hr_layer_weight weights[] = {
        [LN_Q] = { LAYER "ln_q.weight", one },
        [LN_Q_BIAS] = { LAYER "ln_q.bias", zero },
        [LN_K] = { LAYER "ln_k.weight", one },
        [LN_K_BIAS] = { LAYER "ln_k.bias", zero },
        [LN_V] = { LAYER "ln_v.weight", one },
        [LN_V_BIAS] = { LAYER "ln_v.bias", zero },
        [WQ] = { LAYER "wq", square },
        [WK] = { LAYER "wk", square },
        [WV] = { LAYER "wv", square },
        [WO] = { LAYER "wo", { HR_PARAM_MATRIX, D, D, std_out, false, false } },
        [LN_MLP] = { LAYER "ln_mlp.weight", one },
        [LN_MLP_BIAS] = { LAYER "ln_mlp.bias", zero },
        [W1] = { LAYER "w1", { HR_PARAM_MATRIX, D, F, std, false, false, .place = HR_MLP_GATE } },
        [B1] = { LAYER "b1", { HR_PARAM_VECTOR, F, 0, 0, true, false } },
        [W2] = { LAYER "w2",
                 { HR_PARAM_MATRIX, F, D, std_out, false, false, .place = HR_MLP_DOWN } },
        [B2] = { LAYER "b2", zero },
    };
    const hr_param_shape positions = { HR_PARAM_ADDEND, hr_config_positions(config), D, std,
                                       .plain = true };
    hr_block_table(builder, config, model, std, "tok_emb");
    model->positions = hr_build_param(builder, positions, "pos_emb");
    hr_block_layers(builder, model, weights, WEIGHTS);
    model->final_gain = hr_build_param(builder, one, "ln_f.weight");
    model->final_bias = hr_build_param(builder, zero, "ln_f.bias");
    model->head = hr_build_param(builder, (hr_param_shape){ HR_PARAM_MATRIX, D, V, std }, "head");
}

static int32_t attention(hr_builder *builder, const hr_config *config, const hr_model *model,
                         const hr_layer *layer, hr_block_rows rows)
{
    const int32_t *w = layer->weights;
    (void)model;
    const double eps = config->model.norm_eps;
    const int32_t norm_q = hr_build_norm(builder, "norm_q", rows.input, w[LN_Q], w[LN_Q_BIAS], eps);
    const int32_t q = hr_block_project(builder, "q", norm_q, w[WQ], HR_NONE, HR_INTERMEDIATE_Q);
    const int32_t norm_k = hr_build_norm(builder, "norm_k", rows.input, w[LN_K], w[LN_K_BIAS], eps);
    const int32_t k = hr_block_project(builder, "k", norm_k, w[WK], HR_NONE, HR_INTERMEDIATE_K);
    const int32_t norm_v = hr_build_norm(builder, "norm_v", rows.input, w[LN_V], w[LN_V_BIAS], eps);
    const int32_t v = hr_block_project(builder, "v", norm_v, w[WV], HR_NONE, HR_INTERMEDIATE_V);
    const int32_t o = hr_build_attention(builder, "attention", q, k, v,
                                         hr_block_attention(config, layer));
    return hr_block_join_mid(builder, config, "attention_out", o, w[WO], HR_NONE, rows.residual);
}

static int32_t mlp(hr_builder *builder, const hr_config *config, const hr_model *model,
                   const hr_layer *layer, hr_block_rows rows)
{
    const int32_t *w = layer->weights;
    (void)model;
    const int32_t norm = hr_build_norm(builder, "norm_mlp", rows.input, w[LN_MLP], w[LN_MLP_BIAS],
                                       config->model.norm_eps);
    const int32_t up = hr_block_product(builder, "up", norm, w[W1], w[B1], HR_ACT_RELU, HR_NONE, 0);
    return hr_block_join(builder, config, "layer_out", up, w[W2], w[B2], rows.residual);
}

static int32_t forward(hr_builder *builder, const hr_config *config, const hr_model *model,
                       int32_t ids)
{
    return hr_block_learned_positions(builder, config, model, ids, 0, attention, mlp);
}

const hr_family_spec hr_family_needle = {
    .name = "needle",
    .traits = HR_LEARNS_POSITIONS | HR_STORES_INPUTS_FIRST,
    .initialization = "normal(0.02); attention output and MLP down-projection normal(0.02 / sqrt(2 "
                      "n_layers)); biases 0, norms 1",
    .params = params,
    .forward = forward
};
