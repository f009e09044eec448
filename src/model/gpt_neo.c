/* SPDX-License-Identifier: Apache-2.0 */
/* model/gpt_neo.c - GPT-Neo: GELU's tanh form, tied embeddings, no biases for queries, keys and
 * values, scores that are not divided by the square root of the head width, and layers that attend
 * to all tokens or to a window, as model.attention.layer_types says.
 *
 * Source   Black et al. 2021, GPT-Neo, doi:10.5281/zenodo.5297715. */
#include "model/gpt.h"
#include "model/layer_types.h"

#define LAYER "transformer.h.%lld."

static const hr_gpt_form form = {
    .weights = { { HR_GPT_LN_1, LAYER "ln_1.weight" },
                 { HR_GPT_LN_1_BIAS, LAYER "ln_1.bias" },
                 { HR_GPT_WK, LAYER "attn.attention.k_proj.weight" },
                 { HR_GPT_WV, LAYER "attn.attention.v_proj.weight" },
                 { HR_GPT_WQ, LAYER "attn.attention.q_proj.weight" },
                 { HR_GPT_OUT, LAYER "attn.attention.out_proj.weight" },
                 { HR_GPT_OUT_BIAS, LAYER "attn.attention.out_proj.bias" },
                 { HR_GPT_LN_2, LAYER "ln_2.weight" },
                 { HR_GPT_LN_2_BIAS, LAYER "ln_2.bias" },
                 { HR_GPT_UP, LAYER "mlp.c_fc.weight" },
                 { HR_GPT_UP_BIAS, LAYER "mlp.c_fc.bias" },
                 { HR_GPT_DOWN, LAYER "mlp.c_proj.weight" },
                 { HR_GPT_DOWN_BIAS, LAYER "mlp.c_proj.bias" } },
    .table = "transformer.wte.weight",
    .positions = "transformer.wpe.weight",
    .final_gain = "transformer.ln_f.weight",
    .final_bias = "transformer.ln_f.bias",
    .act = HR_ACT_GELU_TANH,
    .plain_scores = true
};

const hr_family_spec hr_family_gpt_neo = { .name = "gpt_neo",
                                           .traits = HR_LEARNS_POSITIONS | HR_MAY_TIE | HR_TIES |
                                                     HR_SLIDES | HR_MIXES_ATTENTION,
                                           .initialization = "normal(0.02); biases 0, norms 1",
                                           .gpt = &form,
                                           .kind = hr_layer_type,
                                           .params = hr_gpt_params,
                                           .forward = hr_gpt_forward };
