/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/adapter_config.c - prints adapter_config.json. */
#include "checkpoint/adapter_config.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/json.h"
#include "base/number.h"
#include "base/words.h"
#include "checkpoint/names.h"
#include "config/config.h"

static const char *last_part(const char *module)
{
    const char *dot = strrchr(module, '.');
    return dot ? dot + 1 : module;
}

static bool is_matrix(const hr_program *program, int32_t p)
{
    const hr_param *param = &program->params[p];
    return param->adapts == HR_NONE && param->dims[1] && !param->rule.saved;
}

static int32_t layer_of(const hr_program *program, int32_t p)
{
    return program->tensors[program->params[p].weight].layer;
}

/* The adapters of a program, and which of its layers have some. */
typedef struct {
    const hr_program *program;
    int32_t layers; /* of the model */
    bool partial;   /* some layers have none, and only layers have some */
    bool has[4096]; /* [layers] */
} places;

static void find_places(places *all, const hr_program *program)
{
    bool outside = false;
    *all = (places){ .program = program };
    for (int32_t p = 0; p < program->param_count; p++) {
        const int32_t layer = layer_of(program, p);
        const bool adapted = program->params[p].adapter != HR_NONE;
        if (layer == HR_NONE) outside |= adapted;
        else all->layers = (int32_t)hr_max(all->layers, layer + 1);
        if (layer != HR_NONE && adapted) all->has[layer] = true;
    }
    for (int32_t l = 0; l < all->layers; l++) all->partial |= !outside && !all->has[l];
}

/* Whether the last part of a module's name stands for adapted modules alone. */
static bool is_enough(const places *all, const char *part)
{
    const hr_program *program = all->program;
    for (int32_t p = 0; p < program->param_count; p++) {
        char module[HR_MODULE_BYTES];
        const int32_t layer = layer_of(program, p);
        if (!is_matrix(program, p) || program->params[p].adapter != HR_NONE) continue;
        if (all->partial && (layer == HR_NONE || !all->has[layer])) continue;
        hr_module_of(program->params[p].external_name, module);
        if (!strcmp(last_part(module), part)) return false;
    }
    return true;
}

/* Whether an adapted parameter before `p` has the same last part. */
static bool is_repeated(const hr_program *program, int32_t p, const char *part)
{
    while (p-- > 0) {
        char module[HR_MODULE_BYTES];
        if (program->params[p].adapter == HR_NONE) continue;
        hr_module_of(program->params[p].external_name, module);
        if (!strcmp(last_part(module), part)) return true;
    }
    return false;
}

/* Whether an adapted parameter has this place in its layer. */
static bool is_at(const hr_program *program, int32_t p, const char *path)
{
    char module[HR_MODULE_BYTES];
    if (program->params[p].adapter == HR_NONE) return false;
    hr_module_of(program->params[p].external_name, module);
    return !strcmp(hr_name_in_layer(module), path);
}

/* Whether parameter `p` is the first adapted one with its place, which is stored. */
static bool is_first_at(const hr_program *program, int32_t p, char path[HR_MODULE_BYTES])
{
    char module[HR_MODULE_BYTES];
    int32_t before = 0;
    if (program->params[p].adapter == HR_NONE) return false;
    hr_module_of(program->params[p].external_name, module);
    snprintf(path, HR_MODULE_BYTES, "%s", hr_name_in_layer(module));
    while (before < p && !is_at(program, before, path)) before++;
    return before == p;
}

/* Whether two places are adapted in the same layers. Parameters of layers are in their order. */
static bool in_same_layers(const hr_program *program, const char *one, const char *two)
{
    int32_t p = 0, q = 0;
    for (;; p++, q++) {
        while (p < program->param_count && !is_at(program, p, one)) p++;
        while (q < program->param_count && !is_at(program, q, two)) q++;
        if (p == program->param_count || q == program->param_count)
            return p == program->param_count && q == program->param_count;
        if (layer_of(program, p) != layer_of(program, q)) return false;
    }
}

static void put_place(const char *path, hr_writer *w)
{
    for (; *path; path++) hr_put(w, *path == '.' ? "\\\\." : "%c", *path);
}

/* The places that are adapted in the same layers as parameter `p`, with the numbers of these unless
 * they are all. False: a place before `p` is one of them. */
static bool put_expression(const places *all, int32_t p, const char *path, const char *before,
                           hr_writer *w)
{
    const hr_program *program = all->program;
    char other[HR_MODULE_BYTES];
    const char *between = "(";
    int32_t layers = 0;
    for (int32_t q = 0; q < p; q++)
        if (is_first_at(program, q, other) && in_same_layers(program, path, other)) return false;
    hr_put(w, "%s", before);
    if (layer_of(program, p) != HR_NONE) hr_put(w, ".*\\\\.");
    for (int32_t q = p; q < program->param_count; q++) layers += is_at(program, q, path);
    for (int32_t q = p; q < program->param_count && layers < all->layers; q++) {
        if (layer_of(program, p) == HR_NONE || !is_at(program, q, path)) continue;
        hr_put(w, "%s%d", between, (int)layer_of(program, q));
        between = "|";
    }
    if (*between == '|') hr_put(w, ")\\\\.");
    between = "(";
    for (int32_t q = p; q < program->param_count; q++) {
        if (!is_first_at(program, q, other) || !in_same_layers(program, path, other)) continue;
        hr_put(w, "%s", between);
        put_place(other, w);
        between = "|";
    }
    hr_put(w, ")");
    return true;
}

static void put_regex(const places *all, hr_writer *w)
{
    char path[HR_MODULE_BYTES];
    const char *before = "\"";
    for (int32_t p = 0; p < all->program->param_count; p++)
        if (is_first_at(all->program, p, path) && put_expression(all, p, path, before, w))
            before = "|";
    hr_put(w, "\"");
}

/* Whether last parts of names also stand for modules without adapters. */
static bool is_mixed(const places *all)
{
    const hr_program *program = all->program;
    for (int32_t p = 0; p < program->param_count; p++) {
        char module[HR_MODULE_BYTES];
        if (program->params[p].adapter == HR_NONE) continue;
        hr_module_of(program->params[p].external_name, module);
        if (!is_enough(all, last_part(module))) return true;
    }
    return false;
}

/* A list of last parts, or an expression if these are not enough. */
static void put_targets(const places *all, hr_writer *w)
{
    const hr_program *program = all->program;
    const char *between = "[";
    if (is_mixed(all)) {
        put_regex(all, w);
        return;
    }
    for (int32_t p = 0; p < program->param_count; p++) {
        char module[HR_MODULE_BYTES];
        if (program->params[p].adapter == HR_NONE) continue;
        hr_module_of(program->params[p].external_name, module);
        if (is_repeated(program, p, last_part(module))) continue;
        hr_put(w, "%s\n    \"%s\"", between, last_part(module));
        between = ",";
    }
    hr_put(w, "\n  ]");
}

/* PEFT has no layers beside an expression, which has their numbers. */
static void put_layers(const places *all, hr_writer *w)
{
    const char *between = "[";
    if (!all->partial || is_mixed(all)) {
        hr_put(w, "null");
        return;
    }
    for (int32_t l = 0; l < all->layers; l++) {
        if (!all->has[l]) continue;
        hr_put(w, "%s%d", between, (int)l);
        between = ", ";
    }
    hr_put(w, "]");
}

/* ---- patterns of ranks and alphas ---- */

/* A word that names modules, as an expression of PEFT for the ends of their names. */
static void put_word(const char *word, hr_writer *w)
{
    const size_t length = strlen(word);
    if (word[0] == '/') {
        for (size_t i = 1; i + 1 < length; i++)
            hr_put(w, word[i] == '\\' || word[i] == '"' ? "\\%c" : "%c", word[i]);
        return;
    }
    for (; *word; word++) {
        if (*word == '*') hr_put(w, ".*");
        else if (*word == '?') hr_put(w, ".");
        else hr_put(w, *word == '.' ? "\\\\." : "%c", *word);
    }
}

/* Prints {word: value} of a setting, such as "rank=". */
static void put_patterns(const hr_config *config, const char *setting, hr_writer *w)
{
    const char *between = "\n", *group = config->train.adapter.groups;
    const size_t length = strlen(setting);
    hr_put(w, "{");
    for (; group; group = hr_words_next_group(group)) {
        hr_words value = { group };
        bool has = false;
        while (!has && hr_words_next(&value)) has = !strncmp(value.text, setting, length);
        for (hr_words name = { group }; has && hr_words_next(&name);) {
            if (hr_word_is_setting(name.text)) continue;
            hr_put(w, "%s    \"", between);
            put_word(name.text, w);
            hr_put(w, "\": %s", value.text + length);
            between = ",\n";
        }
    }
    hr_put(w, "%s}", *between == ',' ? "\n  " : "");
}

static void put_saved(const hr_config *config, hr_writer *w)
{
    const char *between = "[";
    for (hr_words name = { config->train.adapter.modules_to_save }; hr_words_next(&name);) {
        hr_put(w, "%s\"%s\"", between, name.text);
        between = ", ";
    }
    hr_put(w, *between == '[' ? "null" : "]");
}

static void put_path(hr_writer *w, const char *path)
{
    char quoted[6 * HR_PATH_BYTES];
    int64_t taken;
    const int64_t bytes = hr_json_escape(quoted, sizeof quoted, path, (int64_t)strlen(path),
                                         &taken);
    if (*path) hr_put(w, "\"%.*s\"", (int)bytes, quoted);
    else hr_put(w, "null");
}

/* PEFT calls matrices that a file stores as [inputs, outputs] by this name (GPT-2). */
static bool is_fan_in_fan_out(const hr_program *program)
{
    for (int32_t p = 0; p < program->param_count; p++)
        if (program->params[p].adapter != HR_NONE &&
            !hr_program_looks_up(program, program->params[p].adapter) &&
            !program->params[p].external_transposed)
            return true;
    return false;
}

static void write_modulating(const hr_config *config, const hr_program *program, hr_writer *w)
{
    const hr_config_adapter *adapter = &config->train.adapter;
    char form[HR_FIELD_BYTES], number[HR_REAL_BYTES];
    const char *between = "";
    places all;
    find_places(&all, program);
    if (hr_config_get(config, "train.adapter.form", form, sizeof form, NULL) != HR_OK) return;
    hr_put(w, "{\n  \"base\": ");
    put_path(w, config->model.from);
    hr_put(w, ",\n  \"form\": \"%s\",\n  \"layers\": [", form);
    for (int32_t l = 0; l < all.layers; l++) {
        if (!all.has[l]) continue;
        hr_put(w, "%s%d", between, (int)l);
        between = ", ";
    }
    hr_put(w, "],\n  \"rank\": %lld,\n  \"scale\": %s,\n  \"triples\": %lld\n}\n",
           (long long)adapter->rank, hr_real_print(adapter->scale, number),
           (long long)adapter->triples);
}

void hr_adapter_config_write(const hr_config *config, const hr_program *program, hr_writer *w)
{
    places all;
    if (program->modulates) {
        write_modulating(config, program, w);
        return;
    }
    find_places(&all, program);
    char number[HR_REAL_BYTES];
    hr_put(w, "{\n  \"base_model_name_or_path\": ");
    put_path(w, config->model.from);
    hr_put(w, ",\n  \"bias\": \"none\",\n  \"fan_in_fan_out\": %s",
           is_fan_in_fan_out(program) ? "true" : "false");
    hr_put(w, ",\n  \"inference_mode\": true,\n  \"init_lora_weights\": true");
    hr_put(w, ",\n  \"alpha_pattern\": ");
    put_patterns(config, "alpha=", w);
    hr_put(w, ",\n  \"layers_to_transform\": ");
    put_layers(&all, w);
    hr_put(w, ",\n  \"rank_pattern\": ");
    put_patterns(config, "rank=", w);
    hr_put(w, ",\n  \"lora_alpha\": %s", hr_real_print(config->train.adapter.alpha, number));
    hr_put(w, ",\n  \"lora_dropout\": %s", hr_real_print(config->train.adapter.dropout, number));
    hr_put(w, ",\n  \"modules_to_save\": ");
    put_saved(config, w);
    hr_put(w, ",\n  \"peft_type\": \"LORA\",\n  \"r\": %lld",
           (long long)config->train.adapter.rank);
    hr_put(w, ",\n  \"target_modules\": ");
    put_targets(&all, w);
    hr_put(w, ",\n  \"task_type\": \"CAUSAL_LM\",\n  \"use_dora\": %s",
           config->train.adapter.dora ? "true" : "false");
    hr_put(w, ",\n  \"use_rslora\": %s\n}\n", config->train.adapter.rslora ? "true" : "false");
}
