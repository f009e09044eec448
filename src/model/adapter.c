/* SPDX-License-Identifier: Apache-2.0 */
/* model/adapter.c - matches the names of modules, and computes scales. */
#include "model/adapter.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/words.h"

static const char all_linear[] = "all-linear";

/* The name of the module of a parameter. */
static void module_of(const char *name, char module[HR_WORD_BYTES])
{
    snprintf(module, HR_WORD_BYTES, "%.*s", hr_module_length(name), name);
}

/* Whether a word names a module by its last parts or by a pattern. */
static bool names(const char *word, const char *module)
{
    const size_t length = strlen(module), part = strlen(word);
    if (fnmatch(word, module, 0) == 0) return true;
    return part < length && module[length - part - 1] == '.' &&
           !strcmp(module + length - part, word);
}

static bool is_target(const char *word, int16_t layer, const char *module)
{
    return strcmp(word, all_linear) ? names(word, module) : layer != HR_NONE;
}

static const char *targets_of(const hr_config *config)
{
    return config->train.adapter.targets[0] ? config->train.adapter.targets : all_linear;
}

hr_adapter_rule hr_adapter_of(const hr_config *config, int16_t layer, const char *name)
{
    char module[HR_WORD_BYTES];
    bool is = false;
    if (config->train.adapter.kind == HR_ADAPTER_NONE) return (hr_adapter_rule){ .rank = 0 };
    module_of(name, module);
    for (hr_words w = { targets_of(config) }; !is && hr_words_next(&w);)
        is = is_target(w.text, layer, module);
    if (!is) return (hr_adapter_rule){ .rank = 0 };
    const double rank = (double)config->train.adapter.rank;
    const double part = config->train.adapter.rslora ? sqrt(rank) : rank;
    return (hr_adapter_rule){ .rank = (int32_t)config->train.adapter.rank,
                              .scale = (float)(config->train.adapter.alpha / part),
                              .dropout = (float)config->train.adapter.dropout };
}

/* ---- checks ---- */

/* Whether a parameter may have an adapter at all. */
static bool is_matrix(const hr_program *program, const hr_param *param)
{
    return param->adapts == HR_NONE && program->tensors[param->weight].layout != HR_ROWS;
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

/* The last part of the module that is most like a word. */
static void nearest(const hr_program *program, const char *word, char found[HR_WORD_BYTES])
{
    size_t best = 0;
    found[0] = 0;
    for (int32_t p = 0; p < program->param_count; p++) {
        char module[HR_WORD_BYTES];
        if (!is_matrix(program, &program->params[p])) continue;
        module_of(program->params[p].external_name, module);
        const char *dot = strrchr(module, '.'), *last = dot ? dot + 1 : module;
        const size_t like = likeness(word, last);
        if (found[0] && like <= best) continue;
        best = like;
        snprintf(found, HR_WORD_BYTES, "%s", last);
    }
}

hr_status hr_adapter_check(const hr_config *config, const hr_program *program, hr_error *err)
{
    if (config->train.adapter.kind == HR_ADAPTER_NONE) return HR_OK;
    if (config->train.freeze[0])
        return hr_fail(err, HR_USAGE,
                       "train.freeze and train.adapter.kind: with adapters all other weights are "
                       "frozen; leave train.freeze out");
    for (hr_words w = { targets_of(config) }; hr_words_next(&w);) {
        char found[HR_WORD_BYTES];
        bool any = false;
        for (int32_t p = 0; p < program->param_count && !any; p++) {
            const hr_param *param = &program->params[p];
            module_of(param->external_name, found);
            any = param->adapter != HR_NONE &&
                  is_target(w.text, program->tensors[param->weight].layer, found);
        }
        if (any) continue;
        nearest(program, w.text, found);
        return hr_fail(err, HR_USAGE,
                       "train.adapter.targets: no module that can have an adapter is named \"%s\"; "
                       "the nearest is %s",
                       w.text, found);
    }
    return HR_OK;
}
