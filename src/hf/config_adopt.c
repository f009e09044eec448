/* SPDX-License-Identifier: Apache-2.0 */
/* hf/config_adopt.c - takes the model's keys from a folder and checks the given ones against
 * it. */
#include "config/config.h"

#include <string.h>

#include "base/assert.h"
#include "base/words.h"
#include "config/config_keys.h"
#include "hf/hf_adapter.h"
#include "hf/hf_config.h"
#include "model/adapter.h"

/* What a folder determines: the keys of a section, but for some. */
typedef struct {
    const char *section, *from, *free[3], *kind, *instead;
} adoption;

static const adoption of_model = { "model.",
                                   "model.from",
                                   { "model.from", "model.dropout", "model.weights" },
                                   "model",
                                   "use model.from= to build a new model" };
static const adoption of_adapter = { "train.adapter.",
                                     "train.adapter.from",
                                     { "train.adapter.from", "train.adapter.dropout" },
                                     "adapter",
                                     "use train.adapter.from= for new adapters" };

/* Returns whether a folder does not determine a key. */
static bool is_free(const adoption *of, const char *name)
{
    bool free = strncmp(name, of->section, strlen(of->section)) != 0;
    for (size_t i = 0; i < sizeof of->free / sizeof *of->free; i++)
        free |= of->free[i] && !strcmp(name, of->free[i]);
    return free;
}

/* Uses the folder's tokenizer, unless the recipe names another. With data.tokenizer=words the
 * folder's vocabulary applies too: a vocabulary counted from other training text would assign other
 * words to the model's rows. */
static void adopt_tokenizer(hr_config *config)
{
    const hr_config_data data = hr_config_data_of(config);
    const bool has_text = *data.train_text || *data.valid_text;
    const bool is_open = !hr_config_is_given_beside(config, "model.from", "data.tokenizer") ||
                         hr_config_tokenizer(config) == HR_TOKENIZER_WORDS;
    if (has_text && is_open && hr_hf_has_tokenizer(config->model.from))
        memcpy(config->data.tokenizer, config->model.from, sizeof config->data.tokenizer);
}

static bool has_all(const char *text, const char *words)
{
    bool all = true;
    for (hr_words w = { words }; all && hr_words_next(&w);) {
        bool found = false;
        for (hr_words other = { text }; !found && hr_words_next(&other);)
            found = !strcmp(other.text, w.text);
        all = found;
    }
    return all;
}

/* Modules and layers are sets: other programs save them in any order. */
static bool is_same(const hr_config *adopted, const char *name, const char *mine,
                    const char *theirs)
{
    if (!strcmp(name, "train.adapter.layers"))
        return hr_adapter_same_layers(mine, theirs, adopted->model.n_layers);
    const bool is_set = !strcmp(name, "train.adapter.targets") ||
                        !strcmp(name, "train.adapter.modules_to_save");
    return !strcmp(mine, theirs) || (is_set && has_all(mine, theirs) && has_all(theirs, mine));
}

/* Refuses a given key that differs from what the folder says. If the command line names the folder,
 * keys from the recipe are overridden and do not count. */
static hr_status check_given(const hr_config *config, const hr_config *adopted, const adoption *of,
                             const char *folder, hr_error *err)
{
    for (int32_t i = 0; i < hr_config_row_count(); i++) {
        const char *name = hr_config_key(i)->name;
        char mine[HR_VALUE_BYTES], theirs[HR_VALUE_BYTES];
        if (is_free(of, name) || !hr_config_is_given_beside(config, of->from, name)) continue;
        const bool read = hr_config_get(config, name, mine, sizeof mine, NULL) == HR_OK &&
                          hr_config_get(adopted, name, theirs, sizeof theirs, NULL) == HR_OK;
        HR_ASSERT(read);
        if (!is_same(adopted, name, mine, theirs))
            return hr_fail(err, HR_USAGE,
                           "%s is %.40s%s, but the %s in %.200s has %.40s%s; remove the key, or %s",
                           name, *mine ? mine : "unset", strlen(mine) > 40 ? "..." : "", of->kind,
                           folder, *theirs ? theirs : "none", strlen(theirs) > 40 ? "..." : "",
                           of->instead);
    }
    return HR_OK;
}

/* Not inlined: a config is large, and the stack size is planned. */
static __attribute__((noinline)) hr_status adopt_model(hr_config *config, hr_error *err)
{
    hr_config adopted;
    hr_status status = hr_hf_config_over(config->model.from, config, &adopted, err);
    if (status == HR_OK) status = check_given(config, &adopted, &of_model, config->model.from, err);
    if (status == HR_OK) *config = adopted;
    return status;
}

/* A recipe for another kind of adapter than the folder has: its keys get their defaults. */
static void forget_other_kind(const hr_config *config, hr_config *adopted)
{
    if (config->train.adapter.kind == adopted->train.adapter.kind) return;
    for (int32_t i = 0; i < hr_config_row_count(); i++) {
        const hr_config_row *row = &hr_config_rows()[i];
        const char *name = row->key.name;
        const bool same = !memcmp((const char *)config + row->offset,
                                  (const char *)adopted + row->offset, (size_t)row->bytes);
        if (is_free(&of_adapter, name) || !same || !hr_config_is_given(config, name) ||
            hr_config_is_given_beside(config, of_adapter.from, name))
            continue;
        const hr_status status = hr_config_set(adopted, name, row->key.default_text, NULL);
        HR_ASSERT(status == HR_OK);
    }
}

static __attribute__((noinline)) hr_status adopt_adapter(hr_config *config, hr_error *err)
{
    hr_config adopted = *config;
    hr_status status = hr_hf_adapter_read(config->train.adapter.from, &adopted, NULL, err);
    if (status == HR_OK)
        status = check_given(config, &adopted, &of_adapter, config->train.adapter.from, err);
    if (status == HR_OK) forget_other_kind(config, &adopted);
    if (status == HR_OK) *config = adopted;
    return status;
}

hr_status hr_config_adopt(hr_config *config, hr_error *err)
{
    hr_status status = config->model.from[0] ? adopt_model(config, err) : HR_OK;
    if (status == HR_OK && config->train.adapter.from[0]) status = adopt_adapter(config, err);
    if (status != HR_OK || !config->model.from[0]) return status;
    if (config->model.weights == HR_WEIGHTS_AUTO)
        config->model.weights = hr_config_freezes(config) ? config->stored_weights
                                                          : HR_WEIGHTS_COMPUTE;
    adopt_tokenizer(config);
    return HR_OK;
}
