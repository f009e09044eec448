/* SPDX-License-Identifier: Apache-2.0 */
/* audit/patches.c - the estimate for a training file, and changes in its own keys that take less.
 *
 * A change is applied to a copy of the settings, and the estimate is made again. Changes come in
 * the order of what they cost: first those that compute the same, then those that compute it twice,
 * then those that train something else. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "audit/training.h"

typedef enum {
    LOSS,
    MICRO,
    CHECKPOINTING,
    OFFLOAD,
    EIGHT_BIT,
    BF16,
    LORA,
    QLORA,
    HALF_LENGTH,
    QUARTER_LENGTH,
    CHANGES
} change;

static const char *const prices[CHANGES] = {
    [LOSS] = "the same results; the logits are computed in chunks",
    [MICRO] = "the same batch in more passes",
    [CHECKPOINTING] = "the same results; each layer is computed twice, about a third more time",
    [OFFLOAD] = "states in host memory; time for their transfer",
    [EIGHT_BIT] = "moments in 8 bits instead of 32",
    [BF16] = "weights and moments in bf16: small updates are lost",
    [LORA] = "trains adapters of rank 16, not the weights",
    [QLORA] = "trains adapters over weights in 4 bits",
    [HALF_LENGTH] = "half the sequence length",
    [QUARTER_LENGTH] = "a quarter of the sequence length",
};

_Static_assert((int)CHANGES <= (int)HR_AUDIT_PATCHES_MOST, "an answer has room for all");

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
    hr_estimate_settings_of(&report->config, framework_of(report), &s);
    hr_estimate_move(&s, HR_ESTIMATE_CUDA);
    s.weights = dtype_of(t->weights);
    s.autocast = dtype_of(t->autocast);
    s.base = t->lora_rank ? dtype_of(t->base == HR_AUDIT_UNSET ? t->weights : t->base)
                          : HR_ESTIMATE_NONE;
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
    s.zero_stage = (int32_t)t->zero_stage;
    s.world = t->world;
    s.offload_optimizer = t->offload_optimizer;
    s.offload_weights = t->offload_weights;
    s.accumulation = t->accumulation;
    s.batch = t->micro_batch * t->accumulation * (t->preference ? 2 : 1);
    s.seq_len = t->seq_len;
    return s;
}

static hr_status estimate(const hr_audit_report *report, const hr_audit_training *t, void *memory,
                          int64_t bytes, hr_estimate_answer *answer, hr_error *err)
{
    hr_config config = report->config;
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

/* Whether a change makes a difference to settings, and what it sets. */
static bool apply(hr_audit_kind kind, change which, hr_audit_training *t)
{
    const bool adam = t->optimizer == HR_AUDIT_ADAMW;
    switch (which) {
    case LOSS:
        if (t->loss >= HR_AUDIT_LOSS_CHUNKED) return false;
        t->loss = kind == HR_AUDIT_TRL && !t->preference ? HR_AUDIT_LOSS_CHUNKED
                                                         : HR_AUDIT_LOSS_FUSED;
        return true;
    case MICRO:
        if (t->micro_batch == 1) return false;
        t->accumulation *= t->micro_batch;
        t->micro_batch = 1;
        return true;
    case CHECKPOINTING:
        if (t->checkpointing) return false;
        return t->checkpointing = true;
    case OFFLOAD:
        if (t->offload_optimizer || !t->zero_stage) return false;
        return t->offload_optimizer = true;
    case EIGHT_BIT:
        if (!adam || !is_full(t) || t->zero_stage) return false;
        t->optimizer = HR_AUDIT_PAGED_ADAMW_8BIT;
        return true;
    case BF16:
        if (!is_full(t) || t->weights != HR_AUDIT_FP32 || t->zero_stage) return false;
        t->weights = HR_AUDIT_BF16;
        t->autocast = HR_AUDIT_UNSET;
        return true;
    case LORA:
        if (!is_full(t) || t->zero_stage) return false;
        t->lora_rank = 16;
        snprintf(t->lora_targets, sizeof t->lora_targets, "all-linear");
        t->adapters = kind == HR_AUDIT_MLX ? t->weights : HR_AUDIT_FP32;
        if (t->weights == HR_AUDIT_FP32) t->weights = HR_AUDIT_BF16;
        return true;
    case QLORA:
        if (is_full(t) || t->base == HR_AUDIT_NF4) return false;
        t->base = HR_AUDIT_NF4;
        return true;
    case HALF_LENGTH:
    case QUARTER_LENGTH:
        if (t->seq_len < 256) return false;
        t->seq_len /= 2;
        return true;
    case CHANGES: break;
    }
    return false;
}

/* ---- their lines in each program; null: it has none */

typedef struct {
    hr_audit_kind kind;
    change which;
    const char *lines; /* %lld: the number of the change */
} row;

static const row rows[] = {
    { HR_AUDIT_HF, LOSS, "use_liger_kernel: true" },
    { HR_AUDIT_HF, MICRO, "per_device_train_batch_size: 1\ngradient_accumulation_steps: %lld" },
    { HR_AUDIT_HF, CHECKPOINTING, "gradient_checkpointing: true" },
    { HR_AUDIT_HF, EIGHT_BIT, "optim: paged_adamw_8bit" },
    { HR_AUDIT_TRL, LOSS, "use_liger_kernel: true" },
    { HR_AUDIT_TRL, MICRO, "per_device_train_batch_size: 1\ngradient_accumulation_steps: %lld" },
    { HR_AUDIT_TRL, CHECKPOINTING, "gradient_checkpointing: true" },
    { HR_AUDIT_TRL, EIGHT_BIT, "optim: paged_adamw_8bit" },
    { HR_AUDIT_TRL, BF16, "dtype: bfloat16" },
    { HR_AUDIT_TRL, LORA,
      "use_peft: true\nlora_r: 16\nlora_alpha: 32\nlora_target_modules: all-linear\n"
      "dtype: bfloat16" },
    { HR_AUDIT_TRL, QLORA, "load_in_4bit: true" },
    { HR_AUDIT_TRL, HALF_LENGTH, "max_length: %lld" },
    { HR_AUDIT_TRL, QUARTER_LENGTH, "max_length: %lld" },
    { HR_AUDIT_AXOLOTL, LOSS,
      "plugins: [axolotl.integrations.liger.LigerPlugin]\n"
      "liger_fused_linear_cross_entropy: true" },
    { HR_AUDIT_AXOLOTL, MICRO, "micro_batch_size: 1\ngradient_accumulation_steps: %lld" },
    { HR_AUDIT_AXOLOTL, CHECKPOINTING, "gradient_checkpointing: true" },
    { HR_AUDIT_AXOLOTL, EIGHT_BIT, "optimizer: paged_adamw_8bit" },
    { HR_AUDIT_AXOLOTL, BF16, "bf16: true" },
    { HR_AUDIT_AXOLOTL, LORA,
      "adapter: lora\nlora_r: 16\nlora_alpha: 32\nlora_target_linear: true" },
    { HR_AUDIT_AXOLOTL, QLORA, "adapter: qlora\nload_in_4bit: true\nload_in_8bit: false" },
    { HR_AUDIT_AXOLOTL, HALF_LENGTH, "sequence_len: %lld" },
    { HR_AUDIT_AXOLOTL, QUARTER_LENGTH, "sequence_len: %lld" },
    { HR_AUDIT_LLAMA_FACTORY, LOSS, "enable_liger_kernel: true" },
    { HR_AUDIT_LLAMA_FACTORY, MICRO,
      "per_device_train_batch_size: 1\ngradient_accumulation_steps: %lld" },
    { HR_AUDIT_LLAMA_FACTORY, CHECKPOINTING, "disable_gradient_checkpointing: false" },
    { HR_AUDIT_LLAMA_FACTORY, EIGHT_BIT, "optim: paged_adamw_8bit" },
    { HR_AUDIT_LLAMA_FACTORY, BF16, "pure_bf16: true" },
    { HR_AUDIT_LLAMA_FACTORY, LORA, "finetuning_type: lora\nlora_rank: 16\nlora_target: all" },
    { HR_AUDIT_LLAMA_FACTORY, QLORA, "quantization_bit: 4" },
    { HR_AUDIT_LLAMA_FACTORY, HALF_LENGTH, "cutoff_len: %lld" },
    { HR_AUDIT_LLAMA_FACTORY, QUARTER_LENGTH, "cutoff_len: %lld" },

    { HR_AUDIT_TORCHTUNE, MICRO, "batch_size: 1\ngradient_accumulation_steps: %lld" },
    { HR_AUDIT_TORCHTUNE, CHECKPOINTING, "enable_activation_checkpointing: True" },
    { HR_AUDIT_TORCHTUNE, EIGHT_BIT,
      "optimizer:\n  _component_: bitsandbytes.optim.PagedAdamW8bit" },
    { HR_AUDIT_TORCHTUNE, BF16, "dtype: bf16" },
    { HR_AUDIT_TORCHTUNE, HALF_LENGTH, "tokenizer:\n  max_seq_len: %lld" },
    { HR_AUDIT_TORCHTUNE, QUARTER_LENGTH, "tokenizer:\n  max_seq_len: %lld" },
    { HR_AUDIT_MLX, MICRO, "batch_size: 1\ngrad_accumulation_steps: %lld" },
    { HR_AUDIT_MLX, CHECKPOINTING, "grad_checkpoint: true" },
    { HR_AUDIT_MLX, LORA, "fine_tune_type: lora\nlora_parameters:\n  rank: 16" },
    { HR_AUDIT_MLX, HALF_LENGTH, "max_seq_length: %lld" },
    { HR_AUDIT_MLX, QUARTER_LENGTH, "max_seq_length: %lld" },
    { HR_AUDIT_DEEPSPEED, MICRO,
      "train_micro_batch_size_per_gpu: 1\ngradient_accumulation_steps: %lld" },
};
enum { ROWS = sizeof rows / sizeof *rows };

static const char *lines_of(hr_audit_kind kind, bool preference, change which)
{
    if (kind == HR_AUDIT_TRL && which == LOSS && !preference) return "loss_type: chunked_nll";
    for (int32_t i = 0; i < ROWS; i++)
        if (rows[i].kind == kind && rows[i].which == which) return rows[i].lines;
    if (which == OFFLOAD && kind == HR_AUDIT_DEEPSPEED)
        return "\"zero_optimization\": { \"offload_optimizer\": { \"device\": \"cpu\" } }";
    return NULL;
}

/* "key: word" as JSON. */
static void put_json_line(const char *line, size_t length, bool last, char *to, size_t room)
{
    const char *colon = memchr(line, ':', length);
    if (!colon || *line == '"') {
        snprintf(to, room, "%.*s%s", (int)length, line, last ? "" : "\n");
        return;
    }
    const char *value = colon + 2;
    const size_t bytes = length - (size_t)(value - line);
    const bool bare = strspn(value, "0123456789.") == bytes || !strncmp(value, "true", bytes) ||
                      !strncmp(value, "false", bytes);
    snprintf(to, room, "\"%.*s\": %s%.*s%s,%s", (int)(colon - line), line, bare ? "" : "\"",
             (int)bytes, value, bare ? "" : "\"", last ? "" : "\n");
}

static void put_lines(const char *form, int64_t number, bool json, char to[HR_AUDIT_PATCH_BYTES])
{
    char text[HR_AUDIT_PATCH_BYTES];
    const char *place = strstr(form, "%lld");
    if (place)
        snprintf(text, sizeof text, "%.*s%" PRId64 "%s", (int)(place - form), form, number,
                 place + 4);
    else snprintf(text, sizeof text, "%s", form);
    if (!json) {
        memcpy(to, text, sizeof text);
        return;
    }
    *to = 0;
    for (const char *at = text; *at;) {
        const size_t length = strcspn(at, "\n"), used = strlen(to);
        const bool last = !at[length];
        put_json_line(at, length, last, to + used, HR_AUDIT_PATCH_BYTES - used);
        at += length + !last;
    }
}

/* The file with some of the changes, in their order. */
static hr_status estimate_with(const hr_audit_report *report, const change *all, int32_t count,
                               uint32_t chosen, void *memory, int64_t bytes,
                               hr_estimate_answer *answer, hr_error *err)
{
    hr_audit_training with = report->training;
    for (int32_t i = 0; i < count; i++)
        if (chosen >> i & 1) (void)apply(report->kind, all[i], &with);
    return estimate(report, &with, memory, bytes, answer, err);
}

/* Leaves out what the patch does not need, the most expensive first. The last change is needed. */
static hr_status prune(const hr_audit_report *report, const change *all, void *memory,
                       int64_t bytes, hr_audit_estimate *answer, uint32_t *chosen, hr_error *err)
{
    const int32_t count = answer->change_count;
    hr_estimate_answer now;
    hr_status status = HR_OK;
    *chosen = (1U << count) - 1;
    for (int32_t i = count - 2; status == HR_OK && answer->patch_fits && i >= 0; i--) {
        const uint32_t fewer = *chosen & ~(1U << i);
        status = estimate_with(report, all, count, fewer, memory, bytes, &now, err);
        if (status == HR_OK && now.high_bytes <= answer->budget_bytes) *chosen = fewer;
    }
    if (status == HR_OK)
        status = estimate_with(report, all, count, *chosen, memory, bytes, &now, err);
    answer->patch_low_bytes = now.low_bytes;
    answer->patch_high_bytes = now.high_bytes;
    return status;
}

static void describe(const hr_audit_report *report, const change *all, uint32_t chosen,
                     hr_audit_estimate *answer)
{
    const hr_audit_training *t = &report->training;
    for (int32_t i = 0; i < answer->change_count; i++) {
        hr_audit_change *to = &answer->changes[i];
        const int64_t number = all[i] == HALF_LENGTH      ? t->seq_len / 2
                               : all[i] == QUARTER_LENGTH ? t->seq_len / 4
                                                          : t->accumulation * t->micro_batch;
        to->needed = chosen >> i & 1;
        answer->needed_count += to->needed;
        put_lines(lines_of(report->kind, t->preference, all[i]), number, report->is_json,
                  to->lines);
        snprintf(to->price, sizeof to->price, "%s", prices[all[i]]);
    }
}

/* Adds changes until the file fits. */
static hr_status try_all(const hr_audit_report *report, change tried[CHANGES], void *memory,
                         int64_t bytes, hr_audit_estimate *answer, hr_error *err)
{
    hr_audit_training sum = report->training, alone;
    hr_estimate_answer now;
    hr_status status = HR_OK;
    for (change which = LOSS; status == HR_OK && which < CHANGES && !answer->patch_fits; which++) {
        if (!lines_of(report->kind, sum.preference, which) || !apply(report->kind, which, &sum))
            continue;
        hr_audit_change *to = &answer->changes[answer->change_count];
        tried[answer->change_count++] = which;
        status = estimate(report, &sum, memory, bytes, &now, err);
        answer->patch_fits = status == HR_OK && now.high_bytes <= answer->budget_bytes;
        /* A change that needs an earlier one has the estimate of both. */
        alone = report->training;
        if (status == HR_OK && apply(report->kind, which, &alone))
            status = estimate(report, &alone, memory, bytes, &now, err);
        to->low_bytes = now.low_bytes;
        to->high_bytes = now.high_bytes;
        to->fits = now.high_bytes <= answer->budget_bytes;
    }
    return status;
}

hr_status hr_audit_estimate_make(const hr_audit_report *report, int64_t budget_bytes, void *memory,
                                 int64_t bytes, hr_audit_estimate *answer, hr_error *err)
{
    change tried[CHANGES];
    uint32_t chosen;
    memset(answer, 0, sizeof *answer);
    answer->budget_bytes = budget_bytes;
    hr_status status = estimate(report, &report->training, memory, bytes, &answer->now, err);
    if (status != HR_OK || budget_bytes <= 0) return status;
    answer->fits = answer->now.high_bytes <= budget_bytes;
    if (!answer->fits) status = try_all(report, tried, memory, bytes, answer, err);
    if (status != HR_OK || !answer->change_count) return status;
    status = prune(report, tried, memory, bytes, answer, &chosen, err);
    if (status == HR_OK) describe(report, tried, chosen, answer);
    return status;
}
