/* SPDX-License-Identifier: Apache-2.0 */
/* data/stage_texts.c - joins the texts of the stages to one mixture, and divides its rows. */
#include "data/stage_texts.h"

#include <string.h>

#include "base/writer.h"
#include "config/config.h"
#include "corpus/spec.h"

bool hr_stage_texts_differ(const hr_config *config)
{
    char text[HR_PATH_BYTES];
    if (!config->train.stages[0]) return false;
    hr_config_stage_word(config, 0, "data", text);
    return *text;
}

static bool is_same(const hr_spec_part *a, const hr_spec_part *b)
{
    return a->path_bytes == b->path_bytes && a->ids_bytes == b->ids_bytes &&
           !memcmp(a->path, b->path, (size_t)a->path_bytes);
}

static int32_t find(const hr_spec *spec, const hr_spec_part *part)
{
    int32_t index = 0;
    while (index < spec->count && !is_same(&spec->parts[index], part)) index++;
    return index;
}

static bool is_rows(const hr_spec_part *part)
{
    static const char suffix[] = ".safetensors";
    const int64_t bytes = sizeof suffix - 1;
    return part->path_bytes >= bytes &&
           !memcmp(part->path + part->path_bytes - bytes, suffix, (size_t)bytes);
}

static hr_status check(const hr_spec *spec, int32_t index, hr_error *err)
{
    const char *problem = spec->count == 0 ? "names no text"
                          : spec->share > 0 || spec->parts->synthetic || is_rows(spec->parts)
                              ? "takes texts, neither rows nor synthetic ids nor a percentage"
                          : spec->count > 1 && !spec->weighted ? "needs a weight for each text"
                                                               : NULL;
    if (!problem) return HR_OK;
    return hr_fail(err, HR_USAGE, "train.stages, stage %d: data %s", index + 1, problem);
}

/* Adds the texts of a stage that no earlier stage has; `with` is one with texts. Paths point into
 * `text`. */
static hr_status add(const hr_config *config, int32_t index, int32_t with, char text[HR_PATH_BYTES],
                     hr_writer *all, hr_error *err)
{
    hr_spec spec, before;
    hr_config_stage_word(config, index, "data", text);
    if (!*text)
        return hr_fail(err, HR_USAGE,
                       "train.stages, stage %d: has no data, and stage %d has: give it to all "
                       "stages, or to none",
                       index + 1, with + 1);
    hr_status status = hr_spec_read(&spec, "train.stages: data", text, err);
    if (status == HR_OK) status = check(&spec, index, err);
    for (int32_t i = 0; i < spec.count && status == HR_OK; i++) {
        const hr_spec_part *part = &spec.parts[i];
        status = hr_spec_read(&before, "train.stages: data", all->used ? all->text : "", err);
        if (status != HR_OK || find(&before, part) < before.count) continue;
        if (before.count == HR_BATCH_SHARDS_MAX || all->cut)
            return hr_fail(err, HR_USAGE, "train.stages: data: more than %d texts in all",
                           HR_BATCH_SHARDS_MAX);
        hr_put(all, "%s%.*s%s weight=1", all->used ? "; " : "", (int)part->path_bytes, part->path,
               part->ids_bytes == 2   ? " ids=u16"
               : part->ids_bytes == 4 ? " ids=u32"
                                      : "");
    }
    return status;
}

hr_status hr_stage_texts_adopt(hr_config *config, hr_error *err)
{
    char text[HR_PATH_BYTES], all[HR_PATH_BYTES] = "";
    hr_writer writer = { all, sizeof all };
    hr_stages stages;
    hr_status status = hr_config_stages(config, &stages, err);
    int32_t with = -1;
    for (int32_t i = 0; i < stages.count && status == HR_OK && with < 0; i++) {
        hr_config_stage_word(config, i, "data", text);
        if (*text) with = i;
    }
    for (int32_t i = 0; with >= 0 && i < stages.count && status == HR_OK; i++)
        status = add(config, i, with, text, &writer, err);
    if (status != HR_OK || with < 0) return status;
    if (writer.cut)
        return hr_fail(err, HR_USAGE,
                       "train.stages: the names of all texts have more than %d bytes",
                       HR_PATH_BYTES);
    if (config->data.train[0] && strcmp(config->data.train, all) != 0)
        return hr_fail(err, HR_USAGE,
                       "data.train is %.200s, and the stages of train.stages have data of their "
                       "own: leave data.train out",
                       config->data.train);
    return hr_config_set(config, "data.train", all, err);
}

hr_status hr_stage_texts_mixture(const hr_config *config, int32_t index,
                                 const hr_batch_mixture *all, hr_batch_mixture *mixture,
                                 hr_error *err)
{
    char text[HR_PATH_BYTES];
    hr_spec spec, union_of;
    int64_t shares[HR_SPEC_PARTS_MAX] = { 1 };
    *mixture = *all;
    if (!all->count || !hr_stage_texts_differ(config)) return HR_OK;
    hr_config_stage_word(config, index, "data", text);
    hr_status status = hr_spec_read(&spec, "train.stages: data", text, err);
    if (status == HR_OK) status = hr_spec_read(&union_of, "data.train", config->data.train, err);
    mixture->block = 1;
    if (status == HR_OK && spec.weighted)
        status = hr_spec_shares(&spec, shares, &mixture->block, err);
    if (status != HR_OK) return status;
    memset(mixture->shares, 0, sizeof mixture->shares);
    for (int32_t i = 0; i < spec.count; i++) {
        const int32_t at = find(&union_of, &spec.parts[i]);
        if (at == union_of.count)
            return hr_fail(err, HR_USAGE, "train.stages, stage %d: data.train lacks %.*s",
                           index + 1, (int)spec.parts[i].path_bytes, spec.parts[i].path);
        mixture->shares[at] += shares[i];
    }
    return HR_OK;
}
