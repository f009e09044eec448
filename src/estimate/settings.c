/* SPDX-License-Identifier: Apache-2.0 */
/* estimate/settings.c - what each framework does by default, and the table of assumptions.
 *
 * Source   documentation of transformers (TrainingArguments), TRL (SFTConfig), axolotl and
 *          DeepSpeed; PyTorch 2.13 (torch.optim, torch.amp). */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/words.h"
#include "config/config.h"
#include "headroom/estimate.h"
#include "model/module_names.h"

enum { VALUES_MOST = 8, FRACTION_DIGITS = 6 };

typedef enum { CHOICE, SWITCH, COUNT, REAL, TARGETS, NPT } kind;

typedef struct {
    hr_estimate_assumption shown;
    kind kind;
    size_t offset;
    const char *values[VALUES_MOST]; /* of a choice, in the order of its enum */
} row;

#define AT(field) offsetof(hr_estimate_settings, field)
#define DTYPES \
    { \
        "fp32", "bf16", "fp16", "int8", "nf4", "none" \
    }

static const row rows[] = {
    { { "device", "cpu, cuda", "where it runs" }, CHOICE, AT(device), { "cpu", "cuda" } },
    { { "weights", "fp32, bf16, fp16", "dtype of the weights, as loaded" },
      CHOICE,
      AT(weights),
      DTYPES },
    { { "autocast", "bf16, fp16, none", "dtype of products under autocast" },
      CHOICE,
      AT(autocast),
      DTYPES },
    { { "base", "nf4, int8, bf16, fp16, fp32, none",
        "with LoRA, dtype of the frozen weights; nf4, int8: of the matrices of layers" },
      CHOICE,
      AT(base),
      DTYPES },
    { { "double-quant", "on, off", "nf4: the scales are stored in 8 bits" },
      SWITCH,
      AT(double_quant),
      { 0 } },
    { { "block", "1 to 65536", "nf4: weights per scale" }, COUNT, AT(base_block), { 0 } },
    { { "checkpointing", "on, off", "each layer keeps its input alone" },
      SWITCH,
      AT(checkpointing),
      { 0 } },
    { { "reentrant", "on, off", "checkpointing computes a layer again to its end" },
      SWITCH,
      AT(reentrant),
      { 0 } },
    { { "optimizer", "adamw, adamw-8bit, paged-adamw-8bit, sgd, momentum, lion, adafactor",
        "states of the optimizer" },
      CHOICE,
      AT(optimizer),
      { "adamw", "adamw-8bit", "paged-adamw-8bit", "sgd", "momentum", "lion", "adafactor" } },
    { { "states", "fp32, bf16, none", "dtype of the states; none: that of each parameter" },
      CHOICE,
      AT(states),
      DTYPES },
    { { "masters", "fp32, bf16", "DeepSpeed: dtype of masters, and of gradients in the update" },
      CHOICE,
      AT(masters),
      DTYPES },
    { { "update", "loop, foreach, fused", "temporaries of the optimizer" },
      CHOICE,
      AT(update),
      { "loop", "foreach", "fused" } },
    { { "attention", "sdpa, eager, broadcast", "what attention keeps" },
      CHOICE,
      AT(attention),
      { "sdpa", "eager", "broadcast" } },
    { { "loss", "whole, loop, chunked, fused", "how logits are made" },
      CHOICE,
      AT(loss),
      { "whole", "loop", "chunked", "fused" } },
    { { "chunk", "tokens", "of the loss in chunks" }, COUNT, AT(loss_chunk), { 0 } },
    { { "upcast", "on, off", "logits are copied to fp32 for the loss" },
      SWITCH,
      AT(loss_upcast),
      { 0 } },
    { { "fp32-loss", "on, off", "log-softmax and its gradient are fp32" },
      SWITCH,
      AT(loss_fp32),
      { 0 } },
    { { "cache", "on, off", "the forward pass fills a cache of keys and values" },
      SWITCH,
      AT(cache),
      { 0 } },
    { { "outputs", "on, off", "the loop holds the logits through the backward pass" },
      SWITCH,
      AT(keeps_outputs),
      { 0 } },
    { { "lora", "RANK:MODULES, or none", "adapters: 16:q_proj,v_proj or 16:all-linear" },
      TARGETS,
      AT(lora_rank),
      { 0 } },
    { { "lora-dtype", "fp32, bf16, fp16", "dtype of adapters" }, CHOICE, AT(lora_dtype), DTYPES },
    { { "lora-dropout", "0 to 1", "of the inputs of adapters" }, REAL, AT(lora_dropout), { 0 } },
    { { "lora-dora", "on, off", "adapters have magnitudes (DoRA)" }, SWITCH, AT(lora_dora), { 0 } },
    { { "zero", "0 to 3", "ZeRO stage" }, COUNT, AT(zero_stage), { 0 } },
    { { "world", "processes", "that share the states" }, COUNT, AT(world), { 0 } },
    { { "offload-optimizer", "on, off", "states and masters are in host memory" },
      SWITCH,
      AT(offload_optimizer),
      { 0 } },
    { { "offload-weights", "on, off", "weights are in host memory" },
      SWITCH,
      AT(offload_weights),
      { 0 } },
    { { "batch", "sequences", "per update and process" }, COUNT, AT(batch), { 0 } },
    { { "accumulation", "micro-batches", "per update" }, COUNT, AT(accumulation), { 0 } },
    { { "seq-len", "tokens", "of a sequence" }, COUNT, AT(seq_len), { 0 } },
    { { "npt", "materialized:RANK[:LAYERS], or none",
        "a change of the MLP's weight for every token, as a tensor" },
      NPT,
      AT(npt_rank),
      { 0 } },
};
enum { ROWS = sizeof rows / sizeof *rows };

static const char *const frameworks[HR_FRAMEWORKS] = { "pytorch", "hf-trainer",   "trl",
                                                       "axolotl", "deepspeed-z2", "deepspeed-z3" };

static const char *const components[HR_ESTIMATE_COMPONENTS] = { "weights",
                                                                "copies of weights",
                                                                "gradients of weights",
                                                                "optimizer states",
                                                                "master weights",
                                                                "activations kept",
                                                                "attention scores",
                                                                "logits",
                                                                "log-softmax",
                                                                "gradients of the loss",
                                                                "weight changes per token",
                                                                "gradients of activations",
                                                                "temporaries",
                                                                "buffers" };

const char *hr_estimate_framework_name(int32_t framework)
{
    const int32_t count = sizeof frameworks / sizeof *frameworks;
    return framework >= 0 && framework < count ? frameworks[framework] : "unknown";
}

const char *hr_estimate_component_name(int32_t component)
{
    const int32_t count = sizeof components / sizeof *components;
    return component >= 0 && component < count ? components[component] : "unknown";
}

hr_status hr_estimate_framework(const char *name, int32_t *framework, hr_error *err)
{
    for (int32_t i = 0; i < HR_FRAMEWORKS; i++)
        if (!strcmp(frameworks[i], name)) {
            *framework = i;
            return HR_OK;
        }
    return hr_fail(err, HR_USAGE,
                   "--as: \"%s\" is not a known framework; known are pytorch, hf-trainer, trl, "
                   "axolotl, deepspeed-z2 and deepspeed-z3",
                   name);
}

static int32_t optimizer_of(const hr_config *config)
{
    switch (config->train.optimizer.kind) {
    case HR_OPTIMIZER_SGD:
        return config->train.optimizer.beta1 > 0 ? HR_ESTIMATE_MOMENTUM : HR_ESTIMATE_SGD;
    case HR_OPTIMIZER_LION: return HR_ESTIMATE_LION;
    case HR_OPTIMIZER_ADAFACTOR: return HR_ESTIMATE_ADAFACTOR;
    case HR_OPTIMIZER_MUON: return HR_ESTIMATE_UNKNOWN_OPTIMIZER;
    default: return HR_ESTIMATE_ADAMW;
    }
}

/* TRL loads fp32 when the file names no dtype; axolotl loads bf16, and DeepSpeed bf16 or fp16, to
 * which it adds fp32 masters. The others keep fp32 weights and compute under autocast. */
static void set_framework(hr_estimate_settings *s, int32_t half)
{
    const bool deepspeed = s->framework == HR_FRAMEWORK_DEEPSPEED_Z2 ||
                           s->framework == HR_FRAMEWORK_DEEPSPEED_Z3;
    if (half != HR_ESTIMATE_NONE &&
        (deepspeed || (s->framework == HR_FRAMEWORK_AXOLOTL && half == HR_ESTIMATE_BF16))) {
        s->weights = half;
        s->autocast = HR_ESTIMATE_NONE;
    }
    if (s->framework == HR_FRAMEWORK_PYTORCH) return;
    s->device = HR_ESTIMATE_CUDA;
    s->update = HR_ESTIMATE_UPDATE_FUSED;
    if (s->framework == HR_FRAMEWORK_TRL) {
        s->checkpointing = true;
        s->loss = HR_ESTIMATE_LOSS_CHUNKED;
    }
    if (s->framework == HR_FRAMEWORK_DEEPSPEED_Z2) s->zero_stage = 2;
    if (s->framework == HR_FRAMEWORK_DEEPSPEED_Z3) s->zero_stage = 3;
}

void hr_estimate_move(hr_estimate_settings *settings, hr_estimate_device device)
{
    const bool cuda = device == HR_ESTIMATE_CUDA;
    settings->device = device;
    if (settings->framework == HR_FRAMEWORK_PYTORCH)
        settings->update = cuda ? HR_ESTIMATE_UPDATE_FOREACH : HR_ESTIMATE_UPDATE_LOOP;
}

/* The adapters of the recipe, on a base in its dtype. Words become a list with commas. */
static void set_adapter(const hr_config *config, hr_estimate_settings *s)
{
    _Static_assert(sizeof s->lora_targets >= HR_TARGETS_BYTES, "words and commas fit");
    int32_t used = 0, saved = 0;
    const char *targets = config->train.adapter.targets;
    const bool alike = !config->train.adapter.layers[0] && !config->train.adapter.groups[0];
    s->lora_rank = config->train.adapter.rank;
    s->lora_dropout = config->train.adapter.dropout;
    s->lora_dora = config->train.adapter.dora;
    s->lora_saved_dtype = HR_ESTIMATE_FP32;
    for (hr_words w = { config->train.adapter.modules_to_save }; hr_words_next(&w);)
        saved += snprintf(s->lora_saved + saved, sizeof s->lora_saved - (size_t)saved, "%s%s",
                          saved ? "," : "", w.text);
    if (s->autocast != HR_ESTIMATE_NONE) s->base = s->autocast;
    else if (s->weights != HR_ESTIMATE_FP32) s->base = s->weights;
    snprintf(s->lora_targets, sizeof s->lora_targets, "%s", alike ? HR_ALL_LINEAR : "recipe");
    for (hr_words w = { targets }; alike && hr_words_next(&w);)
        used += snprintf(s->lora_targets + used, sizeof s->lora_targets - (size_t)used, "%s%s",
                         used ? "," : "", w.text);
}

void hr_estimate_settings_of(const hr_config *config, int32_t framework,
                             hr_estimate_settings *settings)
{
    enum { BLOCK = 64, CHUNK = 256 };
    static const int32_t half[] = { [HR_FORMAT_FP32] = HR_ESTIMATE_NONE,
                                    [HR_FORMAT_BF16] = HR_ESTIMATE_BF16,
                                    [HR_FORMAT_FP16] = HR_ESTIMATE_FP16 };
    const int64_t micro = config->memory.micro_batch;
    hr_estimate_settings s = { .framework = framework,
                               .device = HR_ESTIMATE_CPU,
                               .weights = HR_ESTIMATE_FP32,
                               .autocast = half[config->train.dtype],
                               .base = HR_ESTIMATE_NONE,
                               .base_block = BLOCK,
                               .states = HR_ESTIMATE_NONE,
                               .masters = HR_ESTIMATE_FP32,
                               .optimizer = optimizer_of(config),
                               .loss_upcast = true,
                               .loss_fp32 = true,
                               .loss_chunk = CHUNK,
                               .cache = framework == HR_FRAMEWORK_PYTORCH,
                               .lora_dtype = HR_ESTIMATE_FP32,
                               .world = 1,
                               .batch = config->train.batch,
                               .accumulation = 1,
                               .seq_len = config->train.seq_len };
    s.checkpointing = config->memory.recompute == HR_RECOMPUTE_LAYERS;
    if (micro > 0 && config->train.batch % micro == 0) s.accumulation = config->train.batch / micro;
    if (config->memory.loss_chunk > 0 && config->memory.loss_chunk < s.batch * s.seq_len) {
        s.loss = HR_ESTIMATE_LOSS_CHUNKED;
        s.loss_chunk = config->memory.loss_chunk;
    }
    set_framework(&s, half[config->train.dtype]);
    if (config->train.adapter.kind != HR_ADAPTER_NONE) set_adapter(config, &s);
    *settings = s;
}

const hr_estimate_assumption *hr_estimate_assumption_at(int32_t index)
{
    return index >= 0 && index < ROWS ? &rows[index].shown : NULL;
}

static void *field_of(hr_estimate_settings *settings, const row *of)
{
    return (char *)settings + of->offset;
}

const char *hr_estimate_value(const hr_estimate_settings *settings, int32_t index,
                              char text[HR_ESTIMATE_VALUE_BYTES])
{
    const row *of = &rows[index];
    hr_estimate_settings copy = *settings;
    void *field = field_of(&copy, of);
    const int64_t count = of->kind == NPT || of->kind == TARGETS || of->kind == COUNT
                              ? (of->offset == AT(zero_stage) ? *(int32_t *)field
                                                              : *(int64_t *)field)
                              : 0;
    const int size = HR_ESTIMATE_VALUE_BYTES;
    switch (of->kind) {
    case CHOICE: snprintf(text, size, "%s", of->values[*(int32_t *)field]); break;
    case SWITCH: snprintf(text, size, "%s", *(bool *)field ? "on" : "off"); break;
    case REAL: snprintf(text, size, "%.*g", FRACTION_DIGITS, *(double *)field); break;
    case COUNT: snprintf(text, size, "%lld", (long long)count); break;
    case TARGETS:
        if (count) snprintf(text, size, "%lld:%s", (long long)count, copy.lora_targets);
        else snprintf(text, size, "none");
        break;
    default:
        if (count)
            snprintf(text, size, "materialized:%lld:%lld", (long long)count,
                     (long long)copy.npt_layers);
        else snprintf(text, size, "none");
    }
    return text;
}

/* ---- changing one */

static bool read_count(const char *text, int64_t low, int64_t high, int64_t *count)
{
    char *end;
    const long long value = strtoll(text, &end, 10);
    if (end == text || *end || value < low || value > high) return false;
    *count = value;
    return true;
}

static bool set_targets(hr_estimate_settings *settings, const char *value)
{
    enum { RANK_MOST = 65536 };
    char rank[24];
    const char *colon = strchr(value, ':');
    if (!strcmp(value, "none")) {
        settings->lora_rank = 0;
        return true;
    }
    if (!colon || colon - value >= (int)sizeof rank || !colon[1]) return false;
    if (strlen(colon + 1) >= sizeof settings->lora_targets) return false;
    snprintf(rank, sizeof rank, "%.*s", (int)(colon - value), value);
    if (!read_count(rank, 1, RANK_MOST, &settings->lora_rank)) return false;
    snprintf(settings->lora_targets, sizeof settings->lora_targets, "%s", colon + 1);
    return true;
}

static bool set_npt(hr_estimate_settings *settings, const char *value)
{
    enum { RANK_MOST = 65536, LAYERS_MOST = 4096 };
    char rank[24];
    settings->npt_layers = 0;
    if (!strcmp(value, "none")) {
        settings->npt_rank = 0;
        return true;
    }
    if (strncmp(value, "materialized:", strlen("materialized:"))) return false;
    value += strlen("materialized:");
    const char *colon = strchr(value, ':');
    if (!colon) return read_count(value, 1, RANK_MOST, &settings->npt_rank);
    if (colon - value >= (int)sizeof rank) return false;
    snprintf(rank, sizeof rank, "%.*s", (int)(colon - value), value);
    return read_count(rank, 1, RANK_MOST, &settings->npt_rank) &&
           read_count(colon + 1, 0, LAYERS_MOST, &settings->npt_layers);
}

static bool set_choice(const row *of, const char *value, int32_t *field)
{
    for (int32_t i = 0; i < VALUES_MOST && of->values[i]; i++) {
        const size_t length = strlen(of->values[i]);
        const char *found = strstr(of->shown.takes, value);
        if (strcmp(of->values[i], value) || !length || !found) continue;
        *field = i;
        return true;
    }
    return false;
}

static void limits_of(const row *of, int64_t *low, int64_t *most)
{
    enum { COUNT_MOST = 1 << 30, STAGE_MOST = 3, BLOCK_MOST = 65536 };
    const bool stage = of->offset == AT(zero_stage);
    *low = stage ? 0 : 1;
    *most = stage ? STAGE_MOST : of->offset == AT(base_block) ? BLOCK_MOST : COUNT_MOST;
}

static bool set_count(const row *of, const char *value, hr_estimate_settings *settings)
{
    int64_t count, low, most;
    const bool stage = of->offset == AT(zero_stage);
    limits_of(of, &low, &most);
    if (!read_count(value, low, most, &count)) return false;
    if (stage) settings->zero_stage = (int32_t)count;
    else *(int64_t *)field_of(settings, of) = count;
    return true;
}

static bool set_switch(const char *value, bool *field)
{
    if (strcmp(value, "on") && strcmp(value, "off")) return false;
    *field = !strcmp(value, "on");
    return true;
}

static bool set_real(const char *value, double *field)
{
    char *end;
    const double number = strtod(value, &end);
    if (end == value || *end || !(number >= 0 && number < 1)) return false;
    *field = number;
    return true;
}

static bool set(const row *of, const char *value, hr_estimate_settings *settings)
{
    switch (of->kind) {
    case CHOICE: return set_choice(of, value, field_of(settings, of));
    case SWITCH: return set_switch(value, field_of(settings, of));
    case REAL: return set_real(value, field_of(settings, of));
    case COUNT: return set_count(of, value, settings);
    case TARGETS: return set_targets(settings, value);
    default: return set_npt(settings, value);
    }
}

static const char *nearest(const char *name)
{
    const char *best = NULL;
    int32_t cost = INT32_MAX;
    for (int32_t i = 0; i < ROWS; i++) {
        const int32_t this = hr_word_cost(name, rows[i].shown.name);
        if (this < cost) cost = this, best = rows[i].shown.name;
    }
    return best;
}

static hr_status fail_value(const row *of, const char *value, hr_error *err)
{
    const char *name = of->shown.name, *takes = of->shown.takes;
    int64_t low, most;
    if (of->kind == CHOICE && !strcmp(name, "weights") &&
        (!strcmp(value, "int8") || !strcmp(value, "nf4")))
        return hr_fail(err, HR_USAGE,
                       "--assume weights: trained weights are %s; %s is for frozen ones: base=%s "
                       "with lora",
                       takes, value, value);
    if (of->kind == COUNT && !strchr("0123456789", *takes)) {
        limits_of(of, &low, &most);
        return hr_fail(err, HR_USAGE,
                       "--assume %s takes a number of %s from %lld to %lld; got \"%.40s\"", name,
                       takes, (long long)low, (long long)most, value);
    }
    const char *example = of->kind == TARGETS ? ", such as 16:q_proj,v_proj"
                          : of->kind == NPT   ? ", such as materialized:16"
                                              : "";
    const bool several = of->kind == CHOICE || of->kind == SWITCH;
    return hr_fail(err, HR_USAGE, "--assume %s takes %s%s%s; got \"%.40s\"", name,
                   several ? "one of " : "", takes, example, value);
}

hr_status hr_estimate_assume(hr_estimate_settings *settings, const char *word, hr_error *err)
{
    char name[64];
    const char *equals = strchr(word, '=');
    if (!equals || equals == word || equals - word >= (int)sizeof name)
        return hr_fail(err, HR_USAGE,
                       "--assume takes NAME=VALUE, such as checkpointing=on; got \"%.40s\"", word);
    snprintf(name, sizeof name, "%.*s", (int)(equals - word), word);
    for (int32_t i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].shown.name, name)) continue;
        hr_estimate_settings changed = *settings;
        if (!set(&rows[i], equals + 1, &changed)) return fail_value(&rows[i], equals + 1, err);
        if (rows[i].offset == AT(device)) hr_estimate_move(&changed, changed.device);
        *settings = changed;
        return HR_OK;
    }
    const char *like = nearest(name);
    if (like)
        return hr_fail(err, HR_USAGE, "--assume: \"%s\" is not an assumption; the nearest is %s",
                       name, like);
    return hr_fail(err, HR_USAGE,
                   "--assume: \"%s\" is not an assumption; headroom plan --as NAME lists all",
                   name);
}
