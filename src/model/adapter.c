/* SPDX-License-Identifier: Apache-2.0 */
/* model/adapter.c - matches the names of modules, and computes scales. */
#include "model/adapter.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "base/words.h"
#include "base/writer.h"
#include "config/config_keys.h"
#include "model/family.h"
#include "model/module_names.h"
#include "model/npt_inputs.h"

enum { RANK_MOST = 1 << 20 };

static const char *targets_of(const hr_config_adapter *adapter)
{
    return adapter->targets[0] ? adapter->targets : HR_ALL_LINEAR;
}

/* Whether a word of a group names a module. */
static bool is_in(const char *group, int16_t layer, const char *module)
{
    for (hr_words w = { group }; hr_words_next(&w);)
        if (!hr_word_is_setting(w.text) && hr_module_is_named(w.text, layer, module)) return true;
    return false;
}

/* ---- layers ---- */

/* Reads all, upper_half, lower_half, N or N-M. False: something else, or no such layer. */
static bool read_range(const char *word, int64_t layers, int64_t *first, int64_t *last)
{
    char text[HR_WORD_BYTES];
    snprintf(text, sizeof text, "%s", word);
    char *dash = strchr(text, '-');
    *first = strcmp(word, "upper_half") ? 0 : layers / 2;
    *last = strcmp(word, "lower_half") ? layers - 1 : layers / 2 - 1;
    if (!strcmp(word, "all") || !strcmp(word, "upper_half") || !strcmp(word, "lower_half"))
        return *last >= *first;
    if (dash) *dash = 0;
    if (!hr_integer_parse(text, first)) return false;
    *last = *first;
    if (dash && !hr_integer_parse(dash + 1, last)) return false;
    return *first >= 0 && *first <= *last && *last < layers;
}

static bool has_layer(const char *list, int64_t layers, int64_t layer)
{
    int64_t first, last;
    if (!*list) return true;
    for (hr_words w = { list }; hr_words_next(&w);)
        if (read_range(w.text, layers, &first, &last) && layer >= first && layer <= last)
            return true;
    return false;
}

bool hr_adapter_same_layers(const char *a, const char *b, int64_t layers)
{
    const char *const lists[] = { a, b };
    int64_t first, last;
    for (int i = 0; i < 2; i++)
        for (hr_words w = { lists[i] }; hr_words_next(&w);)
            if (!read_range(w.text, layers, &first, &last)) return false;
    for (int64_t layer = 0; layer < layers; layer++)
        if (has_layer(a, layers, layer) != has_layer(b, layers, layer)) return false;
    return true;
}

/* ---- groups ---- */

/* Reads rank=R or alpha=X. */
static bool read_setting(const char *word, int64_t *rank, double *alpha)
{
    if (!strncmp(word, "rank=", 5))
        return hr_integer_parse(word + 5, rank) && *rank >= 1 && *rank <= RANK_MOST;
    return !strncmp(word, "alpha=", 6) && hr_real_parse(word + 6, alpha) && isfinite(*alpha);
}

/* Applies the groups that name a module, the first last. */
static void apply_groups(const hr_config_adapter *adapter, int16_t layer, const char *module,
                         int64_t *rank, double *alpha)
{
    bool has_rank = false, has_alpha = false;
    for (const char *group = adapter->groups; group; group = hr_words_next_group(group)) {
        if (!is_in(group, layer, module)) continue;
        for (hr_words w = { group }; hr_words_next(&w);) {
            bool *const has = *w.text == 'r' ? &has_rank : &has_alpha;
            if (!hr_word_is_setting(w.text) || *has) continue;
            *has = read_setting(w.text, rank, alpha);
        }
    }
}

bool hr_adapter_saves(const hr_config *config, const char *name)
{
    char module[HR_MODULE_BYTES];
    bool saves = false;
    hr_module_of(name, module);
    if (hr_ends_with(module, ".bias")) module[strlen(module) - strlen(".bias")] = 0;
    for (hr_words w = { config->train.adapter.modules_to_save }; !saves && hr_words_next(&w);)
        saves = hr_ends_with(module, w.text);
    return saves;
}

/* The matrices of the MLP that each form changes. */
static const uint8_t places_of[] = {
    [HR_NPT_DIAGONAL] = 1 << HR_MLP_GATE,
    [HR_NPT_SINGLE] = 1 << HR_MLP_GATE,
    [HR_NPT_DUAL] = 1 << HR_MLP_GATE | 1 << HR_MLP_UP,
    [HR_NPT_TRIPLE] = 1 << HR_MLP_GATE | 1 << HR_MLP_UP | 1 << HR_MLP_DOWN,
};

hr_adapter_rule hr_adapter_modulating(const hr_config *config)
{
    const hr_config_adapter *adapter = &config->train.adapter;
    const bool diagonal = adapter->form == HR_NPT_DIAGONAL;
    return (hr_adapter_rule){ .rank = (int32_t)adapter->rank,
                              .scale = (float)(adapter->factor * (diagonal ? adapter->scale : 1)),
                              .form = diagonal ? HR_ADAPTER_DIAGONAL : HR_ADAPTER_OUTER,
                              .places = places_of[adapter->form],
                              .triples = (uint8_t)adapter->triples,
                              .width = config->model.d_model };
}

/* The same of a layer; rank 0: it is a standard one. */
static hr_adapter_rule modulating_in(const hr_config *config, int16_t layer)
{
    const hr_config_adapter *adapter = &config->train.adapter;
    const int64_t layers = config->model.n_layers;
    hr_adapter_rule rule = hr_adapter_modulating(config);
    if (layer == HR_NONE || !has_layer(adapter->layers, layers, layer)) rule.rank = 0;
    rule.off = !has_layer(adapter->switched, layers, layer);
    return rule;
}

hr_adapter_rule hr_adapter_of(const hr_config *config, int32_t which, int16_t layer,
                              const char *name)
{
    const hr_config_adapter *adapter = &config->train.adapter;
    char module[HR_MODULE_BYTES];
    while (adapter && which-- > 0) adapter = adapter->next;
    if (!adapter || adapter->kind == HR_ADAPTER_NONE) return (hr_adapter_rule){ .rank = 0 };
    if (adapter->kind == HR_ADAPTER_NPT) return modulating_in(config, layer);
    hr_module_of(name, module);
    if (!is_in(targets_of(adapter), layer, module) ||
        !has_layer(adapter->layers, config->model.n_layers, layer))
        return (hr_adapter_rule){ .rank = 0 };
    int64_t rank = adapter->rank;
    double alpha = adapter->alpha;
    apply_groups(adapter, layer, module, &rank, &alpha);
    const double part = adapter->rslora ? sqrt((double)rank) : (double)rank;
    return (hr_adapter_rule){ .rank = (int32_t)rank,
                              .scale = (float)(adapter->factor * alpha / part),
                              .magnitudes = adapter->dora };
}

/* The largest rank that the keys name. */
static int64_t largest_rank(const hr_config_adapter *adapter)
{
    int64_t most = 0;
    for (; adapter; adapter = adapter->next) {
        int64_t rank = adapter->rank;
        double alpha;
        most = hr_max(most, rank);
        for (const char *group = adapter->groups; group; group = hr_words_next_group(group))
            for (hr_words w = { group }; hr_words_next(&w);)
                if (*w.text == 'r' && hr_word_is_setting(w.text) &&
                    read_setting(w.text, &rank, &alpha))
                    most = hr_max(most, rank);
    }
    return most;
}

/* Copies a name of the layer 0 with another index. */
static void rename_layer(const char *name, int64_t layer, char renamed[HR_MODULE_BYTES])
{
    const char *at = strstr(name, ".0.");
    const int before = at ? (int)(at - name) : (int)strlen(name);
    if (at)
        snprintf(renamed, HR_MODULE_BYTES, "%.*s.%lld%s", before, name, (long long)layer, at + 2);
    else snprintf(renamed, HR_MODULE_BYTES, "%s", name);
}

hr_adapter_rule hr_adapter_widest(const hr_config *config, int32_t which, int16_t layer,
                                  const char *name)
{
    hr_adapter_rule widest = hr_adapter_of(config, which, layer, name);
    if (layer == HR_NONE || config->train.adapter.kind == HR_ADAPTER_NONE) return widest;
    const int64_t most = largest_rank(&config->train.adapter);
    for (int64_t l = 1; l < config->model.n_layers && widest.rank < most; l++) {
        char renamed[HR_MODULE_BYTES];
        rename_layer(name, l, renamed);
        const hr_adapter_rule rule = hr_adapter_of(config, which, (int16_t)l, renamed);
        if (rule.rank > widest.rank) widest = rule;
    }
    return widest;
}

/* ---- checks ---- */

/* Whether a parameter may have an adapter at all. */
static bool is_matrix(const hr_param *param)
{
    return param->adapts == HR_NONE && param->dims[1] && !param->rule.saved;
}

/* Letters that two words have in common at their ends and beginnings. */
static size_t likeness(const char *a, const char *b)
{
    const size_t m = strlen(a), n = strlen(b);
    size_t begin = 0, end = 0;
    while (begin < m && begin < n && a[begin] == b[begin]) begin++;
    while (end < m - begin && end < n - begin && a[m - end - 1] == b[n - end - 1]) end++;
    return begin + end;
}

/* The module that is most like a word: its last part, or its name if that is liker. */
static void nearest(const hr_program *program, const char *word, char found[HR_MODULE_BYTES])
{
    size_t best = 0;
    found[0] = 0;
    for (int32_t p = 0; p < program->param_count; p++) {
        char module[HR_MODULE_BYTES];
        if (!is_matrix(&program->params[p])) continue;
        hr_module_of(program->params[p].external_name, module);
        const char *dot = strrchr(module, '.'), *last = dot ? dot + 1 : module;
        if (!strcmp(last, word) || !strcmp(module, word)) continue; /* it can have none */
        const size_t part = likeness(word, last), whole = likeness(word, module);
        if (found[0] && part <= best && whole <= best) continue;
        best = part < whole ? whole : part;
        snprintf(found, HR_MODULE_BYTES, "%s", part < whole ? module : last);
    }
}

static hr_status check_matches(const char *key, const char *group, const hr_program *program,
                               hr_error *err)
{
    for (hr_words w = { group }; hr_words_next(&w);) {
        char found[HR_MODULE_BYTES];
        bool any = hr_word_is_setting(w.text);
        for (int32_t p = 0; p < program->param_count && !any; p++) {
            const hr_param *param = &program->params[p];
            hr_module_of(param->external_name, found);
            any = param->adapter != HR_NONE &&
                  hr_module_is_named(w.text, program->tensors[param->weight].layer, found);
        }
        if (any) continue;
        if (hr_word_distance(w.text, "all-linear") <= 2)
            snprintf(found, sizeof found, "all-linear");
        else nearest(program, w.text, found);
        return hr_fail(err, HR_USAGE,
                       "%s: no module that can have an adapter is named \"%s\"; "
                       "the nearest is %s",
                       key, w.text, found);
    }
    return HR_OK;
}

static hr_status check_saved(const hr_config *config, const hr_program *program, hr_error *err)
{
    for (hr_words w = { config->train.adapter.modules_to_save }; hr_words_next(&w);) {
        bool any = false;
        for (int32_t p = 0; p < program->param_count && !any; p++) {
            char module[HR_MODULE_BYTES];
            const hr_param *param = &program->params[p];
            hr_module_of(hr_param_name_in_model(param), module);
            if (hr_ends_with(module, ".bias")) continue;
            any = param->rule.saved && hr_ends_with(module, w.text);
            if (any && p == 0 && param->external_transposed)
                return hr_fail(err, HR_USAGE,
                               "train.adapter.modules_to_save: %s is also the output head of this "
                               "model, and PEFT would train a copy beside it",
                               module);
        }
        if (!any)
            return hr_fail(err, HR_USAGE,
                           "train.adapter.modules_to_save: no module is named \"%s\"", w.text);
    }
    return HR_OK;
}

static hr_status check_group(const char *group, hr_error *err)
{
    int32_t words = 0, settings = 0;
    int64_t rank;
    double alpha;
    for (hr_words w = { group }; hr_words_next(&w);) {
        const bool sets = hr_word_is_setting(w.text);
        *(sets ? &settings : &words) += 1;
        if (sets && !read_setting(w.text, &rank, &alpha))
            return hr_fail(err, HR_USAGE,
                           "train.adapter.groups: \"%s\" is not rank=R with an integer from 1 to "
                           "%d, or alpha=X with a number",
                           w.text, RANK_MOST);
        const hr_status status = sets ? HR_OK
                                      : hr_module_word_check("train.adapter.groups", w.text, err);
        if (status != HR_OK) return status;
    }
    if (!words == !settings) return HR_OK;
    return hr_fail(err, HR_USAGE,
                   "train.adapter.groups: a group has %s; write \"down_proj rank=8 alpha=16; "
                   "k_proj rank=4\"",
                   words ? "names but neither rank= nor alpha=" : "no name");
}

static hr_status check_layers(const hr_config *config, const char *key, const char *list,
                              hr_error *err)
{
    int64_t first, last;
    for (hr_words w = { list }; hr_words_next(&w);)
        if (!read_range(w.text, config->model.n_layers, &first, &last))
            return hr_fail(err, HR_USAGE,
                           "%s: \"%s\" is neither all, %supper_half, lower_half nor layers from 0 "
                           "to %lld, such as 3 or 0-3",
                           key, w.text, *key == '-' ? "none, " : "",
                           (long long)config->model.n_layers - 1);
    return HR_OK;
}

hr_status hr_adapter_check_switched(const hr_config *config, hr_error *err)
{
    const hr_config_adapter *adapter = &config->train.adapter;
    const int64_t layers = config->model.n_layers;
    if (!strcmp(adapter->switched, "none")) return HR_OK;
    const hr_status status = check_layers(config, "--npt-layers", adapter->switched, err);
    for (int64_t l = 0; status == HR_OK && *adapter->switched && l < layers; l++)
        if (has_layer(adapter->switched, layers, l) && !has_layer(adapter->layers, layers, l))
            return hr_fail(err, HR_USAGE,
                           "--npt-layers: layer %lld has no adapters; the folder has those of %s",
                           (long long)l, adapter->layers);
    return status;
}

/* Checks what adapters that are a function of the token are trained for. */
static hr_status check_objective(const hr_config *config, hr_error *err)
{
    const hr_config_adapter *adapter = &config->train.adapter;
    const char *inputs = adapter->inputs;
    const hr_status status = hr_npt_inputs_check(inputs, err);
    if (status != HR_OK) return status;
    if (adapter->objective == HR_NPT_LM && *inputs && strcmp(inputs, "student") != 0)
        return hr_fail(err, HR_USAGE,
                       "train.adapter.objective lm: the loss is of the whole model, whose layers "
                       "read each other; leave train.adapter.inputs out");
    if (adapter->objective == HR_NPT_LM) return HR_OK;
    if (config->model.dropout > 0)
        return hr_fail(
            err, HR_USAGE,
            "model.dropout %g: a layer cannot learn to equal one that drops other values "
            "each time; use model.dropout=0",
            config->model.dropout);
    if (config->train.z_loss > 0)
        return hr_fail(err, HR_USAGE,
                       "train.z_loss is of logits, which train.adapter.objective %s does not have",
                       adapter->objective == HR_NPT_DIRECT ? "direct" : "equivalence");
    return HR_OK;
}

/* Keys that only adapters have, and of which kind. */
static const struct {
    const char *key;
    hr_adapter_kind kind; /* none: both */
} own_keys[] = {
    { "train.adapter.rank", HR_ADAPTER_NONE },
    { "train.adapter.layers", HR_ADAPTER_NONE },
    { "train.adapter.alpha", HR_ADAPTER_LORA },
    { "train.adapter.dropout", HR_ADAPTER_LORA },
    { "train.adapter.rslora", HR_ADAPTER_LORA },
    { "train.adapter.dora", HR_ADAPTER_LORA },
    { "train.adapter.targets", HR_ADAPTER_LORA },
    { "train.adapter.modules_to_save", HR_ADAPTER_LORA },
    { "train.adapter.groups", HR_ADAPTER_LORA },
    { "train.adapter.form", HR_ADAPTER_NPT },
    { "train.adapter.triples", HR_ADAPTER_NPT },
    { "train.adapter.scale", HR_ADAPTER_NPT },
    { "train.adapter.objective", HR_ADAPTER_NPT },
    { "train.adapter.measure", HR_ADAPTER_NPT },
    { "train.adapter.regularisation", HR_ADAPTER_NPT },
    { "train.adapter.inputs", HR_ADAPTER_NPT },
};

/* Refuses a key that the adapters do not have: a run without train.adapter.kind trains all weights.
 * A key with its default says nothing. */
static hr_status check_own_keys(const hr_config *config, hr_error *err)
{
    static const char *const kinds[] = { "none", "lora", "npt" };
    const hr_adapter_kind kind = (hr_adapter_kind)config->train.adapter.kind;
    enum { SECTION = sizeof "train.adapter." - 1 };
    char others[256];
    hr_writer has = { .text = others, .bytes = sizeof others };
    for (size_t i = 0; i < sizeof own_keys / sizeof *own_keys; i++)
        if (own_keys[i].kind == HR_ADAPTER_NONE || own_keys[i].kind == kind)
            hr_put(&has, "%s%s", has.used ? ", " : "", own_keys[i].key + SECTION);
    for (size_t i = 0; i < sizeof own_keys / sizeof *own_keys; i++) {
        const char *key = own_keys[i].key;
        const hr_adapter_kind of = own_keys[i].kind;
        if (!hr_config_is_given_beside(config, "train.adapter.kind", key) ||
            !hr_config_is_changed(config, key))
            continue;
        if (kind == HR_ADAPTER_NONE)
            return hr_fail(err, HR_USAGE,
                           "%s does nothing with train.adapter.kind=none: use "
                           "train.adapter.kind=%s, or leave it out",
                           key, kinds[of == HR_ADAPTER_NPT ? HR_ADAPTER_NPT : HR_ADAPTER_LORA]);
        if (of != HR_ADAPTER_NONE && of != kind)
            return hr_fail(err, HR_USAGE, "%s is a key of kind %s; kind %s has %s", key, kinds[of],
                           kinds[kind], others);
    }
    return HR_OK;
}

/* Checks the keys of adapters that are a function of the token. */
static hr_status check_modulating(const hr_config *config, hr_error *err)
{
    const hr_config_adapter *adapter = &config->train.adapter;
    const hr_family_spec *family = hr_family_of(config);
    if (config->train.steps && config->train.schedule.warmup_steps > config->train.steps)
        return hr_fail(err, HR_USAGE,
                       "train.schedule.warmup_steps %lld is more than train.steps %lld: the run "
                       "would end before its learning rate is reached",
                       (long long)config->train.schedule.warmup_steps,
                       (long long)config->train.steps);
    if (family->traits & HR_HAS_STATES)
        return hr_fail(err, HR_USAGE, "train.adapter.kind npt: model.family %s has no MLP",
                       family->name);
    if (adapter->form >= HR_NPT_DUAL && !(family->traits & HR_GATES))
        return hr_fail(err, HR_USAGE,
                       "train.adapter.form %s changes the gate and what it multiplies, and the "
                       "MLP of model.family %s has no gate: use diagonal or single",
                       adapter->form == HR_NPT_DUAL ? "dual" : "triple", family->name);
    return check_objective(config, err);
}

hr_status hr_adapter_check_words(const hr_config *config, hr_error *err)
{
    const hr_config_adapter *adapter = &config->train.adapter;
    hr_status status = check_own_keys(config, err);
    if (status != HR_OK || adapter->kind == HR_ADAPTER_NONE) return status;
    if (config->train.adapter.kind == HR_ADAPTER_NPT) status = check_modulating(config, err);
    if (status != HR_OK) return status;
    if (strchr(config->train.adapter.targets, ';') || strchr(config->train.adapter.layers, ';') ||
        strchr(config->train.adapter.modules_to_save, ';'))
        return hr_fail(err, HR_USAGE,
                       "train.adapter: targets, layers and modules_to_save are separated by blanks "
                       "or commas, not by \";\"");
    for (hr_words w = { targets_of(&config->train.adapter) }; status == HR_OK && hr_words_next(&w);)
        status = hr_module_word_check("train.adapter.targets", w.text, err);
    for (hr_words w = { config->train.adapter.modules_to_save };
         status == HR_OK && hr_words_next(&w);)
        if (strpbrk(w.text, "/*?["))
            status = hr_fail(err, HR_USAGE,
                             "train.adapter.modules_to_save takes names of modules, not \"%s\"",
                             w.text);
    for (const char *group = config->train.adapter.groups; group && status == HR_OK;
         group = hr_words_next_group(group))
        status = check_group(group, err);
    return status == HR_OK ? check_layers(config, "train.adapter.layers", adapter->layers, err)
                           : status;
}

hr_status hr_adapter_check(const hr_config *config, const hr_program *program, hr_error *err)
{
    if (config->train.adapter.kind == HR_ADAPTER_NONE) return HR_OK;
    if (config->train.freeze[0])
        return hr_fail(err, HR_USAGE,
                       "train.freeze%s and train.adapter.kind: with adapters all other weights are "
                       "frozen; leave %s out",
                       config->stage.count ? " or freeze of a stage" : "",
                       config->stage.count ? "them" : "train.freeze");
    if (config->train.adapter.kind == HR_ADAPTER_NPT) return HR_OK;
    /* A folder may name modules that its base does not have, as others read it: its weights are
     * compared with the model one by one. */
    const bool own = !config->train.adapter.from[0];
    hr_status status = own ? check_matches("train.adapter.targets",
                                           targets_of(&config->train.adapter), program, err)
                           : HR_OK;
    for (const char *group = config->train.adapter.groups; own && group && status == HR_OK;
         group = hr_words_next_group(group))
        status = check_matches("train.adapter.groups", group, program, err);
    if (status == HR_OK) status = check_saved(config, program, err);
    for (int32_t p = 0; p < program->param_count && status == HR_OK; p++)
        if (config->train.adapter.dora && program->params[p].adapter != HR_NONE &&
            hr_program_looks_up(program, program->params[p].adapter))
            status = hr_fail(err, HR_USAGE,
                             "train.adapter.dora: adapters of an embedding have no magnitudes; "
                             "leave %s out of train.adapter.targets",
                             program->params[p].external_name);
    return status;
}
