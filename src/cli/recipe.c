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
        if (hr_config_used_old_name(config, i))
            fprintf(stderr, "headroom: %s is deprecated: use %s\n", key->old_name, key->name);
}

const char *hr_cli_key_name(const char *name)
{
    const char *now = hr_config_name(name);
    if (!now || !strcmp(now, name)) return name;
    fprintf(stderr, "headroom: %s is deprecated: use %s\n", name, now);
    return now;
}

/* Says that the model of model.from is used, or the adapters of train.adapter.from, if the recipe
 * describes others. */
static void say_adopted(const hr_config *given, const hr_config *config, const char *section,
                        const char *what)
{
    const hr_key *key;
    char from[64];
    char first[HR_PATH_BYTES] = "";
    int32_t count = 0;
    for (int32_t i = 0; (key = hr_config_key(i)); i++) {
        char before[HR_VALUE_BYTES], now[HR_VALUE_BYTES];
        if (strncmp(key->name, section, strlen(section)) != 0 ||
            !hr_config_from_recipe(given, key->name) ||
            hr_config_get(given, key->name, before, sizeof before, NULL) != HR_OK ||
            hr_config_get(config, key->name, now, sizeof now, NULL) != HR_OK ||
            !strcmp(before, now))
            continue;
        if (!count++) snprintf(first, sizeof first, "%s=%.40s", key->name, before);
    }
    if (!count) return;
    snprintf(from, sizeof from, "%sfrom", section);
    fprintf(stderr, "headroom: using the %s in %s; the recipe's %s", what,
            hr_config_text(config, from), first);
    if (count > 1) fprintf(stderr, " and %d other %s key%s", count - 1, what, count > 2 ? "s" : "");
    fprintf(stderr, " %s ignored\n", count > 1 ? "are" : "is");
}

void hr_cli_find_corpora(hr_config *config)
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

/* Says which keys ids without a text do not use. */
static void say_unused(const hr_config *given, const hr_config *config)
{
    const bool tokenizer = strcmp(hr_config_text(given, "data.tokenizer"),
                                  hr_config_text(config, "data.tokenizer")) != 0;
    const bool samples = hr_config_integer(given, "train.sample_tokens") !=
                         hr_config_integer(config, "train.sample_tokens");
    if (tokenizer || samples)
        fprintf(stderr, "headroom: token ids have no text: %s%s%s not used\n",
                tokenizer ? "data.tokenizer" : "", tokenizer && samples ? " and " : "",
                !samples    ? " is"
                : tokenizer ? "train.sample_tokens are"
                            : "train.sample_tokens is");
}

/* Takes the model of model.from and what the data determine. */
static hr_status adopt(hr_config *config, hr_error *err)
{
    hr_config *given = hr_config_copy(config);
    if (!given) return hr_fail(err, HR_FAILURE, "out of memory for a recipe");
    hr_status status = hr_config_adopt(config, err);
    if (status == HR_OK) {
        say_adopted(given, config, "model.", "model");
        say_adopted(given, config, "train.adapter.", "adapter");
    }
    if (status == HR_OK) hr_cli_find_corpora(config);
    if (status == HR_OK) status = hr_config_adopt_data(config, err);
    if (status == HR_OK && hr_config_has_ids(config)) say_unused(given, config);
    hr_config_free(given);
    return status;
}

/* Whether a stage replaces the value of this key: then that of the command line is of the stage.
 * The others are of the run, from which those of the stage follow. */
static bool is_of_stage(const char *word)
{
    static const char *const of_run[] = { "train.stages", "train.steps", "train.epochs",
                                          "train.freeze", "train.optimizer.lr" };
    const size_t length = strcspn(word, "=");
    for (size_t i = 0; i < sizeof of_run / sizeof *of_run; i++)
        if (length == strlen(of_run[i]) && !strncmp(word, of_run[i], length)) return false;
    return true;
}

/* Replaces a recipe by one of its stages. */
static hr_status take_stage(const char *number, hr_config *config, hr_error *err)
{
    char *end;
    const long index = strtol(number, &end, 10);
    if (*end || end == number || index < 1 || index > HR_STAGES_MAX)
        return hr_fail(err, HR_USAGE, "--stage takes the number of a stage, from 1; got \"%.40s\"",
                       number);
    hr_config *all = hr_config_copy(config);
    if (!all) return hr_fail(err, HR_FAILURE, "out of memory for a recipe");
    const hr_status status = hr_config_stage_alone(all, (int32_t)index - 1, config, err);
    hr_config_free(all);
    return status;
}

hr_status hr_cli_leave_stages(hr_config *config, hr_error *err)
{
    if (!*hr_config_text(config, "train.stages")) return HR_OK;
    fprintf(stderr,
            "headroom: train.stages is left out: this is about %lld x %lld tokens; --stage N is "
            "about a stage\n",
            (long long)hr_config_integer(config, "train.batch"),
            (long long)hr_config_integer(config, "train.seq_len"));
    return hr_config_set(config, "train.stages", "", err);
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
        if (value && !*value && options[i].id == HR_OPTION_TRAIN_OUT)
            return hr_fail(err, HR_USAGE, "--out is empty; give a folder, or leave it out");
        if (value) status = hr_config_set(config, options[i].key, value, err);
    }
    warn_deprecated_keys(config);
    const char *stage = arguments->values[HR_OPTION_STAGE];
    if (status == HR_OK && stage) status = take_stage(stage, config, err);
    for (int32_t i = 1; status == HR_OK && stage && i < arguments->operand_count; i++)
        if (is_of_stage(arguments->operands[i]))
            status = hr_config_set_word(config, arguments->operands[i], err);
    /* In a recipe, 0 means no budget; --budget 0 is taken literally. */
    const char *budget = arguments->values[HR_OPTION_BUDGET];
    if (status == HR_OK && budget && !hr_config_integer(config, "memory.budget") &&
        strcmp(budget, "none"))
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
        .size = sizeof outputs,
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

int hr_cli_with_config(const hr_cli_arguments *arguments, hr_cli_config_command *command)
{
    hr_config *config = hr_config_new();
    hr_error err;
    if (!config) {
        (void)hr_fail(&err, HR_FAILURE, "out of memory for a recipe");
        return hr_cli_fail(&err);
    }
    const int code = command(arguments, config);
    hr_config_free(config);
    return code;
}

hr_status hr_cli_recipe(const hr_cli_arguments *arguments, hr_config *config, hr_error *err)
{
    hr_status status = hr_cli_recipe_keys(arguments, config, err);
    if (status == HR_OK) status = adopt(config, err);
    if (status == HR_OK && hr_config_chooses_states(config))
        status = choose_states(arguments, config, err);
    if (status == HR_OK && !arguments->values[HR_OPTION_DEVICE]) hr_cli_warn_processor();
    return status == HR_OK ? hr_config_check(config, err) : status;
}
