/* SPDX-License-Identifier: Apache-2.0 */
/* audit/training_adapter.c - which weights a training file trains: the model builders of torchtune,
 * adapters, and frozen layers. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "audit/training.h"
#include "base/checked.h"
#include "base/words.h"
#include "model/family.h"

static const struct {
    const char *builders, *model;
} models[] = {
    { "llama2_7b", "meta-llama/Llama-2-7b-hf" },
    { "llama2_13b", "meta-llama/Llama-2-13b-hf" },
    { "llama2_70b", "meta-llama/Llama-2-70b-hf" },
    { "code_llama2_7b", "codellama/CodeLlama-7b-hf" },
    { "llama3_8b", "meta-llama/Meta-Llama-3-8B" },
    { "llama3_70b", "meta-llama/Meta-Llama-3-70B" },
    { "llama3_1_8b", "meta-llama/Llama-3.1-8B" },
    { "llama3_1_70b", "meta-llama/Llama-3.1-70B" },
    { "llama3_1_405b", "meta-llama/Llama-3.1-405B" },
    { "llama3_2_1b", "meta-llama/Llama-3.2-1B" },
    { "llama3_2_3b", "meta-llama/Llama-3.2-3B" },
    { "llama3_3_70b", "meta-llama/Llama-3.3-70B" },
    { "mistral_7b", "mistralai/Mistral-7B-v0.1" },
    { "qwen2_0_5b", "Qwen/Qwen2-0.5B" },
    { "qwen2_1_5b", "Qwen/Qwen2-1.5B" },
    { "qwen2_7b", "Qwen/Qwen2-7B" },
    { "qwen2_5_0_5b", "Qwen/Qwen2.5-0.5B" },
    { "qwen2_5_1_5b_base qwen2_5_1_5b_instruct", "Qwen/Qwen2.5-1.5B" },
    { "qwen2_5_3b", "Qwen/Qwen2.5-3B" },
    { "qwen2_5_7b_base qwen2_5_7b_instruct", "Qwen/Qwen2.5-7B" },
    { "qwen2_5_14b_base qwen2_5_14b_instruct", "Qwen/Qwen2.5-14B" },
    { "qwen2_5_32b_base qwen2_5_32b_instruct", "Qwen/Qwen2.5-32B" },
    { "qwen3_0_6b_base qwen3_0_6b_instruct", "Qwen/Qwen3-0.6B" },
    { "qwen3_1_7b_base qwen3_1_7b_instruct", "Qwen/Qwen3-1.7B" },
    { "qwen3_4b_base qwen3_4b_instruct", "Qwen/Qwen3-4B" },
    { "qwen3_8b_base qwen3_8b_instruct", "Qwen/Qwen3-8B" },
    { "qwen3_14b_base qwen3_14b_instruct", "Qwen/Qwen3-14B" },
    { "qwen3_32b", "Qwen/Qwen3-32B" },
    { "qwen2_5_72b_base qwen2_5_72b_instruct", "Qwen/Qwen2.5-72B" },
};
enum { MODELS = sizeof models / sizeof *models };

/* "torchtune.models.llama3_1.qlora_llama3_1_8b" */
static hr_status take_component(hr_reading *r, const hr_entry *entry)
{
    const char *last = strrchr(entry->value, '.');
    const char *name = last ? last + 1 : entry->value;
    const bool dora = !strncmp(name, "dora_", 5) || !strncmp(name, "qdora_", 6);
    const bool quantized = !strncmp(name, "qlora_", 6) || !strncmp(name, "qdora_", 6);
    r->peft = quantized || dora || !strncmp(name, "lora_", 5);
    if (dora)
        hr_audit_doubt(r->report, entry->line,
                       "%.80s: the magnitudes of DoRA are not in the estimate", entry->value);
    r->four_bit = quantized;
    if (r->peft) name = strchr(name, '_') + 1;
    const char *model = name;
    for (int32_t i = 0; i < MODELS; i++)
        for (hr_words w = { models[i].builders }; hr_words_next(&w);)
            if (!strcmp(w.text, name)) model = models[i].model;
    snprintf(r->model, sizeof r->model, "%s", model);
    return HR_OK;
}

static bool has_word(const char *words, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = words; *at;) {
        const size_t part = strcspn(at, ",");
        if (part == length && !strncmp(at, word, length)) return true;
        at += part + (at[part] == ',');
    }
    return false;
}

/* Adds a word once. */
static void add_word(hr_reading *r, const hr_entry *entry, char to[HR_AUDIT_TARGETS_BYTES],
                     const char *word)
{
    const size_t used = strlen(to);
    if (has_word(to, word)) return;
    if (used + strlen(word) + 1 < HR_AUDIT_TARGETS_BYTES)
        snprintf(to + used, HR_AUDIT_TARGETS_BYTES - used, "%s%s", used ? "," : "", word);
    else
        hr_audit_doubt(r->report, entry->line, "too many names of modules: %.80s is not read",
                       word);
}

static void add_target(hr_reading *r, const hr_entry *entry, const char *name)
{
    hr_audit_training *t = &r->report->training;
    const char *last = strrchr(name, '.');
    if (last) name = last + 1;
    if (!strcmp(name, "all") || !strcmp(name, "all-linear") || !strcmp(name, "all_linear")) {
        r->linear = true;
        return;
    }
    /* torchtune's name of o_proj */
    if (!strcmp(name, "output_proj")) name = "o_proj";
    add_word(r, entry, t->lora_targets, name);
}

/* "q_proj,v_proj" or one of a list. */
static void take_targets(hr_reading *r, const hr_entry *entry)
{
    char name[64];
    const char *at = entry->value;
    while (*at) {
        const size_t length = strcspn(at, ", ");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (*name && strcmp(name, "[]") != 0) add_target(r, entry, name);
        at += length;
        at += strspn(at, ", ");
    }
}

/* Adds the words of "a, b" or one of a list. */
static void add_words(hr_reading *r, const hr_entry *entry, char to[HR_AUDIT_TARGETS_BYTES])
{
    for (const char *at = entry->value; *at;) {
        const size_t length = strcspn(at, ", ");
        char word[HR_AUDIT_TARGETS_BYTES];
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        if (length && strcmp(at, "[]") != 0) add_word(r, entry, to, word);
        at += length;
        at += strspn(at, ", ");
    }
}

static hr_status take_freeze_layers(hr_reading *r, const hr_entry *entry)
{
    enum { LAYERS_MOST = 4096 };
    char *end;
    const long layers = strtol(entry->value, &end, 10);
    if (end == entry->value || *end || !layers || labs(layers) > LAYERS_MOST)
        return hr_reading_fail(r, entry, "a number of layers, negative for the first ones");
    r->freeze_layers = layers;
    r->freeze_line = entry->line;
    return HR_OK;
}

static hr_status take_adapter(hr_reading *r, const hr_entry *entry)
{
    const char *value = entry->value;
    if (!strcasecmp(value, "qlora")) r->peft = r->four_bit = true;
    else if (!strcasecmp(value, "lora") || !strcasecmp(value, "dora")) r->peft = true;
    else if (!strcasecmp(value, "full")) r->full = true;
    else if (!strcasecmp(value, "freeze") && r->report->kind == HR_AUDIT_LLAMA_FACTORY)
        r->freeze = true;
    else
        return hr_reading_fail(r, entry,
                               r->report->kind == HR_AUDIT_LLAMA_FACTORY
                                   ? "full, freeze or lora: nothing else can be estimated"
                                   : "full, lora or qlora: nothing else can be estimated");
    return HR_OK;
}

hr_status hr_adapter_take(hr_reading *r, const hr_entry *entry, hr_meaning meaning)
{
    switch (meaning) {
    case HR_MEANS_COMPONENT: return take_component(r, entry);
    case HR_MEANS_ADAPTER: return take_adapter(r, entry);
    case HR_MEANS_SAVED: add_words(r, entry, r->report->training.lora_saved); break;
    case HR_MEANS_FREEZE_LAYERS: return take_freeze_layers(r, entry);
    case HR_MEANS_FREEZE_MODULES: add_words(r, entry, r->freeze_modules); break;
    case HR_MEANS_FREEZE_EXTRA: add_words(r, entry, r->freeze_extra); break;
    default: take_targets(r, entry);
    }
    return HR_OK;
}

/* ---- freezing */

/* Adds "*.layers.1[2-9].*" for layers from `first` to `end`: ten at a time. */
static void add_layers(char *to, size_t room, int64_t first, int64_t end)
{
    enum { TEN = 10 };
    for (int64_t l = first; l < end;) {
        const int64_t last = hr_min(l / TEN * TEN + TEN, end) - 1;
        char tens[24] = "";
        if (l >= TEN) snprintf(tens, sizeof tens, "%" PRId64, l / TEN);
        const size_t used = strlen(to);
        snprintf(to + used, room - used, "%s*.layers.%s[%d-%d].*", used ? " " : "", tens,
                 (int)(l % TEN), (int)(last % TEN));
        l = last + 1;
    }
}

/* The patterns of train.freeze for finetuning_type: freeze. */
static hr_status set_freeze(hr_reading *r)
{
    static const char *const modules[] = { "self_attn", "mlp", "input_layernorm",
                                           "post_attention_layernorm" };
    static const struct {
        const char *name, *pattern;
    } ends[] = { { "embed_tokens", "*embed_tokens*" },
                 { "norm", "model.norm*" },
                 { "lm_head", "lm_head*" } };
    enum { LAYERS_DEFAULT = 2 };
    hr_audit_training *t = &r->report->training;
    hr_config *config = r->report->config;
    const int32_t family = config->model.family;
    const int64_t layers = config->model.n_layers;
    const int64_t given = r->freeze_line ? r->freeze_layers : LAYERS_DEFAULT;
    const int64_t trained = hr_min(given < 0 ? -given : given, layers);
    char *to = config->train.freeze;
    const size_t room = sizeof config->train.freeze;
    if (family != HR_FAMILY_LLAMA && family != HR_FAMILY_MISTRAL && family != HR_FAMILY_QWEN2 &&
        family != HR_FAMILY_QWEN3)
        return hr_fail(r->err, HR_USAGE,
                       "%s: finetuning_type: freeze is estimated for models such as Llama, Mistral "
                       "and Qwen only",
                       r->path);
    if (given < 0) add_layers(to, room, trained, layers);
    else add_layers(to, room, 0, layers - trained);
    const bool some = *r->freeze_modules && !has_word(r->freeze_modules, "all");
    for (size_t i = 0; some && i < sizeof modules / sizeof *modules; i++)
        if (!has_word(r->freeze_modules, modules[i]))
            snprintf(to + strlen(to), room - strlen(to), "%s*.%s.*", *to ? " " : "", modules[i]);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (!has_word(r->freeze_extra, ends[i].name) &&
            !(hr_family_ties(config) && !strcmp(ends[i].name, "lm_head")))
            snprintf(to + strlen(to), room - strlen(to), "%s%s", *to ? " " : "", ends[i].pattern);
    if (strlen(to) + 1 >= room)
        return hr_fail(r->err, HR_USAGE, "%s: freezing %lld layers takes too many patterns",
                       r->path, (long long)layers);
    t->frozen = t->weights;
    if (!r->pure) t->weights = HR_AUDIT_FP32;
    hr_audit_find(r->report, r->freeze_line,
                  "the %s %lld of %lld layers are trained, in %s; the rest is frozen, in %s",
                  given < 0 ? "first" : "last", (long long)trained, (long long)layers,
                  hr_audit_dtype_name(t->weights), hr_audit_dtype_name(t->frozen));
    return HR_OK;
}

/* ---- adapters */

/* Bytes of an fp32 parameter with its gradient and its states in the optimizer. */
static int trained_bytes(hr_audit_optimizer optimizer)
{
    static const int bytes[] = {
        [HR_AUDIT_ADAMW] = 16, [HR_AUDIT_ADAMW_8BIT] = 10, [HR_AUDIT_PAGED_ADAMW_8BIT] = 10,
        [HR_AUDIT_SGD] = 8,    [HR_AUDIT_LION] = 12,       [HR_AUDIT_ADAFACTOR] = 8
    };
    return bytes[optimizer];
}

/* The modules that PEFT adapts when no file names them. */
static const char *default_targets(const hr_config *config)
{
    static const char *const names[] = { "q_proj,v_proj", "c_attn", "query_key_value" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (hr_estimate_adapter_parameters(config, 1, names[i])) return names[i];
    return names[0];
}

hr_audit_dtype hr_adapter_dtype(hr_audit_kind kind, const hr_audit_training *t)
{
    const bool quantized = t->base == HR_AUDIT_NF4 || t->base == HR_AUDIT_INT8;
    if (kind == HR_AUDIT_TORCHTUNE) return t->weights;
    return kind == HR_AUDIT_TRL && (quantized || t->zero_stage == 3) ? HR_AUDIT_BF16
                                                                     : HR_AUDIT_FP32;
}

hr_audit_dtype hr_adapter_half(const hr_audit_training *t)
{
    const bool fp16 = t->lacks_bf16 || t->autocast == HR_AUDIT_FP16 || t->weights == HR_AUDIT_FP16;
    return fp16 ? HR_AUDIT_FP16 : HR_AUDIT_BF16;
}

/* The dtype of the adapters, and what is trained beside them. */
static void find_adapter(hr_reading *r)
{
    const hr_audit_training *t = &r->report->training;
    const hr_audit_kind kind = r->report->kind;
    char text[HR_AUDIT_VALUE_BYTES];
    char count[HR_COUNT_BYTES];
    if (t->adapters == HR_AUDIT_FP32)
        hr_audit_find(
            r->report, 0,
            "%s keeps adapters in fp32, whatever dtype the base has: %s parameters x %d "
            "bytes with their gradient and states = %s",
            kind == HR_AUDIT_MLX ? "mlx-lm" : "PEFT", hr_count_print(t->adapter_parameters, count),
            trained_bytes(t->optimizer),
            hr_audit_size((double)t->adapter_parameters * trained_bytes(t->optimizer), text));
    if (kind == HR_AUDIT_TRL && t->adapters == HR_AUDIT_BF16)
        hr_audit_find(r->report, 0,
                      "TRL casts adapters to bf16 %s: %s parameters, with no fp32 copy",
                      t->base != HR_AUDIT_UNSET ? "over quantized weights" : "for ZeRO stage 3",
                      hr_count_print(t->adapter_parameters, count));
    if (*t->lora_saved)
        hr_audit_find(
            r->report, 0,
            "%.100s: trained as a whole beside the frozen original, which stays in memory",
            t->lora_saved);
}

hr_status hr_adapter_set(hr_reading *r)
{
    hr_audit_training *t = &r->report->training;
    const hr_audit_kind kind = r->report->kind;
    const bool factory = kind == HR_AUDIT_LLAMA_FACTORY, mlx = kind == HR_AUDIT_MLX;
    /* Published weights that are quantized already. */
    r->four_bit |= hr_audit_contains(r->model, "-4bit");
    r->eight_bit |= hr_audit_contains(r->model, "-8bit");
    bool on = r->peft || ((factory || mlx) && !r->full && !r->freeze);
    if (!on && (r->four_bit || r->eight_bit)) {
        hr_audit_find(r->report, 0,
                      "weights in %d bits cannot be trained, and the file asks for no adapter: the "
                      "trainer refuses it, or trains nothing but norms",
                      r->four_bit ? 4 : 8);
        on = t->lora_rank > 0;
    }
    t->base = r->four_bit ? HR_AUDIT_NF4 : r->eight_bit ? HR_AUDIT_INT8 : HR_AUDIT_UNSET;
    if (!on) {
        t->lora_rank = 0;
        return r->freeze ? set_freeze(r) : HR_OK;
    }
    if (!t->lora_rank) t->lora_rank = 8;
    if (r->linear) snprintf(t->lora_targets, sizeof t->lora_targets, "all-linear");
    if (r->mlp)
        snprintf(t->lora_targets + strlen(t->lora_targets),
                 sizeof t->lora_targets - strlen(t->lora_targets), "%sgate_proj,up_proj,down_proj",
                 *t->lora_targets ? "," : "");
    if (!*t->lora_targets)
        snprintf(t->lora_targets, sizeof t->lora_targets, "%s",
                 factory || mlx ? "all-linear" : default_targets(r->report->config));
    if (r->scale_line)
        hr_audit_find(
            r->report, r->scale_line,
            "scale: %g multiplies the adapter itself: it is alpha / rank, and corresponds "
            "to lora_alpha %g at rank %lld",
            r->scale, r->scale * (double)t->lora_rank, (long long)t->lora_rank);
    if (r->scale_line) t->lora_alpha = r->scale * (double)t->lora_rank;
    t->saved = factory && !r->pure ? HR_AUDIT_FP32 : t->weights;
    t->adapters = hr_adapter_dtype(kind, t);
    t->adapter_parameters = hr_estimate_adapter_parameters(r->report->config, t->lora_rank,
                                                           t->lora_targets);
    if (!t->adapter_parameters)
        return hr_fail(r->err, HR_USAGE, "%s: no module of the model is named \"%.80s\"", r->path,
                       t->lora_targets);
    enum { MLX_LAYERS = 16 };
    const int64_t layers = r->report->config->model.n_layers;
    if (mlx && !r->layers_line) r->layers = MLX_LAYERS;
    if (r->layers && r->layers < layers) {
        t->adapter_parameters = t->adapter_parameters / layers * r->layers;
        hr_audit_find(r->report, r->layers_line,
                      "adapters are in the last %lld of %lld layers%s; the estimate has them in "
                      "all, and keeps the activations of all",
                      (long long)r->layers, (long long)layers,
                      r->layers_line ? "" : ", the default of mlx-lm");
    }
    find_adapter(r);
    return HR_OK;
}
