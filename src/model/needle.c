/* SPDX-License-Identifier: Apache-2.0 */
/* model/needle.c - the decoder of "Pythia-70M on a home-made framework": learned positions, a norm
 * of its own before each of q, k and v, sequential residuals, ReLU, an untied head without bias.
 *
 *     h = h + (attention(LN_q(h) wq, LN_k(h) wk, LN_v(h) wv)) wo
 *     h = h + relu(LN_mlp(h) w1 + b1) w2 + b2 */
#include <math.h>

#include "model/blocks.h"
#include "model/family.h"
#include "ops/attention/attention_build.h"
#include "ops/embed/embed_build.h"
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
    B2
};

static void norm_params(hr_builder *builder, int64_t D, int32_t pair[2], const char *name,
                        int64_t i)
{
    const hr_param_shape one = { HR_PARAM_VECTOR, D, 0, 1, true, false };
    const hr_param_shape zero = { HR_PARAM_VECTOR, D, 0, 0, true, false };
    pair[0] = hr_build_param(builder, one, "layers.%lld.%s.weight", (long long)i, name);
    pair[1] = hr_build_param(builder, zero, "layers.%lld.%s.bias", (long long)i, name);
}

static void params(hr_builder *builder, const hr_config *config, hr_model *model)
{
    const int64_t D = config->model.d_model, F = config->model.d_ff, V = config->model.vocab_size;
    const double std = 0.02, std_out = 0.02 / sqrt(2.0 * (double)config->model.n_layers);
    const hr_param_shape square = { HR_PARAM_MATRIX, D, D, std, false, false };
    model->table = hr_build_param(builder, (hr_param_shape){ HR_PARAM_TABLE, V, D, std },
                                  "tok_emb");
    model->positions = hr_build_param(
        builder, (hr_param_shape){ HR_PARAM_TABLE, config->train.seq_len, D, std }, "pos_emb");
    for (int64_t i = 0; i < config->model.n_layers; i++) {
        int32_t *w = model->layers[i];
        const long long n = (long long)i;
        builder->layer = (int16_t)i;
        norm_params(builder, D, &w[LN_Q], "ln_q", i);
        norm_params(builder, D, &w[LN_K], "ln_k", i);
        norm_params(builder, D, &w[LN_V], "ln_v", i);
        w[WQ] = hr_build_param(builder, square, "layers.%lld.wq", n);
        w[WK] = hr_build_param(builder, square, "layers.%lld.wk", n);
        w[WV] = hr_build_param(builder, square, "layers.%lld.wv", n);
        w[WO] = hr_build_param(builder, (hr_param_shape){ HR_PARAM_MATRIX, D, D, std_out },
                               "layers.%lld.wo", n);
        norm_params(builder, D, &w[LN_MLP], "ln_mlp", i);
        w[W1] = hr_build_param(builder, (hr_param_shape){ HR_PARAM_MATRIX, D, F, std },
                               "layers.%lld.w1", n);
        w[B1] = hr_build_param(builder, (hr_param_shape){ HR_PARAM_VECTOR, F, 0, 0, true },
                               "layers.%lld.b1", n);
        w[W2] = hr_build_param(builder, (hr_param_shape){ HR_PARAM_MATRIX, F, D, std_out },
                               "layers.%lld.w2", n);
        w[B2] = hr_build_param(builder, (hr_param_shape){ HR_PARAM_VECTOR, D, 0, 0, true },
                               "layers.%lld.b2", n);
    }
    builder->layer = HR_NONE;
    model->final_gain = hr_build_param(builder, (hr_param_shape){ HR_PARAM_VECTOR, D, 0, 1, true },
                                       "ln_f.weight");
    model->final_bias = hr_build_param(builder, (hr_param_shape){ HR_PARAM_VECTOR, D, 0, 0, true },
                                       "ln_f.bias");
    model->head = hr_build_param(builder, (hr_param_shape){ HR_PARAM_MATRIX, D, V, std }, "head");
}

static int32_t project(hr_builder *builder, const char *name, int32_t x, int32_t weight,
                       hr_intermediate mark)
{
    const int32_t y = hr_build_linear(builder, name, x, weight, HR_NONE, HR_ACT_NONE, HR_NONE);
    return hr_build_mark(builder, y, mark);
}

static int32_t attention(hr_builder *builder, const hr_config *config, const int32_t *w, int32_t h)
{
    const double eps = config->model.norm_eps;
    const int32_t norm_q = hr_build_norm(builder, "norm_q", h, w[LN_Q], w[LN_Q_BIAS], eps);
    const int32_t q = project(builder, "q", norm_q, w[WQ], HR_INTERMEDIATE_Q);
    const int32_t norm_k = hr_build_norm(builder, "norm_k", h, w[LN_K], w[LN_K_BIAS], eps);
    const int32_t k = project(builder, "k", norm_k, w[WK], HR_INTERMEDIATE_K);
    const int32_t norm_v = hr_build_norm(builder, "norm_v", h, w[LN_V], w[LN_V_BIAS], eps);
    const int32_t v = project(builder, "v", norm_v, w[WV], HR_INTERMEDIATE_V);
    const int32_t o = hr_build_attention(builder, "attention", q, k, v, hr_block_attention(config));
    return hr_block_join_mid(builder, config, "attention_out", o, w[WO], HR_NONE, h);
}

static int32_t mlp(hr_builder *builder, const hr_config *config, const int32_t *w, int32_t h)
{
    const int32_t norm = hr_build_norm(builder, "norm_mlp", h, w[LN_MLP], w[LN_MLP_BIAS],
                                       config->model.norm_eps);
    const int32_t up = hr_build_linear(builder, "up", norm, w[W1], w[B1], HR_ACT_RELU, HR_NONE);
    return hr_block_join(builder, config, "layer_out", up, w[W2], w[B2], h);
}

static int32_t forward(hr_builder *builder, const hr_config *config, const hr_model *model,
                       int32_t ids)
{
    builder->block = HR_BLOCK_EMBED;
    int32_t h = hr_build_embed(builder, "embedding", ids, model->table, model->positions, 0);
    for (int64_t i = 0; i < config->model.n_layers; i++) {
        builder->layer = (int16_t)i;
        builder->block = HR_BLOCK_ATTENTION;
        h = attention(builder, config, model->layers[i], h);
        builder->block = HR_BLOCK_MLP;
        h = mlp(builder, config, model->layers[i], h);
    }
    builder->layer = HR_NONE;
    builder->block = HR_BLOCK_NONE;
    return hr_build_norm(builder, "final_norm", h, model->final_gain, model->final_bias,
                         config->model.norm_eps);
}

const hr_family_spec hr_family_needle = {
    .name = "needle",
    .initialisation = "normal 0.02; o and the second MLP matrix 0.02 / sqrt(2 layers); "
                      "biases 0, norms 1",
    .params = params,
    .forward = forward
};
