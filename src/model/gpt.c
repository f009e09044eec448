/* SPDX-License-Identifier: Apache-2.0 */
/* model/gpt.c - the decoder of GPT-2, by the form of a family. */
#include "model/gpt.h"

#include <math.h>
#include <string.h>

#include "ops/attention/attention_build.h"
#include "ops/linear/linear_build.h"
#include "ops/norm/norm_build.h"

#define STD 0.02

static hr_param_shape shape_of(const hr_config *config, const hr_model *model, hr_gpt_weight weight)
{
    const hr_gpt_form *form = model->gpt;
    const int64_t D = config->model.d_model, F = config->model.d_ff;
    const double out = form->scales_out ? STD / sqrt(2.0 * (double)config->model.n_layers) : STD;
    const bool outputs_first = !(model->traits & HR_STORES_INPUTS_FIRST);
    switch (weight) {
    case HR_GPT_LN_1:
    case HR_GPT_LN_2: return (hr_param_shape){ HR_PARAM_VECTOR, D, 0, 1, true, false };
    case HR_GPT_QKV:
        return (hr_param_shape){ HR_PARAM_MATRIX, D, 3 * D, STD, false, outputs_first };
    case HR_GPT_QKV_BIAS: return (hr_param_shape){ HR_PARAM_VECTOR, 3 * D, 0, 0, true, false };
    case HR_GPT_WQ:
    case HR_GPT_WK:
    case HR_GPT_WV: return (hr_param_shape){ HR_PARAM_MATRIX, D, D, STD, false, outputs_first };
    case HR_GPT_OUT: return (hr_param_shape){ HR_PARAM_MATRIX, D, D, out, false, outputs_first };
    case HR_GPT_UP:
        return (hr_param_shape){ HR_PARAM_MATRIX,     D, F, STD, false, outputs_first,
                                 .place = HR_MLP_GATE };
    case HR_GPT_UP_BIAS: return (hr_param_shape){ HR_PARAM_VECTOR, F, 0, 0, true, false };
    case HR_GPT_DOWN:
        return (hr_param_shape){ HR_PARAM_MATRIX,     F, D, out, false, outputs_first,
                                 .place = HR_MLP_DOWN };
    default: return (hr_param_shape){ HR_PARAM_VECTOR, D, 0, 0, true, false };
    }
}

/* From file order to the order of hr_gpt_weight. */
static void order(const hr_gpt_form *form, int32_t weights[HR_GPT_WEIGHTS])
{
    int32_t in_file[HR_GPT_WEIGHTS];
    memcpy(in_file, weights, sizeof in_file);
    for (int32_t i = 0; i < HR_GPT_WEIGHTS; i++) weights[i] = HR_NONE;
    for (int32_t i = 0; form->weights[i].name; i++) weights[form->weights[i].weight] = in_file[i];
}

void hr_gpt_params(hr_builder *builder, const hr_config *config, hr_model *model)
{
    const hr_gpt_form *form = model->gpt;
    const hr_param_shape positions = { HR_PARAM_ADDEND,
                                       hr_config_positions(config) + form->positions_skipped,
                                       config->model.d_model, STD, .plain = true };
    hr_layer_weight weights[HR_GPT_WEIGHTS] = { { NULL } };
    for (int32_t i = 0; form->weights[i].name; i++)
        weights[i] = (hr_layer_weight){ form->weights[i].name,
                                        shape_of(config, model, form->weights[i].weight) };
    hr_block_table(builder, config, model, STD, form->table);
    model->positions = hr_build_param(builder, positions, "%s", form->positions);
    hr_block_layers(builder, model, weights, HR_GPT_WEIGHTS);
    for (int64_t l = 0; l < model->layer_count && model->layers[l].weights; l++)
        order(form, model->layers[l].weights);
    model->final_gain = hr_build_param(builder, shape_of(config, model, HR_GPT_LN_1), "%s",
                                       form->final_gain);
    model->final_bias = hr_build_param(builder, shape_of(config, model, HR_GPT_LN_1_BIAS), "%s",
                                       form->final_bias);
    hr_block_head(builder, config, model, STD, "lm_head.weight");
}

static int32_t attention(hr_builder *builder, const hr_config *config, const hr_model *model,
                         const hr_layer *layer, hr_block_rows rows)
{
    const int32_t *w = layer->weights;
    const int32_t norm = hr_build_norm(builder, "norm_1", rows.input, w[HR_GPT_LN_1],
                                       w[HR_GPT_LN_1_BIAS], config->model.norm_eps);
    hr_attention_attr attr = hr_block_attention(config, layer);
    int32_t q, k = HR_NONE, v = HR_NONE;
    if (model->gpt->plain_scores) attr.scale = 1;
    if (w[HR_GPT_QKV] != HR_NONE) {
        q = hr_block_product(builder, "qkv", norm, w[HR_GPT_QKV], w[HR_GPT_QKV_BIAS], HR_ACT_NONE,
                             HR_NONE, hr_block_qkv);
        attr.k_offset = config->model.d_model;
        attr.v_offset = 2 * config->model.d_model;
    } else {
        q = hr_block_project(builder, "q", norm, w[HR_GPT_WQ], w[HR_GPT_BQ], HR_INTERMEDIATE_Q);
        k = hr_block_project(builder, "k", norm, w[HR_GPT_WK], w[HR_GPT_BK], HR_INTERMEDIATE_K);
        v = hr_block_project(builder, "v", norm, w[HR_GPT_WV], w[HR_GPT_BV], HR_INTERMEDIATE_V);
    }
    const int32_t o = hr_build_attention(builder, "attention", q, k, v, attr);
    return hr_block_join_mid(builder, config, "attention_out", o, w[HR_GPT_OUT], w[HR_GPT_OUT_BIAS],
                             rows.residual);
}

static int32_t mlp(hr_builder *builder, const hr_config *config, const hr_model *model,
                   const hr_layer *layer, hr_block_rows rows)
{
    const int32_t *w = layer->weights;
    const int32_t norm = hr_build_norm(builder, "norm_2", rows.input, w[HR_GPT_LN_2],
                                       w[HR_GPT_LN_2_BIAS], config->model.norm_eps);
    const int32_t up = hr_block_product(builder, "up", norm, w[HR_GPT_UP], w[HR_GPT_UP_BIAS],
                                        model->gpt->act, HR_NONE, 0);
    return hr_block_join(builder, config, "layer_out", up, w[HR_GPT_DOWN], w[HR_GPT_DOWN_BIAS],
                         rows.residual);
}

int32_t hr_gpt_forward(hr_builder *builder, const hr_config *config, const hr_model *model,
                       int32_t ids)
{
    return hr_block_learned_positions(builder, config, model, ids, model->gpt->positions_skipped,
                                      attention, mlp);
}
