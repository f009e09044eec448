/* SPDX-License-Identifier: Apache-2.0 */
/* model/qwen3.c - Qwen 3: Llama with a norm of each head of queries and keys.
 *
 * Source   Yang et al. 2025, arXiv:2505.09388. */
#include "model/llama.h"

static void params(hr_builder *builder, const hr_config *config, hr_model *model)
{
    hr_llama_params(builder, config, model, (hr_llama_form){ .head_norms = true });
}

const hr_family_spec hr_family_qwen3 = { .name = "qwen3",
                                         .traits = HR_GATES | HR_READS_GROUPS | HR_PARTS_SEQUENCES |
                                                   HR_SELECTS_KEYS | HR_SLIDES |
                                                   HR_MIXES_ATTENTION | HR_ROTATES_ALL | HR_MAY_TIE,
                                         .initialization = "normal(0.02); norms 1",
                                         .kind = hr_layer_type,
                                         .params = params,
                                         .tables = hr_llama_tables,
                                         .forward = hr_llama_forward };
