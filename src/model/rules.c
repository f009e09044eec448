/* SPDX-License-Identifier: Apache-2.0 */
/* model/rules.c - parses the two keys at each query. */
#include "model/rules.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"
#include "base/words.h"
#include "headroom/stages.h"
#include "model/adapter.h"

enum { RANKS = sizeof((hr_trained){ 0 }.ranks) / sizeof(int32_t) };

static bool matches(const char *pattern, const char *name)
{
    return fnmatch(pattern, name, 0) == 0;
}

/* Parses lr=X or decay=X. */
static hr_status read_setting(const char *text, hr_param_rule *rule, hr_error *err)
{
    enum { FACTOR_MOST = 1000 };
    double *const value = !strncmp(text, "lr=", 3)      ? &rule->lr_scale
                          : !strncmp(text, "decay=", 6) ? &rule->decay
                                                        : NULL;
    if (!value)
        return hr_fail(
            err, HR_USAGE,
            "train.param_groups: \"%s\" is not a setting; the settings are lr= and decay=", text);
    if (hr_real_parse(strchr(text, '=') + 1, value) && *value >= 0 && *value <= FACTOR_MOST)
        return HR_OK;
    return hr_fail(err, HR_USAGE, "train.param_groups: \"%s\" must be a number from 0 to %d", text,
                   FACTOR_MOST);
}

/* Returns whether a pattern of the group, or of a key without groups, matches. */
static bool matches_any(const char *group, const char *name)
{
    for (hr_words w = { group }; hr_words_next(&w);)
        if (!hr_word_is_setting(w.text) && matches(w.text, name)) return true;
    return false;
}

static void apply_groups(const char *groups, const char *name, hr_param_rule *rule)
{
    hr_error ignored;
    const char *group = groups;
    while (group && !matches_any(group, name)) group = hr_words_next_group(group);
    if (!group) return;
    for (hr_words w = { group }; hr_words_next(&w);)
        if (hr_word_is_setting(w.text)) (void)!read_setting(w.text, rule, &ignored);
}

static bool is_frozen(const hr_rules *rules, int16_t layer, int32_t index, const char *name)
{
    const hr_trained *trained = rules->trained;
    if (trained && layer != HR_NONE)
        return layer < trained->frozen_in_proxy || !(trained->layers >> index & 1);
    if (rules->config->train.adapter.kind != HR_ADAPTER_NONE)
        return !hr_adapter_saves(rules->config, name);
    return matches_any(rules->config->train.freeze, name);
}

/* Whether a parameter that is frozen in a stage is trained in another. */
static bool is_trained_later(const hr_config *config, const char *name)
{
    char patterns[HR_PATH_BYTES];
    if (!config->stage.count || config->train.adapter.kind != HR_ADAPTER_NONE) return false;
    snprintf(patterns, sizeof patterns, "%.*s", config->stage.freeze_bytes, config->train.freeze);
    if (matches_any(patterns, name)) return false;
    for (int32_t i = 0; i < config->stage.count; i++) {
        hr_config_stage_word(config, i, "freeze", patterns);
        if (!matches_any(patterns, name)) return true;
    }
    return false;
}

int64_t hr_rules_missed(const hr_config *config, const char *name)
{
    char patterns[HR_PATH_BYTES];
    hr_stages stages;
    int64_t steps = 0;
    if (config->stage.index == 0 || hr_config_stages(config, &stages, NULL) != HR_OK) return 0;
    for (int32_t i = 0; i < config->stage.index; i++) {
        hr_config_stage_word(config, i, "freeze", patterns);
        if (matches_any(patterns, name))
            steps += stages.at[i + 1].first_step - stages.at[i].first_step;
    }
    return steps;
}

static bool rests(const hr_rules *rules, int16_t layer, int32_t index, const char *name)
{
    const hr_trained *trained = rules->trained;
    if (!trained || layer == HR_NONE) return is_trained_later(rules->config, name);
    return layer >= trained->frozen_in_proxy && trained->rests >> index & 1;
}

hr_param_rule hr_rules_of(const void *of, int16_t layer, int32_t index, bool vector, bool adapter,
                          const char *name)
{
    const hr_rules *rules = of;
    const hr_config *config = rules->config;
    const bool frozen = !adapter && is_frozen(rules, layer, index, name);
    const bool adapts = config->train.adapter.kind != HR_ADAPTER_NONE;
    hr_param_rule rule = { .frozen = frozen,
                           .rests = frozen && rests(rules, layer, index, name),
                           .base = frozen && adapts,
                           .saved = adapts && !adapter && !frozen,
                           .lr_scale = 1,
                           .decay = vector ? 0 : config->train.optimizer.weight_decay };
    apply_groups(config->train.param_groups, name, &rule);
    return rule;
}

hr_adapter_rule hr_rules_adapter(const void *of, int32_t which, int16_t layer, int32_t index,
                                 const char *name)
{
    const hr_rules *rules = of;
    const hr_trained *trained = rules->trained;
    if (!trained || layer == HR_NONE) return hr_adapter_of(rules->config, which, layer, name);
    const int32_t rank = which || layer < trained->frozen_in_proxy ? 0 : trained->ranks[index];
    hr_adapter_rule rule = { .rank = rank,
                             .scale = 1,
                             .magnitudes = rules->config->train.adapter.dora };
    if (rules->config->train.adapter.kind == HR_ADAPTER_NPT)
        rule = hr_adapter_modulating(rules->config);
    if (!rank) rule.rank = 0;
    return rule;
}

/* ---- checks ---- */

static hr_status check_length(const char *key, const hr_words *w, hr_error *err)
{
    if (strlen(w->text) <= HR_PATTERN_MOST) return HR_OK;
    return hr_fail(err, HR_USAGE, "%s: a word has more than %d characters: %.20s...", key,
                   HR_PATTERN_MOST, w->text);
}

static hr_status check_group(const char *group, hr_error *err)
{
    hr_param_rule rule;
    int32_t patterns = 0, settings = 0;
    for (hr_words w = { group }; hr_words_next(&w);) {
        hr_status status = check_length("train.param_groups", &w, err);
        if (status == HR_OK && hr_word_is_setting(w.text))
            status = read_setting(w.text, &rule, err);
        if (status != HR_OK) return status;
        *(hr_word_is_setting(w.text) ? &settings : &patterns) += 1;
    }
    if (!patterns == !settings) return HR_OK;
    return hr_fail(err, HR_USAGE,
                   "train.param_groups: a group has %s; write \"*.bias decay=0; head lr=0.1\"",
                   patterns ? "patterns but neither lr= nor decay=" : "no pattern");
}

hr_status hr_rules_check(const hr_config *config, hr_error *err)
{
    const char *group = config->train.param_groups,
               *odd = strchr(config->train.freeze, ';') ? ";" : NULL;
    hr_status status = HR_OK;
    hr_words w = { config->train.freeze };
    while (status == HR_OK && !odd && hr_words_next(&w)) {
        status = check_length("train.freeze", &w, err);
        if (hr_word_is_setting(w.text)) odd = w.text;
    }
    if (status == HR_OK) status = hr_adapter_check_words(config, err);
    if (status == HR_OK && odd)
        return hr_fail(err, HR_USAGE, "train.freeze takes name patterns only, not \"%s\"", odd);
    for (; group && status == HR_OK; group = hr_words_next_group(group))
        status = check_group(group, err);
    return status;
}

static hr_status check_patterns(const char *key, const char *group, const hr_program *program,
                                hr_error *err)
{
    for (hr_words w = { group }; hr_words_next(&w);) {
        bool any = hr_word_is_setting(w.text);
        for (int32_t p = 0; p < program->param_count && !any; p++)
            any = matches(w.text, program->params[p].external_name);
        if (!any)
            return hr_fail(err, HR_USAGE,
                           "%s: no parameter matches \"%s\"; the first of %d parameters is %s", key,
                           w.text, program->param_count, program->params[0].external_name);
    }
    return HR_OK;
}

hr_status hr_rules_check_names(const hr_config *config, const hr_program *program, hr_error *err)
{
    hr_status status = check_patterns("train.freeze", config->train.freeze, program, err);
    const char *group = config->train.param_groups;
    for (; group && status == HR_OK; group = hr_words_next_group(group))
        status = check_patterns("train.param_groups", group, program, err);
    if (status != HR_OK) return status;
    for (int32_t p = 0; p < program->param_count; p++)
        if (!program->params[p].rule.frozen) return HR_OK;
    return hr_fail(err, HR_USAGE, "train.freeze freezes all %d parameters", program->param_count);
}

/* ---- trained parameters ---- */

static int32_t first_trained_layer(const hr_program *program, int32_t layers)
{
    int32_t first = layers - 1;
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_step *step = &program->steps[s];
        if (step->direction == HR_DIR_BACKWARD && step->layer != HR_NONE)
            first = (int32_t)hr_min(first, step->layer);
    }
    return first;
}

hr_trained hr_trained_of(const hr_program *program, int32_t layers)
{
    hr_trained trained = { .frozen = first_trained_layer(program, layers) };
    uint64_t any = 0, all = UINT64_MAX, here = 0, resting = 0, rest_all = UINT64_MAX;
    int32_t index = 0, least[RANKS] = { 0 };
    bool first = true;
    for (int32_t p = 0; p < program->param_count; p++) {
        const hr_param *param = &program->params[p];
        const int32_t layer = program->tensors[param->weight].layer;
        const bool goes_on = p + 1 < program->param_count &&
                             program->tensors[program->params[p + 1].weight].layer == layer;
        if (layer < trained.frozen) continue; /* or not in a layer */
        if (param->adapts == HR_NONE) {
            const int32_t rank = (int32_t)hr_program_rank(program, p);
            if (!param->rule.frozen) here |= UINT64_C(1) << index;
            if (param->rule.rests) resting |= UINT64_C(1) << index;
            least[index] = first ? rank : (int32_t)hr_min(least[index], rank);
            trained.ranks[index] = (int32_t)hr_max(trained.ranks[index], rank);
            index++;
        }
        if (goes_on) continue;
        any |= here;
        all &= here;
        trained.rests |= resting;
        rest_all &= resting;
        here = resting = 0;
        index = 0;
        first = false;
    }
    trained.layers = any;
    trained.uniform = any == all && (first || rest_all == trained.rests) &&
                      !memcmp(least, trained.ranks, sizeof least);
    for (int32_t t = 0; t < program->tensor_count; t++)
        if (hr_is_kept_in(program, t, 0, trained.frozen))
            trained.frozen_bytes += hr_round_up(hr_tensor_bytes(&program->tensors[t]),
                                                hr_program_align(program, HR_SPACE_HOST));
    trained.count = hr_program_trained(program, 0);
    return trained;
}
