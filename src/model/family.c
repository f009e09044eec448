/* SPDX-License-Identifier: Apache-2.0 */
/* model/family.c - the list of families. */
#include "model/family.h"

const hr_family_spec *hr_family_of(const hr_config *config)
{
    static const hr_family_spec *const families[] = { [HR_FAMILY_NEEDLE] = &hr_family_needle,
                                                      [HR_FAMILY_GPT_NEOX] = &hr_family_gpt_neox,
                                                      [HR_FAMILY_LLAMA] = &hr_family_llama };
    return families[config->model.family];
}
