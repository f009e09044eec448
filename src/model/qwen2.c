/* SPDX-License-Identifier: Apache-2.0 */
/* model/qwen2.c - Qwen 2: Llama with biases for queries, keys and values.
 *
 * Source   Yang et al. 2024, arXiv:2407.10671. */
#include "model/llama.h"

static void params(hr_builder *builder, const hr_config *config, hr_model *model)
{
    hr_llama_params(builder, config, model, (hr_llama_form){ .qkv_bias = true });
}

const hr_family_spec hr_family_qwen2 = { .name = "qwen2",
                                         .traits = HR_GATES | HR_READS_GROUPS | HR_PARTS_SEQUENCES |
                                                   HR_SELECTS_KEYS | HR_SLIDES |
                                                   HR_MIXES_ATTENTION | HR_ROTATES_ALL | HR_MAY_TIE,
                                         .initialization = "normal(0.02); biases 0, norms 1",
                                         .kind = hr_layer_type,
                                         .params = params,
                                         .tables = hr_llama_tables,
                                         .forward = hr_llama_forward };
