/* SPDX-License-Identifier: Apache-2.0 */
/* model/family.c - the list of families. */
#include "model/family.h"

const hr_family_spec *hr_family_of(const hr_config *config)
{
#define SPEC(id, name) &hr_family_##name,
    static const hr_family_spec *const families[] = { HR_FAMILY_LIST(SPEC) };
#undef SPEC
    return families[config->model.family];
}

bool hr_family_ties(const hr_config *config)
{
    const int32_t said = config->model.tie_embeddings;
    return said == HR_TIE_AUTO ? hr_family_of(config)->traits & HR_TIES : said == HR_TIE_TRUE;
}
