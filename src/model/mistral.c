/* SPDX-License-Identifier: Apache-2.0 */
/* model/mistral.c - Mistral: Llama with an optional sliding window of keys.
 *
 * Source   Jiang et al. 2023, arXiv:2310.06825. */
#include "model/llama.h"

static void params(hr_builder *builder, const hr_config *config, hr_model *model)
{
    hr_llama_params(builder, config, model, (hr_llama_form){ .qkv_bias = false });
}

const hr_family_spec hr_family_mistral = { .name = "mistral",
                                           .traits = HR_GATES | HR_READS_GROUPS |
                                                     HR_PARTS_SEQUENCES | HR_SELECTS_KEYS |
                                                     HR_SLIDES | HR_ROTATES_ALL | HR_MAY_TIE,
                                           .initialization = "normal(0.02); norms 1",
                                           .kind = hr_layer_type,
                                           .params = params,
                                           .tables = hr_llama_tables,
                                           .forward = hr_llama_forward };
