/* SPDX-License-Identifier: Apache-2.0 */
/* model/family.c - the list of families, and the layers of a model. */
#include "model/family.h"

const hr_family_spec *hr_family_of(const hr_config *config)
{
#define SPEC(id, name) &hr_family_##name,
    static const hr_family_spec *const families[] = { HR_FAMILY_LIST(SPEC) };
#undef SPEC
    return families[config->model.family];
}

int32_t hr_family_kind(const hr_config *config, int64_t layer)
{
    const hr_family_spec *family = hr_family_of(config);
    return family->kind ? family->kind(config, layer) : 0;
}

hr_status hr_model_open(const hr_config *config, int64_t count, hr_region *region, hr_model *model,
                        hr_error *err)
{
    hr_layer *layers = hr_region_take(region, count, sizeof *layers);
    if (!layers)
        return hr_fail(err, HR_FAILURE, "out of memory for a model of %lld layers",
                       (long long)count);
    for (int64_t l = 0; l < count; l++) layers[l].kind = hr_family_kind(config, l);
    *model = (hr_model){ .rope_table = HR_NONE,
                         .traits = hr_family_of(config)->traits,
                         .gpt = hr_family_of(config)->gpt,
                         .tied = hr_family_ties(config),
                         .layer_count = count,
                         .layers = layers,
                         .region = region };
    return HR_OK;
}

bool hr_family_ties(const hr_config *config)
{
    const int32_t said = config->model.tie_embeddings;
    return said == HR_TIE_AUTO ? hr_family_of(config)->traits & HR_TIES : said == HR_TIE_TRUE;
}
