/* SPDX-License-Identifier: Apache-2.0 */
/* model/gpt2.c - GPT-2: one product for q, k and v, GELU's tanh form, biases, tied embeddings.
 * Files store its matrices as [in, out].
 *
 * Source   Radford et al. 2019, Language Models are Unsupervised Multitask Learners. */
#include "model/gpt.h"

#define LAYER "transformer.h.%lld."

static const hr_gpt_form form = { .weights = { { HR_GPT_LN_1, LAYER "ln_1.weight" },
                                               { HR_GPT_LN_1_BIAS, LAYER "ln_1.bias" },
                                               { HR_GPT_QKV, LAYER "attn.c_attn.weight" },
                                               { HR_GPT_QKV_BIAS, LAYER "attn.c_attn.bias" },
                                               { HR_GPT_OUT, LAYER "attn.c_proj.weight" },
                                               { HR_GPT_OUT_BIAS, LAYER "attn.c_proj.bias" },
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
                                  .scales_out = true };

const hr_family_spec hr_family_gpt2 = {
    .name = "gpt2",
    .traits = HR_LEARNS_POSITIONS | HR_MAY_TIE | HR_TIES | HR_STORES_INPUTS_FIRST,
    .initialization = "normal(0.02); attention output and MLP down-projection normal(0.02 / sqrt(2 "
                      "n_layers)); biases 0, norms 1",
    .gpt = &form,
    .params = hr_gpt_params,
    .forward = hr_gpt_forward
};
