/* SPDX-License-Identifier: Apache-2.0 */
/* audit/training_take.c - one entry of a training file. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "audit/training.h"
#include "base/number.h"
#include "config/yaml_events.h"

/* ---- values */

static bool is_auto(hr_reading *r, const hr_entry *entry)
{
    if (strcmp(entry->value, "auto")) return false;
    hr_autos_note(r, entry, r->meaning);
    return true;
}

static hr_status take_bool(hr_reading *r, const hr_entry *entry, bool *to)
{
    static const char *const yes[] = { "true", "yes", "on", "1" };
    static const char *const no[] = { "false", "no", "off", "0", "none" };
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (!strcasecmp(entry->value, yes[i])) return *to = true, HR_OK;
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (!strcasecmp(entry->value, no[i])) return *to = false, HR_OK;
    return hr_reading_fail(r, entry, "true or false");
}

/* YAML allows "500_000". */
static bool parse_real(const char *text, double *to)
{
    char digits[48];
    size_t n = 0;
    for (const char *at = text; *at; at++) {
        if (*at == '_' && n) continue;
        if (n + 1 == sizeof digits) return false;
        digits[n++] = *at;
    }
    digits[n] = 0;
    return hr_real_parse(digits, to);
}

static hr_status take_real(hr_reading *r, const hr_entry *entry, double *to)
{
    if (is_auto(r, entry)) return HR_OK;
    return parse_real(entry->value, to) ? HR_OK : hr_reading_fail(r, entry, "a number");
}

static hr_status take_count(hr_reading *r, const hr_entry *entry, int64_t least, int64_t *to)
{
    double value;
    if (is_auto(r, entry)) return HR_OK;
    if (!parse_real(entry->value, &value) || value != floor(value) || value < (double)least ||
        value > 1e9)
        return hr_reading_fail(r, entry,
                               least > 0 ? "a whole number from 1 to 1e9" : "a whole number");
    *to = (int64_t)value;
    return HR_OK;
}

static hr_status take_dtype(hr_reading *r, const hr_entry *entry)
{
    const char *value = entry->value;
    r->dtype_line = entry->line;
    if (is_auto(r, entry)) return r->auto_dtype = true, HR_OK;
    if (hr_audit_contains(value, "bfloat16") || hr_audit_contains(value, "bf16"))
        r->dtype = HR_AUDIT_BF16;
    else if (hr_audit_contains(value, "float16") || hr_audit_contains(value, "fp16") ||
             hr_audit_contains(value, "half"))
        r->dtype = HR_AUDIT_FP16;
    else if (hr_audit_contains(value, "float32") || hr_audit_contains(value, "fp32"))
        r->dtype = HR_AUDIT_FP32;
    else return hr_reading_fail(r, entry, "bfloat16, float16, float32 or auto");
    return HR_OK;
}

/* ---- the rest */

static hr_status take_bf16(hr_reading *r, const hr_entry *entry)
{
    r->bf16_line = entry->line;
    if (is_auto(r, entry)) return r->auto_bf16 = true, HR_OK;
    r->bf16_given = true;
    if (!strcmp(entry->value, "full")) return r->bf16 = r->pure = true, HR_OK;
    return take_bool(r, entry, &r->bf16);
}

static hr_status take_fp16(hr_reading *r, const hr_entry *entry)
{
    r->fp16_line = entry->line;
    if (is_auto(r, entry)) return HR_OK;
    return take_bool(r, entry, &r->fp16);
}

/* true, false, or a way of doing it ("unsloth", "offload", {use_reentrant: ...}). */
static hr_status take_checkpointing(hr_reading *r, const hr_entry *entry)
{
    bool *to = &r->report->training.checkpointing;
    r->checkpointing_line = entry->line;
    if (!strcmp(entry->value, "unsloth") || !strncmp(entry->value, "offload", 7)) {
        hr_audit_doubt(r->report, entry->line,
                       "%.40s: %.20s moves the inputs of layers to the host; the estimate keeps "
                       "them on the device",
                       entry->key, entry->value);
        return *to = true, HR_OK;
    }
    return take_bool(r, entry, to);
}

static hr_status take_warmup(hr_reading *r, const hr_entry *entry)
{
    r->warmup_line = entry->line;
    hr_status status = take_real(r, entry, &r->warmup);
    if (status == HR_OK && (r->warmup < 0 || r->warmup > 1e9))
        return hr_reading_fail(r, entry, "a number from 0 to 1e9");
    if (status == HR_OK && r->warmup > 0 && r->warmup < 1) {
        r->warmup_ratio = r->warmup;
        r->warmup = 0;
        hr_audit_find(r->report, entry->line,
                      "%.40s: %.20s is below 1, so it is a share of all steps and no number of "
                      "steps",
                      entry->key, entry->value);
    }
    return status;
}

static hr_status take_bits(hr_reading *r, const hr_entry *entry)
{
    int64_t bits = 0;
    const hr_status status = take_count(r, entry, 1, &bits);
    r->four_bit = bits == 4;
    r->eight_bit = bits == 8;
    return status == HR_OK && bits != 4 && bits != 8 ? hr_reading_fail(r, entry, "4 or 8") : status;
}

static hr_status take_stage(hr_reading *r, const hr_entry *entry)
{
    static const char *const preference[] = { "dpo", "ipo", "kto", "orpo", "simpo", "cpo" };
    hr_audit_training *t = &r->report->training;
    for (size_t i = 0; i < sizeof preference / sizeof *preference; i++) {
        if (strcasecmp(entry->value, preference[i])) continue;
        t->preference = true;
        t->reference = i < 3;
        r->kto = t->single = !strcasecmp(entry->value, "kto");
        return HR_OK;
    }
    static const char *const plain[] = { "sft", "pt", "normal" };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!strcasecmp(entry->value, plain[i])) return HR_OK;
    return hr_reading_fail(r, entry,
                           "sft, pt, dpo, ipo, kto, orpo or simpo: nothing else can be estimated");
}

/* LLaMA-Factory reads these keys in a stage of preference training only; ORPO and SimPO have no
 * reference. */
static hr_status take_preference(hr_reading *r, const hr_entry *entry)
{
    hr_audit_training *t = &r->report->training;
    if (r->report->kind == HR_AUDIT_LLAMA_FACTORY)
        r->no_reference |= !strcmp(entry->value, "orpo") || !strcmp(entry->value, "simpo");
    else t->preference = t->reference = true;
    return HR_OK;
}

static hr_status refuse(const hr_reading *r, const hr_entry *entry, const char *what)
{
    char sentence[160];
    snprintf(sentence, sizeof sentence, "%.60s: the file %s an audit does not estimate", entry->key,
             what);
    return hr_yaml_fail(r->path, entry->line, sentence, r->err);
}

static hr_status take_loss(hr_reading *r, const hr_entry *entry)
{
    hr_audit_training *t = &r->report->training;
    r->loss_line = entry->line;
    if (!strcmp(entry->value, "chunked_nll")) t->loss = HR_AUDIT_LOSS_CHUNKED;
    else if (hr_audit_contains(entry->value, "chunked") ||
             hr_audit_contains(entry->value, "LinearCross"))
        t->loss = HR_AUDIT_LOSS_LOOP;
    if (!strcmp(entry->value, "sigmoid") || !strcmp(entry->value, "ipo"))
        t->preference = t->reference = true;
    /* torchtune.rlhf.loss.DPOLoss, RSOLoss, SimPOLoss: the last has no reference. */
    if (r->report->kind == HR_AUDIT_TORCHTUNE && hr_audit_contains(entry->value, "rlhf.loss")) {
        const bool simple = hr_audit_contains(entry->value, "SimPO");
        if (hr_audit_contains(entry->value, "PPOLoss") || hr_audit_contains(entry->value, "GRPO"))
            return refuse(r, entry, "trains with answers that it generates, which");
        t->preference = true;
        t->reference = !simple;
    }
    return HR_OK;
}

static hr_status take_zero(hr_reading *r, const hr_entry *entry)
{
    hr_audit_training *t = &r->report->training;
    const hr_status status = take_count(r, entry, 0, &t->zero_stage);
    return status == HR_OK && t->zero_stage > 3 ? hr_reading_fail(r, entry, "0, 1, 2 or 3")
                                                : status;
}

static hr_status take_deepspeed(hr_reading *r, const hr_entry *entry)
{
    if (strcmp(entry->key, "deepspeed") || !*entry->value || !strcmp(entry->value, "{}"))
        return HR_OK;
    r->deepspeed_line = entry->line;
    snprintf(r->deepspeed, sizeof r->deepspeed, "%s", entry->value);
    return HR_OK;
}

static hr_status take_fsdp(hr_reading *r, const hr_entry *entry)
{
    hr_audit_training *t = &r->report->training;
    if (hr_audit_contains(entry->value, "full_shard") ||
        hr_audit_contains(entry->value, "hybrid_shard"))
        t->zero_stage = 3;
    if (hr_audit_contains(entry->value, "shard_grad_op")) t->zero_stage = 2;
    r->fsdp |= hr_audit_contains(entry->key, "fsdp_config.");
    if (hr_audit_contains(entry->key, "version")) r->fsdp_two |= !strcmp(entry->value, "2");
    if (hr_audit_contains(entry->key, "reshard"))
        r->fsdp_keeps = hr_audit_contains(entry->value, "false");
    if (hr_audit_contains(entry->value, "offload") ||
        (hr_audit_contains(entry->key, "offload_params") &&
         hr_audit_contains(entry->value, "true")))
        t->offload_optimizer = t->offload_weights = true;
    return HR_OK;
}

/* Plugins of axolotl; the one for cut cross-entropy switches it on unless the file says no. */
static hr_status take_plugin(hr_reading *r, const hr_entry *entry)
{
    hr_audit_training *t = &r->report->training;
    r->cut_plugin |= hr_audit_contains(entry->value, "CutCrossEntropyPlugin");
    if (r->cut_plugin && !r->cut_given) t->loss = HR_AUDIT_LOSS_FUSED;
    if (r->cut_plugin && !r->loss_switch_line) r->loss_switch_line = entry->line;
    return HR_OK;
}

static hr_status take_cut_loss(hr_reading *r, const hr_entry *entry)
{
    hr_audit_training *t = &r->report->training;
    bool on = false;
    const hr_status status = take_bool(r, entry, &on);
    if (on) t->loss = HR_AUDIT_LOSS_FUSED, r->loss_switch_line = entry->line;
    else if (r->cut_plugin && !r->cut_given) t->loss = HR_AUDIT_LOSS_WHOLE;
    r->cut_given = true;
    return status;
}

/* True switches it on; false leaves what another key says. */
static hr_status take_switch(hr_reading *r, const hr_entry *entry, bool *to)
{
    bool on = false;
    const hr_status status = take_bool(r, entry, &on);
    *to |= on;
    return status;
}

static hr_status set_key(hr_reading *r, const hr_entry *entry)
{
    hr_error inner;
    char sentence[HR_ERROR_BYTES + 64];
    if (is_auto(r, entry)) return HR_OK;
    const char *key = hr_meaning_key(r->meaning);
    if (hr_config_set(r->report->config, key, entry->value, &inner) == HR_OK) return HR_OK;
    snprintf(sentence, sizeof sentence, "%.60s: %s", entry->key, inner.message);
    return hr_yaml_fail(r->path, entry->line, sentence, r->err);
}

static hr_status take_epochs(hr_reading *r, const hr_entry *entry)
{
    double epochs = 1;
    char text[32];
    hr_status status = take_real(r, entry, &epochs);
    if (status != HR_OK || epochs <= 0) return status;
    snprintf(text, sizeof text, "%.0f", ceil(epochs));
    return hr_config_set(r->report->config, "train.epochs", text, r->err);
}

static hr_status take_text(hr_reading *r, const hr_entry *entry, char *to, size_t bytes,
                           int64_t *line)
{
    (void)r;
    *line = entry->line;
    snprintf(to, bytes, "%s", entry->value);
    return HR_OK;
}

/* A value of YAML as a count of steps, where -1 means "as many as the epochs have". */
static hr_status take_steps(hr_reading *r, const hr_entry *entry)
{
    double steps = -1;
    hr_status status = take_real(r, entry, &steps);
    return status != HR_OK || steps <= 0 ? status : set_key(r, entry);
}

/* -1: all of them. */
static hr_status take_layers(hr_reading *r, const hr_entry *entry)
{
    r->layers_line = entry->line;
    return strcmp(entry->value, "-1") ? take_count(r, entry, 1, &r->layers) : HR_OK;
}

/* What the estimate does not have. */
static hr_status take_unmodeled(hr_reading *r, const hr_entry *entry)
{
    if (!hr_audit_is_off(entry->value))
        hr_audit_doubt(r->report, entry->line,
                       "%.60s: %.40s changes what is in memory, and the estimate does not have it",
                       entry->key, entry->value);
    return HR_OK;
}

/* Elements of a buffer of DeepSpeed: up to the largest default of any, one thousand million, they
 * are within the range of the estimate. */
static hr_status take_buffer(hr_reading *r, const hr_entry *entry)
{
    double elements;
    if (!strcmp(entry->value, "auto") || (parse_real(entry->value, &elements) && elements <= 1e9))
        return HR_OK;
    return take_unmodeled(r, entry);
}

static hr_status take_finds_batch(hr_reading *r, const hr_entry *entry)
{
    if (!hr_audit_is_off(entry->value))
        hr_audit_doubt(r->report, entry->line,
                       "%.60s: the trainer lowers the batch until it fits; the estimate is for the "
                       "batch of the file",
                       entry->key);
    return HR_OK;
}

static hr_status take_blocks(hr_reading *r, const hr_entry *entry)
{
    r->blocks = !hr_audit_is_off(entry->value);
    if (r->blocks)
        hr_audit_doubt(r->report, entry->line,
                       "%.60s trains one block of layers at a time, and only that has gradients "
                       "and states; the estimate is for all at once",
                       entry->key);
    return HR_OK;
}

/* The field of a switch, of a count from 1, or of a number that needs nothing else; null: another
 * kind of key. */
static bool *switch_of(hr_reading *r, hr_meaning meaning)
{
    hr_audit_training *t = &r->report->training;
    switch (meaning) {
    case HR_MEANS_PURE_BF16: return &r->pure;
    case HR_MEANS_4BIT: return &r->four_bit;
    case HR_MEANS_8BIT: return &r->eight_bit;
    case HR_MEANS_DOUBLE_QUANT: return &t->double_quant;
    case HR_MEANS_PEFT: return &r->peft;
    case HR_MEANS_ALL_LINEAR: return &r->linear;
    case HR_MEANS_MLP_TARGETS: return &r->mlp;
    case HR_MEANS_FUSED_UPDATE: return &t->fused_update;
    case HR_MEANS_PREFERENCE_LOSS: return &r->fused_preference;
    case HR_MEANS_HALF_MASTERS: return &t->half_masters;
    case HR_MEANS_HALF_STATES: return &t->half_states;
    case HR_MEANS_IN_BACKWARD: return &t->in_backward;
    default: return NULL;
    }
}

static int64_t *count_of(hr_reading *r, const hr_entry *entry, hr_meaning meaning)
{
    hr_audit_training *t = &r->report->training;
    switch (meaning) {
    case HR_MEANS_MICRO_BATCH:
        r->micro_line = entry->line;
        r->micro_given = strcmp(entry->value, "auto") != 0;
        return &t->micro_batch;
    case HR_MEANS_ACCUMULATION:
        r->accumulation_given = strcmp(entry->value, "auto") != 0;
        return &t->accumulation;
    case HR_MEANS_GLOBAL_BATCH: return &r->global_batch;
    case HR_MEANS_LENGTH: r->length_line = entry->line; return &t->seq_len;
    case HR_MEANS_RANK: return &t->lora_rank;
    default: return NULL;
    }
}

static double *real_of(hr_reading *r, const hr_entry *entry, hr_meaning meaning)
{
    switch (meaning) {
    case HR_MEANS_ALPHA: return &r->report->training.lora_alpha;
    case HR_MEANS_SCALE: r->scale_line = entry->line; return &r->scale;
    case HR_MEANS_ADAPTER_DROPOUT: return &r->report->training.lora_dropout;
    default: return NULL;
    }
}

/* Keys that are true or false, and then mean more than one field. */
static hr_status take_truth(hr_reading *r, const hr_entry *entry, hr_meaning meaning)
{
    hr_audit_training *t = &r->report->training;
    bool truth = false;
    const hr_status status = take_bool(r, entry, &truth);
    if (meaning == HR_MEANS_NO_CHECKPOINTING) t->checkpointing = !truth;
    if (status != HR_OK || !truth) return status;
    switch (meaning) {
    case HR_MEANS_FUSED_LOSS:
    case HR_MEANS_CHUNKED_LOSS:
        r->loss_switch_line = entry->line;
        if (meaning == HR_MEANS_FUSED_LOSS) t->loss = HR_AUDIT_LOSS_FUSED;
        else if (t->loss == HR_AUDIT_LOSS_WHOLE) t->loss = HR_AUDIT_LOSS_LOOP;
        return HR_OK;
    case HR_MEANS_CPU_OFFLOAD: t->offload_optimizer = t->offload_weights = true; return HR_OK;
    case HR_MEANS_REWARDS: return refuse(r, entry, "trains a model that rates answers, which");
    default: return HR_OK;
    }
}

static hr_status take_optimizer(hr_reading *r, const hr_entry *entry)
{
    if (is_auto(r, entry)) return HR_OK;
    return take_text(r, entry, r->optimizer, sizeof r->optimizer, &r->optimizer_line);
}

static hr_status take_warmup_ratio(hr_reading *r, const hr_entry *entry)
{
    const hr_status status = take_real(r, entry, &r->warmup_ratio);
    if (status != HR_OK || (r->warmup_ratio >= 0 && r->warmup_ratio <= 1)) return status;
    return hr_reading_fail(r, entry, "a number from 0 to 1");
}

static hr_status take_fsdp_checkpointing(hr_reading *r, const hr_entry *entry)
{
    r->checkpointing_line = entry->line;
    r->fsdp = true;
    return take_switch(r, entry, &r->report->training.checkpointing);
}

hr_status hr_reading_take(hr_reading *r, const hr_entry *entry, hr_meaning meaning)
{
    hr_audit_training *t = &r->report->training;
    bool *truth = switch_of(r, meaning);
    int64_t *count = count_of(r, entry, meaning), ignored;
    double *real = real_of(r, entry, meaning);
    r->meaning = meaning;
    if (truth) return take_bool(r, entry, truth);
    if (count) return take_count(r, entry, 1, count);
    if (real) return take_real(r, entry, real);
    switch (meaning) {
    case HR_MEANS_MODEL: return take_text(r, entry, r->model, sizeof r->model, &ignored);
    case HR_MEANS_CHECKPOINTING: return take_checkpointing(r, entry);
    case HR_MEANS_BF16: return take_bf16(r, entry);
    case HR_MEANS_FP16: return take_fp16(r, entry);
    case HR_MEANS_DTYPE: return take_dtype(r, entry);
    case HR_MEANS_OPTIMIZER: return take_optimizer(r, entry);
    case HR_MEANS_SCHEDULE: return take_text(r, entry, r->schedule, sizeof r->schedule, &ignored);
    case HR_MEANS_WARMUP: return take_warmup(r, entry);
    case HR_MEANS_WARMUP_RATIO: return take_warmup_ratio(r, entry);
    case HR_MEANS_EPOCHS: return take_epochs(r, entry);
    case HR_MEANS_STEPS: return take_steps(r, entry);
    case HR_MEANS_RATE:
    case HR_MEANS_DECAY:
    case HR_MEANS_BETA1:
    case HR_MEANS_BETA2:
    case HR_MEANS_EPS:
    case HR_MEANS_CLIP:
    case HR_MEANS_SEED: return set_key(r, entry);
    case HR_MEANS_BITS: return take_bits(r, entry);
    case HR_MEANS_PACKING: return take_switch(r, entry, &t->packing);
    case HR_MEANS_CUT_LOSS: return take_cut_loss(r, entry);
    case HR_MEANS_PLUGIN: return take_plugin(r, entry);
    case HR_MEANS_LOSS: return take_loss(r, entry);
    case HR_MEANS_STAGE: return take_stage(r, entry);
    case HR_MEANS_PREFERENCE: return take_preference(r, entry);
    case HR_MEANS_DEEPSPEED: return take_deepspeed(r, entry);
    case HR_MEANS_FSDP: return take_fsdp(r, entry);
    case HR_MEANS_FSDP_CHECKPOINTING: return take_fsdp_checkpointing(r, entry);
    case HR_MEANS_ZERO: return take_zero(r, entry);
    case HR_MEANS_OFFLOAD_OPTIMIZER:
        t->offload_optimizer = strcmp(entry->value, "none") != 0;
        return HR_OK;
    case HR_MEANS_OFFLOAD_WEIGHTS:
        t->offload_weights = strcmp(entry->value, "none") != 0;
        return HR_OK;
    case HR_MEANS_ATTENTION:
        t->eager = !strcmp(entry->value, "eager") || !strcmp(entry->value, "disabled");
        return HR_OK;
    case HR_MEANS_UNMODELED: return take_unmodeled(r, entry);
    case HR_MEANS_BUFFER: return take_buffer(r, entry);
    case HR_MEANS_FINDS_BATCH: return take_finds_batch(r, entry);
    case HR_MEANS_BLOCKS: return take_blocks(r, entry);
    case HR_MEANS_GENERATES:
        return refuse(r, entry, "trains with answers that it generates, which");
    case HR_MEANS_TEACHER: return refuse(r, entry, "distills a second model, which");
    case HR_MEANS_LAYERS: return take_layers(r, entry);
    case HR_MEANS_NO_CHECKPOINTING:
    case HR_MEANS_FUSED_LOSS:
    case HR_MEANS_CHUNKED_LOSS:
    case HR_MEANS_CPU_OFFLOAD:
    case HR_MEANS_REWARDS:
    case HR_MEANS_FLASH: return take_truth(r, entry, meaning);
    case HR_MEANS_NOTHING: return HR_OK;
    default: return hr_adapter_take(r, entry, meaning);
    }
}
