/* SPDX-License-Identifier: Apache-2.0 */
/* model/family.c - the list of families. */
#include "model/family.h"

const hr_family_spec *hr_family_of(const hr_config *config)
{
    static const hr_family_spec *const families[] = {
        [HR_FAMILY_NEEDLE] = &hr_family_needle, [HR_FAMILY_GPT_NEOX] = &hr_family_gpt_neox,
        [HR_FAMILY_LLAMA] = &hr_family_llama,   [HR_FAMILY_GPT2] = &hr_family_gpt2,
        [HR_FAMILY_OPT] = &hr_family_opt,       [HR_FAMILY_MISTRAL] = &hr_family_mistral,
        [HR_FAMILY_QWEN2] = &hr_family_qwen2,   [HR_FAMILY_QWEN3] = &hr_family_qwen3,
        [HR_FAMILY_YXANUL] = &hr_family_yxanul, [HR_FAMILY_WIDE] = &hr_family_wide
    };
    return families[config->model.family];
}

bool hr_family_ties(const hr_config *config)
{
    const int32_t said = config->model.tie_embeddings;
    return said == HR_TIE_AUTO ? hr_family_of(config)->traits & HR_TIES : said == HR_TIE_TRUE;
}
