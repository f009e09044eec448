/* SPDX-License-Identifier: Apache-2.0 */
/* hf/config_adopt.c - takes the model's keys from a folder and checks the given ones against
 * it. */
#include "headroom/config.h"

#include <string.h>

#include "base/assert.h"
#include "config/config_keys.h"
#include "hf/hf_config.h"

static const char section[] = "model.";

/* Returns whether a folder does not determine a key. */
static bool is_free(const char *name)
{
    return strncmp(name, section, sizeof section - 1) != 0 || !strcmp(name, "model.from") ||
           !strcmp(name, "model.dropout") || !strcmp(name, "model.weights");
}

static bool bit(const uint64_t *bits, const char *name)
{
    const int32_t row = hr_config_row_find(name);
    return bits[row / 64] >> row % 64 & 1;
}

/* Returns whether a key counts as given beside model.from. If the command line names the folder,
 * keys from the recipe are overridden and do not count. */
static bool is_given(const hr_config *config, const char *name)
{
    const bool named_outside = !bit(config->from_recipe, "model.from");
    return bit(config->given, name) && !(named_outside && bit(config->from_recipe, name));
}

/* Uses the folder's tokenizer, unless the recipe names another. With data.tokenizer=words the
 * folder's vocabulary applies too: a vocabulary counted from other training text would assign other
 * words to the model's rows. */
static void adopt_tokenizer(hr_config *config)
{
    const hr_config_data data = hr_config_data_of(config);
    const bool has_text = *data.train_text || *data.valid_text;
    const bool is_open = !is_given(config, "data.tokenizer") ||
                         hr_config_tokenizer(config) == HR_TOKENIZER_WORDS;
    if (has_text && is_open && hr_hf_has_tokenizer(config->model.from))
        memcpy(config->data.tokenizer, config->model.from, sizeof config->data.tokenizer);
}

hr_status hr_config_adopt(hr_config *config, hr_error *err)
{
    if (!config->model.from[0]) return HR_OK;
    hr_config adopted = *config;
    hr_status status = hr_hf_config_read(config->model.from, &adopted, err);
    for (int32_t i = 0; i < hr_config_row_count() && status == HR_OK; i++) {
        const char *name = hr_config_key(i)->name;
        char mine[HR_PATH_BYTES], theirs[HR_PATH_BYTES];
        if (is_free(name) || !is_given(config, name)) continue;
        const bool read = hr_config_get(config, name, mine, sizeof mine, NULL) == HR_OK &&
                          hr_config_get(&adopted, name, theirs, sizeof theirs, NULL) == HR_OK;
        HR_ASSERT(read);
        if (strcmp(mine, theirs))
            status = hr_fail(err, HR_USAGE,
                             "%s is %.40s, but the model in %.200s has %.40s; remove the key, or "
                             "use model.from= to build a new model",
                             name, mine, config->model.from, theirs);
    }
    if (status != HR_OK) return status;
    *config = adopted;
    if (config->model.weights == HR_WEIGHTS_AUTO)
        config->model.weights = hr_config_freezes(config) ? config->stored_weights
                                                          : HR_WEIGHTS_COMPUTE;
    adopt_tokenizer(config);
    return HR_OK;
}
