/* SPDX-License-Identifier: Apache-2.0 */
/* cli/recipe.c - makes a checked config from the arguments of a command; shared by plan and
 * train. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "headroom/data.h"
#include "headroom/doctor.h"
#include "headroom/plan.h"
#include "headroom/stages.h"

/* Warns about deprecated key names in the recipe or on the command line. */
static void warn_deprecated_keys(const hr_config *config)
{
    const hr_renamed_key *key;
    for (int32_t i = 0; (key = hr_config_renamed(i)); i++)
        if (config->old_names >> i & 1)
            fprintf(stderr, "headroom: %s is deprecated: use %s\n", key->old_name, key->name);
}

const char *hr_cli_key_name(const char *name)
{
    const char *now = hr_config_name(name);
    if (!now || !strcmp(now, name)) return name;
    fprintf(stderr, "headroom: %s is deprecated: use %s\n", name, now);
    return now;
}

/* Takes the model of model.from. Says which one is used if the recipe describes another. */
static hr_status adopt(hr_config *config, hr_error *err)
{
    const hr_config given = *config;
    const hr_key *key;
    char first[HR_PATH_BYTES] = "";
    int32_t count = 0;
    const hr_status status = hr_config_adopt(config, err);
    if (status != HR_OK) return status;
    for (int32_t i = 0; (key = hr_config_key(i)); i++) {
        char before[HR_VALUE_BYTES], now[HR_VALUE_BYTES];
        if (strncmp(key->name, "model.", 6) != 0 || !(given.from_recipe[i / 64] >> i % 64 & 1) ||
            hr_config_get(&given, key->name, before, sizeof before, NULL) != HR_OK ||
            hr_config_get(config, key->name, now, sizeof now, NULL) != HR_OK ||
            !strcmp(before, now))
            continue;
        if (!count++) snprintf(first, sizeof first, "%s=%.40s", key->name, before);
    }
    if (!count) return HR_OK;
    fprintf(stderr, "headroom: using the model in %s; the recipe's %s", config->model.from, first);
    if (count > 1) fprintf(stderr, " and %d other model key%s", count - 1, count > 2 ? "s" : "");
    fprintf(stderr, " %s ignored\n", count > 1 ? "are" : "is");
    return HR_OK;
}

/* Finds named corpora in data/, $HEADROOM_DATA and the cache directory, if there is one. */
static void find_corpora(hr_config *config)
{
    char cache[HR_PATH_BYTES + 8];
    const char *folders[3] = { "data" }, *own = getenv("HEADROOM_DATA");
    int32_t count = 1;
    if (own && *own) folders[count++] = own;
    if (hr_cli_calibrations(cache, HR_PATH_BYTES)) {
        strcat(cache, "/data");
        folders[count++] = cache;
    }
    hr_data_find_corpora(config, folders, count);
}

/* Takes what the data determine. Says which keys synthetic ids do not use. */
static hr_status adopt_data(hr_config *config, hr_error *err)
{
    const hr_config given = *config;
    find_corpora(config);
    const hr_status status = hr_config_adopt_data(config, err);
    if (status != HR_OK || !hr_config_is_synthetic(config)) return status;
    const bool tokenizer = strcmp(given.data.tokenizer, config->data.tokenizer) != 0;
    const bool samples = given.train.sample_tokens != config->train.sample_tokens;
    if (tokenizer || samples)
        fprintf(stderr, "headroom: synthetic ids have no text: %s%s%s not used\n",
                tokenizer ? "data.tokenizer" : "", tokenizer && samples ? " and " : "",
                !samples    ? " is"
                : tokenizer ? "train.sample_tokens are"
                            : "train.sample_tokens is");
    return status;
}

/* Replaces a recipe by one of its stages. */
static hr_status take_stage(const char *number, hr_config *config, hr_error *err)
{
    hr_config stage;
    char *end;
    const long index = strtol(number, &end, 10);
    if (*end || end == number || index < 1 || index > HR_STAGES_MAX)
        return hr_fail(err, HR_USAGE, "--stage takes the number of a stage, from 1; got \"%.40s\"",
                       number);
    const hr_status status = hr_config_stage_alone(config, (int32_t)index - 1, &stage, err);
    if (status == HR_OK) *config = stage;
    return status;
}

void hr_cli_leave_stages(hr_config *config)
{
    if (!config->train.stages[0]) return;
    fprintf(stderr,
            "headroom: train.stages is left out: this is about %lld x %lld tokens; --stage N is "
            "about a stage\n",
            (long long)config->train.batch, (long long)config->train.seq_len);
    config->train.stages[0] = 0;
}

hr_status hr_cli_recipe_keys(const hr_cli_arguments *arguments, hr_config *config, hr_error *err)
{
    static const struct {
        hr_cli_option_id id;
        const char *key;
    } options[] = { { HR_OPTION_BUDGET, "memory.budget" }, { HR_OPTION_TRAIN_OUT, "train.out" } };
    hr_config_default(config);
    hr_status status = hr_cli_read_recipe(config, arguments->operands[0], err);
    for (int32_t i = 1; status == HR_OK && i < arguments->operand_count; i++)
        status = hr_config_set_word(config, arguments->operands[i], err);
    for (size_t i = 0; status == HR_OK && i < sizeof options / sizeof *options; i++) {
        const char *value = arguments->values[options[i].id];
        if (value) status = hr_config_set(config, options[i].key, value, err);
    }
    warn_deprecated_keys(config);
    const char *stage = arguments->values[HR_OPTION_STAGE];
    if (status == HR_OK && stage) status = take_stage(stage, config, err);
    /* In a recipe, 0 means no budget; --budget 0 is taken literally. */
    const char *budget = arguments->values[HR_OPTION_BUDGET];
    if (status == HR_OK && budget && !config->memory.budget && strcmp(budget, "none"))
        return hr_fail(err, HR_USAGE, "--budget %.40s is zero; give a size such as 700MiB, or none",
                       budget);
    return status;
}

/* Chooses formats that the recipe leaves open. Not inlined: rare, and the stack is planned. */
static __attribute__((noinline)) hr_status choose_states(const hr_cli_arguments *arguments,
                                                         hr_config *config, hr_error *err)
{
    char said[HR_ERROR_BYTES], directory[HR_PATH_BYTES];
    hr_device_choice choice;
    hr_device_list *own = NULL;
    hr_status status = hr_cli_device(arguments, &own, &choice, err);
    if (status != HR_OK) return status;
    const hr_plan_outputs outputs = {
        .device = arguments->values[HR_OPTION_DEVICE] ? &choice : NULL,
        .calibrations = hr_cli_calibrations(directory, sizeof directory),
    };
    status = hr_plan_choose_states(config, &outputs, arguments->values[HR_OPTION_FRESH], said, err);
    free(own);
    if (status == HR_OK) fprintf(stderr, "headroom: %s\n", said);
    return status;
}

void hr_cli_warn_processor(void)
{
    const char *lacks = hr_machine_lacks();
    if (*lacks)
        fprintf(stderr,
                "headroom: this processor has no %s: the reference kernels are used, which take "
                "many times as long\n",
                lacks);
}

hr_status hr_cli_recipe(const hr_cli_arguments *arguments, hr_config *config, hr_error *err)
{
    hr_status status = hr_cli_recipe_keys(arguments, config, err);
    if (status == HR_OK) status = adopt(config, err);
    if (status == HR_OK) status = adopt_data(config, err);
    if (status == HR_OK && hr_config_chooses_states(config))
        status = choose_states(arguments, config, err);
    if (status == HR_OK && !arguments->values[HR_OPTION_DEVICE]) hr_cli_warn_processor();
    return status == HR_OK ? hr_config_check(config, err) : status;
}
