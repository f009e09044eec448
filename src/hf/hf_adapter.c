/* SPDX-License-Identifier: Apache-2.0 */
/* hf/hf_adapter.c - reads adapter_config.json: some keys have a meaning, some do not matter, and
 * all others must be off. npt_config.json, which headroom writes, has other keys. */
#include "hf/hf_adapter.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/path.h"
#include "base/regex.h"
#include "base/words.h"
#include "base/writer.h"

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

enum { FILE_BYTES = 64 << 10, RANK_MOST = 1 << 20, TRIPLES_MOST = 64 };

/* Keys that do not change what an adapter computes. */
static const char *const harmless[] = {
    "auto_mapping",

    "ensure_weight_tying", "fan_in_fan_out",    "inference_mode",
    "layers_pattern",      "lora_dropout",      "megatron_core",
    "peft_version",        "qalora_group_size", "revision",
    "runtime_config",      "task_type",
};

typedef struct {
    hr_json json;
    hr_config *config;
    char *base;     /* [HR_PATH_BYTES]; null: not needed */
    bool modulates; /* it is npt_config.json */
    bool has_kind, has_rank, has_alpha, has_targets;
    const char *problem; /* null: none */
    char key[96], text[192];
} reading;

static bool refuse(reading *r, const char *problem)
{
    if (!r->problem) r->problem = problem;
    return false;
}

/* Initial values that leave the base as it is: true, false, "gaussian". */
static bool read_initial(reading *r, hr_json_kind kind)
{
    if (kind == HR_JSON_TRUE || kind == HR_JSON_FALSE || kind == HR_JSON_NULL) return true;
    if (kind == HR_JSON_STRING && !strcmp(r->json.value, "gaussian")) return true;
    return refuse(r, "\"init_lora_weights\" changes the base, which is not supported");
}

/* Appends a word to a key of the recipe. False: there is no room. */
static bool add_word(char *key, int64_t bytes, const char *between, const char *word)
{
    hr_writer w = { key, bytes, (int64_t)strlen(key) };
    hr_put(&w, "%s%s", *key ? between : "", word);
    return !w.cut;
}

static bool has_blanks(const char *text)
{
    return strpbrk(text, " ,;=\t\r\n") != NULL;
}

static bool add_target(reading *r, hr_json_kind kind)
{
    char *targets = r->config->train.adapter.targets;
    if (kind != HR_JSON_STRING || has_blanks(r->json.value) || strpbrk(r->json.value, "*?["))
        return refuse(r, "\"target_modules\" is not a list of names");
    return add_word(targets, HR_TARGETS_BYTES, " ", r->json.value) ||
           refuse(r, "\"target_modules\" has more than 511 characters");
}

/* The whole name of a module matches the expression. */
static bool read_target_regex(reading *r)
{
    char *targets = r->config->train.adapter.targets;
    const char *text = r->json.value;
    char word[HR_WORD_BYTES];
    if (has_blanks(text) || strlen(text) >= HR_WORD_BYTES - 4 ||
        !hr_regex_is_valid(text, (int)strlen(text)))
        return refuse(r, "\"target_modules\" is a regular expression that is not read");
    snprintf(word, sizeof word, "/%s/", text);
    return add_word(targets, HR_TARGETS_BYTES, " ", word);
}

/* A list of names. */
static bool read_saved(reading *r, hr_json_kind kind)
{
    char *names = r->config->train.adapter.modules_to_save;
    if (kind == HR_JSON_NULL) return true;
    if (kind != HR_JSON_ARRAY) return refuse(r, "\"modules_to_save\" is not a list of names");
    while ((kind = hr_json_next(&r->json)) != HR_JSON_CLOSE)
        if (kind != HR_JSON_STRING ||
            strspn(r->json.value, NAME_LETTERS) != strlen(r->json.value) ||
            !add_word(names, HR_FIELD_BYTES, " ", r->json.value))
            return refuse(r,
                          "\"modules_to_save\" is not a list of names of less than 64 characters");
    return true;
}

/* The modules in a list, all, or those that an expression matches. */
static bool read_targets(reading *r, hr_json_kind kind)
{
    r->config->train.adapter.targets[0] = 0;
    r->has_targets = true;
    if (kind == HR_JSON_STRING && !strcmp(r->json.value, "all-linear")) return add_target(r, kind);
    if (kind == HR_JSON_STRING) return read_target_regex(r);
    if (kind != HR_JSON_ARRAY) return refuse(r, "\"target_modules\" is not a list of names");
    while ((kind = hr_json_next(&r->json)) != HR_JSON_CLOSE)
        if (!add_target(r, kind)) return false;
    return *r->config->train.adapter.targets || refuse(r, "\"target_modules\" is empty");
}

/* It is only shown, so that a long name is cut. */
static bool read_base(reading *r, hr_json_kind kind)
{
    if (r->base && kind == HR_JSON_STRING) snprintf(r->base, HR_PATH_BYTES, "%s", r->json.value);
    return hr_json_skip(&r->json, kind);
}

static bool read_rank(reading *r, hr_json_kind kind)
{
    int64_t *rank = &r->config->train.adapter.rank;
    r->has_rank = kind == HR_JSON_NUMBER && hr_json_integer(&r->json, rank) && *rank >= 1 &&
                  *rank <= RANK_MOST;
    return r->has_rank || refuse(r, r->modulates ? "\"rank\" is not an integer from 1 to 1048576"
                                                 : "\"r\" is not an integer from 1 to 1048576");
}

static bool read_alpha(reading *r, hr_json_kind kind)
{
    double *alpha = &r->config->train.adapter.alpha;
    r->has_alpha = kind == HR_JSON_NUMBER && hr_json_real(&r->json, alpha) && isfinite(*alpha);
    return r->has_alpha || refuse(r, "\"lora_alpha\" is not a number");
}

static bool append_range(char *layers, int64_t first, int64_t last)
{
    char text[64];
    snprintf(text, sizeof text, first == last ? "%lld" : "%lld-%lld", (long long)first,
             (long long)last);
    return add_word(layers, HR_FIELD_BYTES, " ", text);
}

/* One layer, or a list of them. */
static bool read_layers(reading *r, hr_json_kind kind)
{
    char *layers = r->config->train.adapter.layers;
    const bool list = kind == HR_JSON_ARRAY;
    bool fits = true;
    int64_t layer, first = -1, last = -1;
    if (kind == HR_JSON_NULL) return true;
    if (list) kind = hr_json_next(&r->json);
    while (kind != HR_JSON_CLOSE) {
        if (kind != HR_JSON_NUMBER || !hr_json_integer(&r->json, &layer) || layer < 0)
            return refuse(r, r->modulates ? "\"layers\" is not a list of layers"
                                          : "\"layers_to_transform\" is not a list of layers");
        const bool goes_on = first >= 0 && layer == last + 1;
        if (first >= 0 && !goes_on) fits &= append_range(layers, first, last);
        if (!goes_on) first = layer;
        last = layer;
        kind = list ? hr_json_next(&r->json) : HR_JSON_CLOSE;
    }
    if (first >= 0) fits &= append_range(layers, first, last);
    return fits || refuse(r, "the list of layers has more than 63 characters");
}

/* Ranks or alphas of modules whose names end in what a key matches. */
static bool read_pattern(reading *r, hr_json_kind kind, const char *setting)
{
    char *groups = r->config->train.adapter.groups;
    char number[HR_REAL_BYTES], word[HR_WORD_BYTES];
    double value;
    if (kind == HR_JSON_NULL) return true;
    if (kind != HR_JSON_OBJECT) return refuse(r, "a pattern of ranks or alphas is not an object");
    while ((kind = hr_json_next(&r->json)) == HR_JSON_KEY) {
        const char *key = r->json.value;
        const bool is_name = strspn(key, NAME_LETTERS) == strlen(key);
        const int bytes = snprintf(word, sizeof word, is_name ? "%s" : "/(.*\\.)?(%s)/", key);
        if (bytes >= HR_WORD_BYTES - 1 || has_blanks(key) ||
            (!is_name && !hr_regex_is_valid(word + 1, bytes - 2)))
            return refuse(r, "a pattern of ranks or alphas is a name that is not read");
        if (hr_json_next(&r->json) != HR_JSON_NUMBER || !hr_json_real(&r->json, &value) ||
            !isfinite(value) || (*setting == 'r' && (value < 1 || value != floor(value))))
            return refuse(r, "a pattern of ranks or alphas has a value that is not read");
        snprintf(word + bytes, sizeof word - (size_t)bytes, " %s=%s", setting,
                 hr_real_print(value, number));
        if (!add_word(groups, HR_ADAPTER_GROUPS_BYTES, "; ", word))
            return refuse(r, "the patterns of ranks and alphas have more than 255 characters");
    }
    return kind == HR_JSON_CLOSE;
}

static bool is_harmless(const reading *r)
{
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (hr_json_is(&r->json, harmless[i])) return true;
    return false;
}

/* Reads the value of a key that must be off: null, false, {}, [], or of bias "none". */
static bool read_off(reading *r, hr_json_kind kind)
{
    if (kind == HR_JSON_NULL || kind == HR_JSON_FALSE) return true;
    if (kind == HR_JSON_STRING && !strcmp(r->key, "bias") && !strcmp(r->json.value, "none"))
        return true;
    if ((kind == HR_JSON_ARRAY || kind == HR_JSON_OBJECT) &&
        hr_json_next(&r->json) == HR_JSON_CLOSE)
        return true;
    for (char *c = r->key; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
    snprintf(r->text, sizeof r->text, "\"%.80s\" is set, which is not read and may change results",
             r->key);
    return refuse(r, r->text);
}

static bool read_member(reading *r)
{
    const bool skips = is_harmless(r);
    const char *key = r->key;
    snprintf(r->key, sizeof r->key, "%s", r->json.value);
    const hr_json_kind kind = hr_json_next(&r->json);
    if (skips) return hr_json_skip(&r->json, kind);
    if (!strcmp(key, "base_model_name_or_path")) return read_base(r, kind);
    if (!strcmp(key, "r")) return read_rank(r, kind);
    if (!strcmp(key, "lora_alpha")) return read_alpha(r, kind);
    if (!strcmp(key, "target_modules")) return read_targets(r, kind);
    if (!strcmp(key, "modules_to_save")) return read_saved(r, kind);
    if (!strcmp(key, "layers_to_transform")) return read_layers(r, kind);
    if (!strcmp(key, "rank_pattern")) return read_pattern(r, kind, "rank");
    if (!strcmp(key, "alpha_pattern")) return read_pattern(r, kind, "alpha");
    if (!strcmp(key, "init_lora_weights")) return read_initial(r, kind);
    const bool rslora = !strcmp(key, "use_rslora"), dora = !strcmp(key, "use_dora");
    if ((rslora || dora) && (kind == HR_JSON_TRUE || kind == HR_JSON_FALSE)) {
        *(dora ? &r->config->train.adapter.dora : &r->config->train.adapter.rslora) = kind ==
                                                                                      HR_JSON_TRUE;
        return true;
    }
    if (!strcmp(key, "peft_type")) {
        r->has_kind = kind == HR_JSON_STRING && !strcmp(r->json.value, "LORA");
        return r->has_kind || refuse(r, "\"peft_type\" is not LORA, the only kind that is read");
    }
    return read_off(r, kind);
}

/* The value of a key with choices. */
static bool read_form(reading *r, hr_json_kind kind)
{
    hr_error ignored;
    r->has_kind = kind == HR_JSON_STRING &&
                  hr_config_set(r->config, "train.adapter.form", r->json.value, &ignored) == HR_OK;
    return r->has_kind || refuse(r, "\"form\" is not diagonal, single, dual or triple");
}

/* A key of npt_config.json. */
static bool read_modulating_member(reading *r)
{
    hr_config_adapter *adapter = &r->config->train.adapter;
    snprintf(r->key, sizeof r->key, "%s", r->json.value);
    const hr_json_kind kind = hr_json_next(&r->json);
    if (!strcmp(r->key, "base")) return read_base(r, kind);
    if (!strcmp(r->key, "form")) return read_form(r, kind);
    if (!strcmp(r->key, "rank")) return read_rank(r, kind);
    if (!strcmp(r->key, "layers")) {
        r->has_targets = kind == HR_JSON_ARRAY && read_layers(r, kind) && *adapter->layers;
        return r->has_targets || refuse(r, "\"layers\" is not a list of layers");
    }
    if (!strcmp(r->key, "triples"))
        return (kind == HR_JSON_NUMBER && hr_json_integer(&r->json, &adapter->triples) &&
                adapter->triples >= 1 && adapter->triples <= TRIPLES_MOST) ||
               refuse(r, "\"triples\" is not an integer from 1 to 64");
    if (!strcmp(r->key, "scale"))
        return (kind == HR_JSON_NUMBER && hr_json_real(&r->json, &adapter->scale) &&
                isfinite(adapter->scale)) ||
               refuse(r, "\"scale\" is not a number");
    return read_off(r, kind);
}

static bool read_all(reading *r)
{
    hr_json_kind kind;
    if (hr_json_next(&r->json) != HR_JSON_OBJECT) return false;
    while ((kind = hr_json_next(&r->json)) == HR_JSON_KEY)
        if (!(r->modulates ? read_modulating_member(r) : read_member(r))) return false;
    return kind == HR_JSON_CLOSE && hr_json_next(&r->json) == HR_JSON_END;
}

/* Not inlined: the text is large, and the stack size is planned. */
static __attribute__((noinline)) hr_status read_file(const char *path, bool modulates,
                                                     hr_config *config, char *base, hr_error *err)
{
    char text[FILE_BYTES];
    int file;
    int64_t bytes;
    hr_status status = hr_file_open(path, &file, &bytes, err);
    if (status != HR_OK) return status;
    if (bytes > FILE_BYTES)
        status = hr_fail(err, HR_CORRUPT, "%.300s: has more than 64 KiB, the limit", path);
    else status = hr_file_read(file, path, 0, text, bytes, err);
    hr_file_close(&file);
    if (status != HR_OK) return status;
    reading r = { .json = hr_json_over_file(text, bytes), .config = config, .base = base };
    r.modulates = modulates;
    if (!read_all(&r))
        return hr_fail(err, HR_CORRUPT, "%.300s: %s", path,
                       r.problem        ? r.problem
                       : r.json.problem ? r.json.problem
                                        : "not a JSON object");
    const char *missing = !r.has_kind                  ? modulates ? "form" : "peft_type"
                          : !r.has_rank                ? modulates ? "rank" : "r"
                          : !r.has_alpha && !modulates ? "lora_alpha"
                          : !r.has_targets             ? modulates ? "layers" : "target_modules"
                                                       : NULL;
    if (missing) return hr_fail(err, HR_CORRUPT, "%.300s: has no \"%s\"", path, missing);
    config->train.adapter.kind = modulates ? HR_ADAPTER_NPT : HR_ADAPTER_LORA;
    return HR_OK;
}

hr_status hr_hf_adapter_split(const char *text, char folder[HR_PATH_BYTES], double *factor,
                              hr_error *err)
{
    *factor = 1;
    if (strlen(text) >= HR_PATH_BYTES)
        return hr_fail(err, HR_USAGE, "adapter: the path is too long");
    snprintf(folder, HR_PATH_BYTES, "%s", text);
    char *equals = strrchr(folder, '=');
    if (equals && hr_real_parse(equals + 1, factor)) *equals = 0;
    return *folder ? HR_OK : hr_fail(err, HR_USAGE, "adapter: the path is empty; give a folder");
}

hr_status hr_hf_adapter_read(const char *folder, hr_config *config, char base[HR_PATH_BYTES],
                             hr_error *err)
{
    char path[PATH_MAX];
    config->train.adapter.rslora = config->train.adapter.dora = false;
    config->train.adapter.layers[0] = config->train.adapter.groups[0] = 0;
    config->train.adapter.modules_to_save[0] = 0;
    config->train.adapter.targets[0] = 0;
    config->train.adapter.triples = 1;
    config->train.adapter.scale = 0.1;
    hr_status status = hr_path_join(folder, "npt_config.json", path, sizeof path, err);
    const bool modulates = status == HR_OK && hr_file_exists(path);
    if (status == HR_OK && !modulates)
        status = hr_path_join(folder, "adapter_config.json", path, sizeof path, err);
    return status == HR_OK ? read_file(path, modulates, config, base, err) : status;
}
