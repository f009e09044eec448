/* SPDX-License-Identifier: Apache-2.0 */
/* model/opt.c - OPT, in the sizes with pre-norm: ReLU, biases, tied embeddings, and a table of
 * positions with two extra rows at the start.
 *
 * Source   Zhang et al. 2022, arXiv:2205.01068. */
#include "model/gpt.h"

#define MODEL "model.decoder."
#define LAYER MODEL "layers.%lld."

static const hr_gpt_form form = {
    .weights = { { HR_GPT_WK, LAYER "self_attn.k_proj.weight" },
                 { HR_GPT_BK, LAYER "self_attn.k_proj.bias" },
                 { HR_GPT_WV, LAYER "self_attn.v_proj.weight" },
                 { HR_GPT_BV, LAYER "self_attn.v_proj.bias" },
                 { HR_GPT_WQ, LAYER "self_attn.q_proj.weight" },
                 { HR_GPT_BQ, LAYER "self_attn.q_proj.bias" },
                 { HR_GPT_OUT, LAYER "self_attn.out_proj.weight" },
                 { HR_GPT_OUT_BIAS, LAYER "self_attn.out_proj.bias" },
                 { HR_GPT_LN_1, LAYER "self_attn_layer_norm.weight" },
                 { HR_GPT_LN_1_BIAS, LAYER "self_attn_layer_norm.bias" },
                 { HR_GPT_UP, LAYER "fc1.weight" },
                 { HR_GPT_UP_BIAS, LAYER "fc1.bias" },
                 { HR_GPT_DOWN, LAYER "fc2.weight" },
                 { HR_GPT_DOWN_BIAS, LAYER "fc2.bias" },
                 { HR_GPT_LN_2, LAYER "final_layer_norm.weight" },
                 { HR_GPT_LN_2_BIAS, LAYER "final_layer_norm.bias" } },
    .table = MODEL "embed_tokens.weight",
    .positions = MODEL "embed_positions.weight",
    .final_gain = MODEL "final_layer_norm.weight",
    .final_bias = MODEL "final_layer_norm.bias",
    .positions_skipped = 2,
    .act = HR_ACT_RELU
};

const hr_family_spec hr_family_opt = { .name = "opt",
                                       .traits = HR_LEARNS_POSITIONS | HR_MAY_TIE | HR_TIES,
                                       .initialization = "normal(0.02); biases 0, norms 1",
                                       .gpt = &form,
                                       .params = hr_gpt_params,
                                       .forward = hr_gpt_forward };
