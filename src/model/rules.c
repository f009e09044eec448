/* SPDX-License-Identifier: Apache-2.0 */
/* model/rules.c - reads the two keys word by word, each time that it is asked. */
#include "model/rules.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"

#define BETWEEN " \t\r\n,"

enum { WORD_BYTES = 128 };

/* A word of a key. */
typedef struct {
    const char *at; /* what follows it */
    char text[WORD_BYTES];
    bool ends_group; /* it is no word, but the end of a group */
} word;

/* False: there is none. A word that is too long is cut, and matches nothing. */
static bool next_word(word *w)
{
    w->at += strspn(w->at, BETWEEN);
    w->ends_group = *w->at == ';';
    if (w->ends_group) w->at++;
    else if (!*w->at) return false;
    const size_t length = w->ends_group ? 0 : strcspn(w->at, BETWEEN ";");
    snprintf(w->text, sizeof w->text, "%.*s", (int)length, w->at);
    w->at += length;
    return true;
}

static bool matches(const char *pattern, const char *name)
{
    return fnmatch(pattern, name, 0) == 0;
}

static bool is_setting(const char *text)
{
    return strchr(text, '=') != NULL;
}

/* lr=X or decay=X. */
static hr_status read_setting(const char *text, hr_param_rule *rule, hr_error *err)
{
    enum { FACTOR_MOST = 1000 };
    double *const value = !strncmp(text, "lr=", 3)      ? &rule->lr_scale
                          : !strncmp(text, "decay=", 6) ? &rule->decay
                                                        : NULL;
    if (!value)
        return hr_fail(err, HR_USAGE,
                       "train.groups: \"%s\" is no setting; there are lr= and decay=", text);
    if (hr_real_parse(strchr(text, '=') + 1, value) && *value >= 0 && *value <= FACTOR_MOST)
        return HR_OK;
    return hr_fail(err, HR_USAGE, "train.groups: \"%s\" must be a number from 0 to %d", text,
                   FACTOR_MOST);
}

/* The settings of the group that ends before the word. */
static void settle(const char *group, const char *end, hr_param_rule *rule)
{
    hr_error ignored;
    for (word w = { group }; next_word(&w) && w.at <= end && !w.ends_group;)
        if (is_setting(w.text)) (void)!read_setting(w.text, rule, &ignored);
}

static void apply_groups(const char *groups, const char *name, hr_param_rule *rule)
{
    const char *group = groups;
    bool is_meant = false, more = true;
    for (word w = { groups }; more;) {
        more = next_word(&w);
        if (more && !w.ends_group) {
            is_meant |= !is_setting(w.text) && matches(w.text, name);
            continue;
        }
        if (is_meant) {
            settle(group, w.at, rule);
            return;
        }
        group = w.at;
    }
}

static bool is_frozen(const hr_rules *rules, int16_t layer, int32_t index, const char *name)
{
    const hr_trained *trained = rules->trained;
    if (trained && layer != HR_NONE)
        return layer < trained->stands || !(trained->layers >> index & 1);
    for (word w = { rules->config->train.freeze }; next_word(&w);)
        if (matches(w.text, name)) return true;
    return false;
}

hr_param_rule hr_rules_of(const void *of, int16_t layer, int32_t index, bool vector,
                          const char *name)
{
    const hr_rules *rules = of;
    const hr_config *config = rules->config;
    hr_param_rule rule = { .frozen = is_frozen(rules, layer, index, name),
                           .lr_scale = 1,
                           .decay = vector ? 0 : config->train.optimizer.weight_decay };
    apply_groups(config->train.groups, name, &rule);
    return rule;
}

/* ---- checks ---- */

hr_status hr_rules_check(const hr_config *config, hr_error *err)
{
    hr_param_rule rule;
    int32_t patterns = 0, settings = 0;
    bool more = true;
    for (word w = { config->train.freeze }; next_word(&w);)
        if (w.ends_group || is_setting(w.text))
            return hr_fail(err, HR_USAGE,
                           "train.freeze takes patterns of names alone, and no \"%s\"",
                           w.ends_group ? ";" : w.text);
    for (word w = { config->train.groups }; more;) {
        more = next_word(&w);
        if (more && !w.ends_group && is_setting(w.text)) {
            const hr_status status = read_setting(w.text, &rule, err);
            if (status != HR_OK) return status;
            settings++;
        } else if (more && !w.ends_group) {
            patterns++;
        } else {
            if (!patterns != !settings)
                return hr_fail(
                    err, HR_USAGE,
                    "train.groups: a group has %s; write \"*.bias decay=0; head lr=0.1\"",
                    patterns ? "patterns and neither lr= nor decay=" : "no pattern");
            patterns = settings = 0;
        }
    }
    return HR_OK;
}

/* The name that is nearest to a pattern, for people. */
static const char *nearest_name(const hr_program *program, const char *pattern)
{
    const char *nearest = "";
    int32_t least = INT32_MAX;
    for (int32_t p = 0; p < program->param_count; p++) {
        const int32_t distance = hr_word_distance(pattern, program->params[p].external_name);
        if (distance < least) nearest = program->params[p].external_name;
        least = (int32_t)hr_min(least, distance);
    }
    return nearest;
}

static hr_status check_patterns(const char *key, const char *text, const hr_program *program,
                                hr_error *err)
{
    for (word w = { text }; next_word(&w);) {
        bool any = w.ends_group || is_setting(w.text);
        for (int32_t p = 0; p < program->param_count && !any; p++)
            any = matches(w.text, program->params[p].external_name);
        if (!any)
            return hr_fail(err, HR_USAGE,
                           "%s: no parameter of this model is called \"%s\"; the nearest is %s",
                           key, w.text, nearest_name(program, w.text));
    }
    return HR_OK;
}

hr_status hr_rules_check_names(const hr_config *config, const hr_program *program, hr_error *err)
{
    hr_status status = check_patterns("train.freeze", config->train.freeze, program, err);
    if (status == HR_OK)
        status = check_patterns("train.groups", config->train.groups, program, err);
    if (status != HR_OK) return status;
    for (int32_t p = 0; p < program->param_count; p++)
        if (!program->params[p].rule.frozen) return HR_OK;
    return hr_fail(err, HR_USAGE, "train.freeze leaves none of %d parameters to train",
                   program->param_count);
}

/* ---- what trains ---- */

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
    hr_trained trained = { .still = first_trained_layer(program, layers) };
    uint64_t any = 0, all = UINT64_MAX, here = 0;
    int32_t index = 0;
    for (int32_t p = 0; p < program->param_count; p++) {
        const int32_t layer = program->tensors[program->params[p].weight].layer;
        const bool goes_on = p + 1 < program->param_count &&
                             program->tensors[program->params[p + 1].weight].layer == layer;
        if (layer < trained.still) continue; /* or in none */
        if (!program->params[p].rule.frozen) here |= UINT64_C(1) << index;
        index++;
        if (goes_on) continue;
        any |= here;
        all &= here;
        here = 0;
        index = 0;
    }
    trained.layers = any;
    trained.alike = any == all;
    return trained;
}
