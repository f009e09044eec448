/* SPDX-License-Identifier: Apache-2.0 */
/* audit/models.c - reads a model by its name, and counts its parameters as the planner does. */
#include "audit/models.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/words.h"
#include "hf/hf_config.h"
#include "model/layer_schema.h"

/* Sets "model.<key>" for the words "key=value ..." of a row. */
static hr_status set_sizes(const hr_known_model *known, hr_config *config, hr_error *err)
{
    hr_status status = hr_config_set(config, "model.family", known->family, err);
    const char *at = known->sizes;
    for (int32_t i = 0; status == HR_OK && *at && i < 16; i++) {
        char word[64];
        const size_t length = strcspn(at, " ");
        snprintf(word, sizeof word, "model.%.*s", (int)length, at);
        status = hr_config_set_word(config, word, err);
        at += length + (at[length] == ' ');
    }
    return status;
}

static hr_status fail_unknown(const char *name, hr_error *err)
{
    const char *what = hr_unknown_architecture(name);
    const char *nearest = hr_known_model_nearest(name)->source;
    if (what)
        return hr_fail(
            err, HR_USAGE,
            "%.80s is %s, which headroom does not have: an audit with another model takes "
            "--model",
            name, what);
    return hr_fail(err, HR_USAGE,
                   "%.80s is not a known model; the nearest is %s: give a folder with config.json "
                   "or a recipe with --model",
                   name, nearest);
}

hr_status hr_model_read(const char *name, const char *folder, hr_config *config,
                        const hr_known_model **known, hr_error *err)
{
    char path[HR_PATH_BYTES];
    const hr_known_model *row = NULL;
    const bool rooted = *name == '/' || !*folder;
    if (snprintf(path, sizeof path, "%s%s%s", rooted ? "" : folder, rooted ? "" : "/", name) >=
        (int)sizeof path)
        return hr_fail(err, HR_USAGE, "a model's path of more than %d bytes", HR_PATH_BYTES - 1);
    /* Programs read relative paths from the folder that they are started in. */
    if (!rooted && !hr_file_exists(path) && hr_file_exists(name))
        snprintf(path, sizeof path, "%s", name);
    hr_status status;
    if (hr_ends_with(name, ".yaml") || hr_ends_with(name, ".yml"))
        status = hr_config_read(config, path, err);
    else if (hr_file_is_directory(path)) status = hr_hf_config_read(path, config, err);
    else if ((row = hr_known_model_find(name))) status = set_sizes(row, config, err);
    else return fail_unknown(name, err);
    if (known) *known = row;
    return status;
}

int64_t hr_model_count(const hr_config *config)
{
    const hr_layer_size size = hr_layer_size_of(config);
    return size.rest_count + config->model.n_layers * size.count;
}

hr_status hr_model_parameters(const char *name, const char *folder, const hr_argument *keys,
                              int32_t key_count, int64_t *parameters, hr_error *err)
{
    hr_config config;
    hr_status status = HR_OK;
    hr_config_default(&config);
    if (*name) status = hr_model_read(name, folder, &config, NULL, err);
    for (int32_t i = 0; status == HR_OK && i < key_count; i++) {
        char key[64], value[HR_EXPRESSION_TEXT_BYTES];
        const hr_expression_value *given = &keys[i].value;
        const bool train = !strcmp(keys[i].name, "seq_len");
        snprintf(key, sizeof key, "%s.%s", train ? "train" : "model", keys[i].name);
        if (given->is_text) memcpy(value, given->text, sizeof value);
        else if (given->number.is_whole)
            snprintf(value, sizeof value, "%" PRId64, given->number.whole);
        else snprintf(value, sizeof value, "%.17g", given->number.value);
        status = hr_config_set(&config, key, value, err);
    }
    if (status == HR_OK) status = hr_config_check_model(&config, err);
    if (status != HR_OK) return status;
    *parameters = hr_model_count(&config);
    return HR_OK;
}
