/* SPDX-License-Identifier: Apache-2.0 */
/* audit/patches.c - the estimate for a training file, and changes in its own keys that take less.
 *
 * A change is applied to a copy of the settings, and the estimate is made again. Changes come in
 * the order of what they cost: first those that compute the same, then those that compute it twice,
 * then those that train something else. */
#include <stdio.h>
#include <string.h>

#include "audit/patches.h"

#include "config/config.h"

static const char *const prices[HR_CHANGES] = {
    [HR_CHANGE_FORMAT] = "a format that the device has and the trainer takes",
    [HR_CHANGE_FUSED] = "the same results; one kernel updates the weights",
    [HR_CHANGE_LOSS] = "the same results; the logits are computed in chunks",
    [HR_CHANGE_MICRO] = "the same batch in more passes",
    [HR_CHANGE_CHECKPOINTING] =
        "the same results; each layer is computed twice, about a third more time",
    [HR_CHANGE_OFFLOAD] = "states in host memory; time for their transfer",
    [HR_CHANGE_OFFLOAD_WEIGHTS] = "weights and states in host memory; time for their transfer",
    [HR_CHANGE_EIGHT_BIT] = "moments in 8 bits instead of 32",
    [HR_CHANGE_BF16] = "weights and moments in bf16: small updates are lost",
    [HR_CHANGE_LORA] = "trains adapters of rank 16, not the weights",
    [HR_CHANGE_QLORA] = "trains adapters over weights in 4 bits",
    [HR_CHANGE_HALF_LENGTH] = "half the sequence length",
    [HR_CHANGE_QUARTER_LENGTH] = "a quarter of the sequence length",
};

_Static_assert((int)HR_CHANGES <= (int)HR_AUDIT_PATCHES_MOST, "an answer has room for all");

/* ---- settings of the estimate */

static int32_t dtype_of(hr_audit_dtype dtype)
{
    static const int32_t dtypes[] = { HR_ESTIMATE_FP32, HR_ESTIMATE_BF16, HR_ESTIMATE_FP16,
                                      HR_ESTIMATE_I8,   HR_ESTIMATE_NF4,  HR_ESTIMATE_NONE };
    return dtypes[dtype];
}

static int32_t optimizer_of(hr_audit_optimizer optimizer)
{
    static const int32_t optimizers[] = {
        HR_ESTIMATE_ADAMW, HR_ESTIMATE_ADAMW_8BIT, HR_ESTIMATE_PAGED_ADAMW_8BIT,
        HR_ESTIMATE_SGD,   HR_ESTIMATE_LION,       HR_ESTIMATE_ADAFACTOR
    };
    return optimizers[optimizer];
}

static int32_t loss_of(hr_audit_loss loss)
{
    static const int32_t losses[] = { HR_ESTIMATE_LOSS_WHOLE, HR_ESTIMATE_LOSS_LOOP,
                                      HR_ESTIMATE_LOSS_CHUNKED, HR_ESTIMATE_LOSS_FUSED };
    return losses[loss];
}

static hr_framework framework_of(const hr_audit_report *report)
{
    const int64_t stage = report->training.zero_stage;
    /* Its recipes shard what they have, and keep no masters. */
    if (report->kind == HR_AUDIT_TORCHTUNE) return HR_FRAMEWORK_PYTORCH;
    if (stage == 3) return HR_FRAMEWORK_DEEPSPEED_Z3;
    if (stage > 0) return HR_FRAMEWORK_DEEPSPEED_Z2;
    switch (report->kind) {
    case HR_AUDIT_HF: return HR_FRAMEWORK_HF_TRAINER;
    case HR_AUDIT_TRL:
    case HR_AUDIT_LLAMA_FACTORY: return HR_FRAMEWORK_TRL;
    case HR_AUDIT_AXOLOTL: return HR_FRAMEWORK_AXOLOTL;
    default: return HR_FRAMEWORK_PYTORCH;
    }
}

static hr_estimate_settings settings_of(const hr_audit_report *report, const hr_audit_training *t)
{
    hr_estimate_settings s;
    hr_estimate_settings_of(report->config, framework_of(report), &s);
    hr_estimate_move(&s, HR_ESTIMATE_CUDA);
    s.weights = dtype_of(t->weights);
    s.autocast = dtype_of(t->autocast);
    s.base = t->lora_rank ? dtype_of(t->base == HR_AUDIT_UNSET ? t->weights : t->base)
                          : dtype_of(t->frozen);
    s.double_quant = t->double_quant;
    s.checkpointing = t->checkpointing;
    s.optimizer = optimizer_of(t->optimizer);
    s.update = t->fused_update ? HR_ESTIMATE_UPDATE_FUSED : HR_ESTIMATE_UPDATE_FOREACH;
    s.loss = loss_of(t->loss);
    s.attention = t->eager ? HR_ESTIMATE_EAGER : HR_ESTIMATE_SDPA;
    s.lora_rank = t->lora_rank;
    s.lora_dtype = dtype_of(t->adapters);
    s.lora_dropout = t->lora_dropout;
    snprintf(s.lora_targets, sizeof s.lora_targets, "%s", t->lora_targets);
    snprintf(s.lora_saved, sizeof s.lora_saved, "%s", t->lora_saved);
    s.lora_saved_dtype = dtype_of(t->saved);
    s.zero_stage = (int32_t)t->zero_stage;
    s.world = t->world;
    /* Paged states are pages of the host, which kernels reach. */
    s.offload_optimizer = t->offload_optimizer || t->optimizer == HR_AUDIT_PAGED_ADAMW_8BIT;
    s.offload_weights = t->offload_weights;
    s.in_backward = t->in_backward;
    if (t->half_masters) s.masters = HR_ESTIMATE_BF16;
    if (t->half_states) s.states = HR_ESTIMATE_BF16;
    s.accumulation = t->accumulation;
    s.batch = t->micro_batch * t->accumulation * hr_audit_rows(t);
    s.seq_len = t->seq_len;
    return s;
}

static hr_status estimate(const hr_audit_report *report, const hr_audit_training *t, void *memory,
                          int64_t bytes, hr_estimate_answer *answer, hr_error *err)
{
    hr_config config = *report->config;
    const hr_estimate_settings settings = settings_of(report, t);
    config.train.seq_len = t->seq_len;
    config.train.batch = settings.batch;
    if (config.model.positions && config.model.positions < t->seq_len)
        config.model.positions = t->seq_len;
    hr_status status = hr_estimate_make(&config, &settings, memory, bytes, answer, err);
    if (status != HR_OK || !t->preference || !t->reference || t->lora_rank) return status;
    /* The reference model of preference training: its weights, which nothing changes. */
    const int64_t width = t->weights == HR_AUDIT_FP32 ? 4 : 2;
    const int64_t reference = t->parameters * width / (t->zero_stage == 3 ? t->world : 1);
    answer->components[HR_ESTIMATE_WEIGHTS] += reference;
    answer->tensor_bytes += reference;
    answer->low_bytes += reference;
    answer->high_bytes += reference;
    return HR_OK;
}

/* ---- changes */

static bool is_full(const hr_audit_training *t)
{
    return t->lora_rank == 0;
}

/* LLaMA-Factory with pure_bf16. */
static bool is_pure(const hr_audit_training *t)
{
    return t->weights == HR_AUDIT_BF16 && t->autocast == HR_AUDIT_UNSET && !t->deepspeed;
}

/* The lines of axolotl for an adapter load the base in 16 bits, and compute in them. */
static void load_half(hr_audit_kind kind, hr_audit_training *t)
{
    if (kind != HR_AUDIT_AXOLOTL || t->weights != HR_AUDIT_FP32) return;
    t->weights = hr_adapter_half(t);
    t->autocast = t->deepspeed ? HR_AUDIT_UNSET : t->weights;
}

static void add_adapter(hr_audit_kind kind, hr_audit_training *t)
{
    const bool factory = kind == HR_AUDIT_LLAMA_FACTORY, pure = is_pure(t);
    t->lora_rank = 16;
    if (kind != HR_AUDIT_MLX || !*t->lora_targets)
        snprintf(t->lora_targets, sizeof t->lora_targets, "all-linear");
    if (kind == HR_AUDIT_MLX) t->lora_dropout = 0;
    if (kind == HR_AUDIT_TRL && (!t->deepspeed || t->weights == HR_AUDIT_FP32))
        t->weights = hr_adapter_half(t);
    if (factory && t->autocast != HR_AUDIT_UNSET) t->weights = t->autocast;
    else if (factory && t->weights == HR_AUDIT_FP32) t->weights = t->published;
    t->frozen = HR_AUDIT_UNSET;
    load_half(kind, t);
    t->saved = factory && !pure ? HR_AUDIT_FP32 : t->weights;
    t->adapters = hr_adapter_dtype(kind, t);
}

static void set_bf16(hr_audit_kind kind, hr_audit_training *t)
{
    t->weights = HR_AUDIT_BF16;
    if (kind == HR_AUDIT_LLAMA_FACTORY) t->autocast = HR_AUDIT_UNSET;
    if (kind == HR_AUDIT_AXOLOTL) t->autocast = HR_AUDIT_BF16;
    if (t->frozen != HR_AUDIT_UNSET) t->frozen = HR_AUDIT_BF16;
}

/* Without bf16: fp16 with a scaled loss, over fp32 weights where they are trained. axolotl loads
 * what fp16: true trains in fp16, and torchtune has no scaler: both compute in fp32. */
static void set_format(hr_audit_kind kind, hr_audit_training *t)
{
    const bool full = is_full(t);
    const bool wide = kind == HR_AUDIT_TORCHTUNE || (kind == HR_AUDIT_AXOLOTL && full);
    if (t->deepspeed) {
        t->weights = HR_AUDIT_FP16;
        t->autocast = HR_AUDIT_UNSET;
    } else {
        t->autocast = wide ? HR_AUDIT_UNSET : HR_AUDIT_FP16;
        if (full || wide) t->weights = HR_AUDIT_FP32;
        else if (t->weights != HR_AUDIT_FP32) t->weights = HR_AUDIT_FP16;
    }
    if (t->frozen == HR_AUDIT_BF16) t->frozen = HR_AUDIT_FP16;
    t->saved = kind == HR_AUDIT_LLAMA_FACTORY ? HR_AUDIT_FP32 : t->weights;
    if (!full) t->adapters = hr_adapter_dtype(kind, t);
}

/* MLX computes bf16 on every device that it has. */
static hr_audit_refusal refusal_of(hr_audit_kind kind, const hr_audit_training *t)
{
    const bool bf16 = t->weights == HR_AUDIT_BF16 || t->autocast == HR_AUDIT_BF16 ||
                      t->frozen == HR_AUDIT_BF16 || (!is_full(t) && t->adapters == HR_AUDIT_BF16);
    if (kind == HR_AUDIT_MLX) return HR_AUDIT_TRAINS;
    if (t->lacks_bf16 && bf16) return HR_AUDIT_REFUSED_NO_BF16;
    return is_full(t) && t->autocast == HR_AUDIT_FP16 && t->weights == HR_AUDIT_FP16
               ? HR_AUDIT_REFUSED_FP16_WEIGHTS
               : HR_AUDIT_TRAINS;
}

/* TRL trains adapters over 4 bits in bf16. */
static bool apply_qlora(hr_audit_kind kind, hr_audit_training *t)
{
    if ((t->base == HR_AUDIT_NF4 && !is_full(t)) || t->zero_stage == 3 ||
        (kind == HR_AUDIT_TRL && t->lacks_bf16))
        return false;
    t->base = HR_AUDIT_NF4;
    if (is_full(t)) add_adapter(kind, t);
    load_half(kind, t);
    t->adapters = hr_adapter_dtype(kind, t);
    return true;
}

/* Whether a change makes a difference to settings, and what it sets. */
static bool apply(hr_audit_kind kind, hr_change which, hr_audit_training *t)
{
    const bool adam = t->optimizer == HR_AUDIT_ADAMW;
    switch (which) {
    case HR_CHANGE_FORMAT:
        if (refusal_of(kind, t) == HR_AUDIT_TRAINS) return false;
        set_format(kind, t);
        return true;
    case HR_CHANGE_FUSED:
        if (!adam || t->fused_update || t->zero_stage) return false;
        return t->fused_update = true;
    case HR_CHANGE_LOSS:
        if (t->loss >= HR_AUDIT_LOSS_CHUNKED) return false;
        t->loss = kind == HR_AUDIT_TRL && !t->preference ? HR_AUDIT_LOSS_CHUNKED
                                                         : HR_AUDIT_LOSS_FUSED;
        return true;
    case HR_CHANGE_MICRO:
        if (t->micro_batch == 1) return false;
        t->accumulation *= t->micro_batch;
        t->micro_batch = 1;
        return true;
    case HR_CHANGE_CHECKPOINTING:
        if (t->checkpointing) return false;
        return t->checkpointing = true;
    case HR_CHANGE_OFFLOAD:
        if (t->offload_optimizer || !t->zero_stage) return false;
        return t->offload_optimizer = true;
    case HR_CHANGE_OFFLOAD_WEIGHTS:
        if (t->offload_weights || t->zero_stage < 3) return false;
        return t->offload_optimizer = t->offload_weights = true;
    case HR_CHANGE_EIGHT_BIT:
        if (!adam || !is_full(t) || t->zero_stage) return false;
        t->optimizer = HR_AUDIT_PAGED_ADAMW_8BIT;
        t->fused_update = true;
        return true;
    case HR_CHANGE_BF16:
        if (!is_full(t) || t->weights != HR_AUDIT_FP32 || t->zero_stage || t->lacks_bf16 ||
            t->autocast == HR_AUDIT_FP16)
            return false;
        set_bf16(kind, t);
        return true;
    case HR_CHANGE_LORA:
        if (!is_full(t)) return false;
        add_adapter(kind, t);
        return true;
    case HR_CHANGE_QLORA: return apply_qlora(kind, t);
    case HR_CHANGE_HALF_LENGTH:
        if (t->seq_len < 256) return false;
        t->seq_len /= 2;
        return true;
    case HR_CHANGE_QUARTER_LENGTH:
        if (t->seq_len < 512) return false;
        t->seq_len /= 4;
        return true;
    case HR_CHANGES: break;
    }
    return false;
}

/* The changes that are tried, in their order, and what their estimates need. */
typedef struct {
    const hr_audit_report *report;
    hr_change all[HR_CHANGES];
    int32_t count;
    void *memory;
    int64_t bytes;
    hr_error *err;
} trials;

/* The file with some of the changes. */
static hr_audit_training with_changes(const trials *t, uint32_t chosen)
{
    hr_audit_training with = t->report->training;
    for (int32_t i = 0; i < t->count; i++)
        if (chosen >> i & 1) (void)apply(t->report->kind, t->all[i], &with);
    return with;
}

static bool trains_with(const trials *t, uint32_t chosen)
{
    const hr_audit_training with = with_changes(t, chosen);
    return refusal_of(t->report->kind, &with) == HR_AUDIT_TRAINS;
}

static hr_status estimate_with(const trials *t, uint32_t chosen, hr_estimate_answer *answer)
{
    const hr_audit_training with = with_changes(t, chosen);
    return estimate(t->report, &with, t->memory, t->bytes, answer, t->err);
}

/* All changes but those that a later one replaces: they set the same keys. */
static uint32_t without_replaced(const trials *t)
{
    static const hr_change pairs[][2] = { { HR_CHANGE_EIGHT_BIT, HR_CHANGE_FUSED },
                                          { HR_CHANGE_OFFLOAD_WEIGHTS, HR_CHANGE_OFFLOAD },
                                          { HR_CHANGE_LORA, HR_CHANGE_BF16 },
                                          { HR_CHANGE_QLORA, HR_CHANGE_BF16 },
                                          { HR_CHANGE_QLORA, HR_CHANGE_LORA },
                                          { HR_CHANGE_QUARTER_LENGTH, HR_CHANGE_HALF_LENGTH } };
    uint32_t replaced = 0;
    for (int32_t later = 0; later < t->count; later++)
        for (int32_t i = 0; i < later; i++)
            for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++)
                if (t->all[later] == pairs[p][0] && t->all[i] == pairs[p][1]) replaced |= 1U << i;
    return ((1U << t->count) - 1) & ~replaced;
}

/* Leaves out what the patch does not need, the most expensive first: what it fits without, or, if
 * it does not fit, what lowers nothing. */
static hr_status prune(const trials *t, hr_audit_estimate *answer, uint32_t *chosen)
{
    hr_estimate_answer now, less;
    hr_status status = estimate_with(t, *chosen, &now);
    for (int32_t i = t->count - 1; status == HR_OK && i >= 0; i--) {
        const uint32_t fewer = *chosen & ~(1U << i);
        if (fewer == *chosen) continue;
        if (trains_with(t, *chosen) && !trains_with(t, fewer)) continue;
        status = estimate_with(t, fewer, &less);
        const int64_t most = answer->patch_fits ? answer->budget_bytes : now.high_bytes;
        if (status != HR_OK || less.high_bytes > most) continue;
        *chosen = fewer;
        now = less;
    }
    answer->patch_low_bytes = now.low_bytes;
    answer->patch_high_bytes = now.high_bytes;
    return status;
}

/* Leaves out of the lines of a change those with a key that a later needed change sets again. */
static bool drop_repeated(hr_audit_change *change, const hr_audit_change *later)
{
    char kept[HR_AUDIT_PATCH_BYTES] = "";
    for (const char *at = change->lines; *at;) {
        const size_t length = strcspn(at, "\n"), name = strcspn(at, ":"), used = strlen(kept);
        const bool section = at[length] && at[length + 1] == ' ';
        bool again = false;
        for (const char *l = later->lines; *l && !section; l += strcspn(l, "\n"), l += *l == '\n')
            again |= name < length && *at != ' ' && !strncmp(l, at, name + 1);
        if (!again)
            snprintf(kept + used, sizeof kept - used, "%s%.*s", used ? "\n" : "", (int)length, at);
        at += length + (at[length] == '\n');
    }
    memcpy(change->lines, kept, sizeof kept);
    return !*kept;
}

/* A change without lines of its own is part of the later one. */
static void drop_all_repeated(hr_audit_estimate *answer)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < answer->change_count; i++) {
        hr_audit_change *change = &answer->changes[i];
        bool empty = false;
        for (int32_t later = i + 1; later < answer->change_count; later++)
            if (change->needed && answer->changes[later].needed &&
                !strcmp(change->file, answer->changes[later].file))
                empty = drop_repeated(change, &answer->changes[later]);
        if (empty) answer->needed_count--;
        else if (kept++ < i) answer->changes[kept - 1] = *change;
    }
    answer->change_count = kept;
}

/* The changes that are needed, and those that alone lower the estimate. */
static void describe(const trials *t, uint32_t chosen, hr_audit_estimate *answer)
{
    answer->change_count = 0;
    for (int32_t i = 0; i < t->count; i++) {
        const hr_change which = t->all[i];
        const bool needed = chosen >> i & 1;
        if (!needed &&
            (which == HR_CHANGE_FORMAT || answer->changes[i].high_bytes >= answer->now.high_bytes))
            continue;
        hr_audit_change *to = &answer->changes[answer->change_count++];
        *to = answer->changes[i];
        to->needed = needed;
        answer->needed_count += needed;
        (void)hr_patch_lines(t->report, which, to->lines);
        hr_patch_file(t->report, which, to->file);
        const bool half = which == HR_CHANGE_EIGHT_BIT &&
                          t->report->training.weights != HR_AUDIT_FP32;
        snprintf(to->price, sizeof to->price, "%s",
                 half ? "moments in 8 bits instead of 16" : prices[which]);
    }
    drop_all_repeated(answer);
}

/* Adds changes until the file fits. */
static hr_status try_all(trials *t, hr_audit_estimate *answer)
{
    const hr_audit_report *report = t->report;
    char lines[HR_AUDIT_PATCH_BYTES];
    hr_estimate_answer now;
    hr_status status = HR_OK;
    for (hr_change which = 0; status == HR_OK && which < HR_CHANGES && !answer->patch_fits;
         which++) {
        hr_audit_training with = report->training;
        if (!apply(report->kind, which, &with) || !hr_patch_lines(report, which, lines)) continue;
        hr_audit_change *to = &answer->changes[answer->change_count++];
        t->all[t->count++] = which;
        const uint32_t chosen = without_replaced(t);
        status = estimate_with(t, chosen, &now);
        answer->patch_fits = status == HR_OK && now.high_bytes <= answer->budget_bytes &&
                             trains_with(t, chosen);
        if (status == HR_OK) status = estimate(report, &with, t->memory, t->bytes, &now, t->err);
        to->low_bytes = now.low_bytes;
        to->high_bytes = now.high_bytes;
        to->fits = now.high_bytes <= answer->budget_bytes &&
                   refusal_of(report->kind, &with) == HR_AUDIT_TRAINS;
    }
    return status;
}

hr_status hr_audit_estimate_make(const hr_audit_report *report, int64_t budget_bytes, void *memory,
                                 int64_t bytes, hr_audit_estimate *answer, hr_error *err)
{
    trials t = { .report = report, .memory = memory, .bytes = bytes, .err = err };
    memset(answer, 0, sizeof *answer);
    answer->budget_bytes = budget_bytes;
    hr_status status = estimate_with(&t, 0, &answer->now);
    if (status != HR_OK || budget_bytes <= 0) return status;
    answer->refusal = refusal_of(report->kind, &report->training);
    const bool trains = answer->refusal == HR_AUDIT_TRAINS;
    answer->fits = trains && answer->now.high_bytes <= budget_bytes;
    answer->may_fit = trains && !answer->fits && answer->now.low_bytes <= budget_bytes;
    if (!answer->fits) status = try_all(&t, answer);
    if (status != HR_OK || !t.count) return status;
    uint32_t chosen = without_replaced(&t);
    status = prune(&t, answer, &chosen);
    /* Without a change that took more beside the others it may fit after all. */
    const bool now = status == HR_OK && !answer->patch_fits &&
                     answer->patch_high_bytes <= budget_bytes && trains_with(&t, chosen);
    answer->patch_fits |= now;
    if (now) status = prune(&t, answer, &chosen);
    if (status == HR_OK) describe(&t, chosen, answer);
    return status;
}
