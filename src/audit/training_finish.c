/* SPDX-License-Identifier: Apache-2.0 */
/* audit/training_finish.c - from what a training file says to the settings of its program and the
 * config of headroom, with a finding for each trap. */
#include <stdio.h>
#include <string.h>

#include "audit/models.h"
#include "audit/training.h"
#include "base/checked.h"
#include "base/words.h"
#include "config/config.h"

/* ---- the model */

static hr_status read_model(hr_reading *r, const hr_audit_request *request)
{
    hr_audit_training *t = &r->report->training;
    const hr_known_model *known = NULL;
    char folder[HR_PATH_BYTES] = "";
    hr_config *config = r->report->config;
    const hr_config before = *config;
    if (!request->model) hr_audit_folder(r->path, folder);
    const char *name = request->model ? request->model : r->model;
    if (!*name)
        return hr_fail(r->err, HR_USAGE,
                       "%s names no model; give one with --model, such as Qwen/Qwen2.5-7B",
                       r->path);
    snprintf(t->model, sizeof t->model, "%.*s", HR_AUDIT_KEY_BYTES - 1, name);
    const bool is_recipe = request->model && request->model_recipe;
    hr_status status = is_recipe ? hr_config_read_text(config, request->model_recipe, name, r->err)
                                 : hr_model_read(name, folder, config, &known, r->err);
    if (status != HR_OK) return status;
    /* A recipe brings its own training keys; those of the file win. */
    config->train = before.train;
    config->memory = before.memory;
    if (known && !strcmp(known->dtype, "fp16")) t->published = HR_AUDIT_FP16;
    if (known && !strcmp(known->dtype, "fp32")) t->published = HR_AUDIT_FP32;
    /* a folder; without a dtype in its config.json, fp32 */
    if (!known && !is_recipe && !hr_ends_with(name, ".yaml") && !hr_ends_with(name, ".yml"))
        t->published = config->stored_weights == HR_WEIGHTS_BF16  ? HR_AUDIT_BF16
                       : config->stored_weights == HR_WEIGHTS_F16 ? HR_AUDIT_FP16
                                                                  : HR_AUDIT_FP32;
    return hr_config_check_model(config, r->err);
}

/* ---- dtypes */

/* Where nothing is said: "auto" of DeepSpeed follows the key of the trainer, auto is the default of
 * axolotl, and TRL computes in bf16. */
static void take_default_format(hr_reading *r)
{
    hr_audit_training *t = &r->report->training;
    const hr_audit_kind kind = r->report->kind;
    const bool axolotl = kind == HR_AUDIT_AXOLOTL;
    if (r->bf16_given || r->fp16) return;
    if (axolotl && t->lacks_bf16) r->fp16 = !r->fp16_line;
    else r->bf16 = axolotl || kind == HR_AUDIT_TRL || (kind == HR_AUDIT_DEEPSPEED && r->auto_bf16);
    if (kind == HR_AUDIT_TRL && !r->fp16_line)
        hr_audit_find(r->report, 0, "no bf16 or fp16 is given: TRL computes in bf16");
    if (axolotl && !r->auto_bf16 && !r->fp16_line)
        hr_audit_find(r->report, 0,
                      "no bf16 is given: the default of axolotl is auto, bf16 on a device that has "
                      "it, else fp16: taken as %s",
                      r->fp16 ? "fp16" : "bf16");
}

static void set_dtypes(hr_reading *r)
{
    hr_audit_training *t = &r->report->training;
    const hr_audit_kind kind = r->report->kind;
    char text[HR_AUDIT_VALUE_BYTES];
    const double parameters = (double)t->parameters;
    const bool axolotl = kind == HR_AUDIT_AXOLOTL;
    take_default_format(r);
    /* LLaMA-Factory looks for bf16 on the device where nothing is said. */
    if (kind == HR_AUDIT_LLAMA_FACTORY && t->lacks_bf16 && t->published == HR_AUDIT_BF16)
        t->published = HR_AUDIT_FP16;
    if (r->auto_dtype) r->dtype = t->published;
    const hr_audit_dtype half = r->bf16 ? HR_AUDIT_BF16 : r->fp16 ? HR_AUDIT_FP16 : HR_AUDIT_UNSET;
    if (kind == HR_AUDIT_TORCHTUNE || kind == HR_AUDIT_MLX) {
        t->weights = r->dtype != HR_AUDIT_UNSET ? r->dtype
                     : kind == HR_AUDIT_MLX     ? t->published
                                                : HR_AUDIT_BF16;
        return;
    }
    t->autocast = half;
    if (r->dtype != HR_AUDIT_UNSET) t->weights = r->dtype;
    else if (axolotl) t->weights = half == HR_AUDIT_UNSET ? HR_AUDIT_FP32 : half;
    else if (kind == HR_AUDIT_LLAMA_FACTORY)
        t->weights = half != HR_AUDIT_UNSET ? half : t->published;
    else if (kind == HR_AUDIT_DEEPSPEED) t->weights = half == HR_AUDIT_UNSET ? HR_AUDIT_FP32 : half;
    else if (kind == HR_AUDIT_HF) t->weights = t->published;
    else t->weights = HR_AUDIT_FP32;
    if (kind == HR_AUDIT_LLAMA_FACTORY && r->full && !r->pure) t->weights = HR_AUDIT_FP32;
    if (r->blocks && half != HR_AUDIT_UNSET) t->weights = half;
    if (r->pure) t->weights = HR_AUDIT_BF16, t->autocast = HR_AUDIT_UNSET;
    /* DeepSpeed casts the weights itself, and keeps fp32 masters. */
    t->deepspeed = kind == HR_AUDIT_DEEPSPEED || r->deepspeed_line || r->deepspeed_inside;
    if (t->deepspeed && half != HR_AUDIT_UNSET) t->weights = half, t->autocast = HR_AUDIT_UNSET;
    if (kind == HR_AUDIT_TRL && r->dtype == HR_AUDIT_UNSET && !r->four_bit && !r->eight_bit)
        hr_audit_find(r->report, 0,
                      "no dtype is given, so TRL loads the weights in fp32: %s; dtype: bfloat16 is "
                      "half of it",
                      hr_audit_size(4 * parameters, text));
    if (kind == HR_AUDIT_HF && r->dtype == HR_AUDIT_UNSET)
        hr_audit_find(r->report, 0,
                      "no dtype is given: transformers 5 loads the dtype of the file (%s), 4 loads "
                      "fp32: %s",
                      hr_audit_dtype_name(t->published), hr_audit_size(4 * parameters, text));
}

/* What DeepSpeed or FSDP keeps beside 16-bit weights. */
static void find_sharded(hr_reading *r)
{
    const hr_audit_training *t = &r->report->training;
    const int32_t bytes = (t->half_masters ? 2 : 4) + (t->half_states ? 4 : 8);
    const char *weights = hr_audit_dtype_name(t->weights);
    char text[HR_AUDIT_VALUE_BYTES];
    hr_audit_size(bytes * (double)t->parameters, text);
    if (t->deepspeed)
        hr_audit_find(r->report, 0,
                      "DeepSpeed keeps %s masters and %s moments beside %s weights: %d bytes a "
                      "parameter in states, %s over all processes",
                      t->half_masters ? "bf16" : "fp32", t->half_states ? "bf16" : "fp32", weights,
                      bytes, text);
    else
        hr_audit_find(r->report, 0,
                      "FSDP computes in %s and keeps what it trains in fp32: with the moments %d "
                      "bytes a parameter, %s over all processes",
                      weights, bytes, text);
}

static void find_states(hr_reading *r)
{
    hr_audit_training *t = &r->report->training;
    char text[HR_AUDIT_VALUE_BYTES];
    const double parameters = (double)t->parameters;
    const bool full = !t->lora_rank && !r->freeze, adam = t->optimizer == HR_AUDIT_ADAMW;
    if (full && t->autocast != HR_AUDIT_UNSET && t->weights == HR_AUDIT_FP32 && adam)
        hr_audit_find(
            r->report, r->bf16_line ? r->bf16_line : r->fp16_line,
            "%s: true is autocast: weights, gradients and the moments of AdamW stay fp32, "
            "16 bytes a parameter, %s",
            r->bf16 ? "bf16" : "fp16", hr_audit_size(16 * parameters, text));
    if (full && t->weights != HR_AUDIT_FP32 && r->report->kind != HR_AUDIT_DEEPSPEED &&
        (!t->zero_stage || r->report->kind == HR_AUDIT_TORCHTUNE))
        hr_audit_find(r->report, r->dtype_line,
                      "weights in %s without fp32 masters: updates below 1/256 of a weight are "
                      "lost%s",
                      hr_audit_dtype_name(t->weights),
                      adam ? ", and the moments of AdamW have the dtype of the weights" : "");
    if (full && t->autocast == HR_AUDIT_FP16 && t->weights == HR_AUDIT_FP16)
        hr_audit_find(r->report, r->fp16_line,
                      "fp16: true scales the loss and refuses gradients of weights in fp16: load "
                      "them in fp32");
    if (t->in_backward)
        hr_audit_find(r->report, 0,
                      "optimizer_in_bwd frees each gradient after its update: the estimate has "
                      "those of one layer");
    if (t->optimizer == HR_AUDIT_PAGED_ADAMW_8BIT)
        hr_audit_find(r->report, r->optimizer_line,
                      "paged states are in host memory, and not in the estimate of the device");
    if (t->zero_stage && full && t->weights != HR_AUDIT_FP32 &&
        r->report->kind != HR_AUDIT_TORCHTUNE)
        find_sharded(r);
}

/* ---- batch and length */

/* The stage of ZeRO that corresponds to FSDP: axolotl needs no key "fsdp" for version 2. */
static void set_fsdp(hr_reading *r)
{
    hr_audit_training *t = &r->report->training;
    if (r->fsdp && r->fsdp_two && !t->zero_stage && r->report->kind == HR_AUDIT_AXOLOTL)
        t->zero_stage = 3;
    /* The distributed recipes of torchtune shard with FSDP. */
    if (r->report->kind == HR_AUDIT_TORCHTUNE && t->world > 1) {
        t->zero_stage = 3;
        hr_audit_find(r->report, 0,
                      "on %lld processes the recipes of torchtune shard weights, gradients and "
                      "states; a recipe for a single device has no such form",
                      (long long)t->world);
    }
    if (t->zero_stage == 3 && r->fsdp_keeps && r->fsdp_two) t->zero_stage = 2;
}

/* Programs with a default of their own have a length; in a file of another, the texts decide. */
static void find_length(hr_reading *r)
{
    hr_audit_training *t = &r->report->training;
    static const char *const keys[] = { [HR_AUDIT_TRL] = "max_length",
                                        [HR_AUDIT_AXOLOTL] = "sequence_len",
                                        [HR_AUDIT_LLAMA_FACTORY] = "cutoff_len",
                                        [HR_AUDIT_MLX] = "max_seq_length",
                                        [HR_AUDIT_KINDS] = NULL };
    const hr_audit_kind kind = r->report->kind;
    const bool longest = r->length_null_line && kind == HR_AUDIT_TRL;
    if (r->length_line) return;
    if (keys[kind] && !longest)
        hr_audit_find(r->report, 0, "no %s is given: the default of %s is %lld tokens", keys[kind],
                      hr_audit_kind_text(kind), (long long)t->seq_len);
    else
        hr_audit_doubt(r->report, r->length_null_line,
                       "no length cuts a text, so the longest one decides: taken as %lld tokens; "
                       "--length N sets it",
                       (long long)t->seq_len);
}

/* A file of DeepSpeed leaves it to the program. Without it, what autograd saved of gathered weights
 * may live until the backward pass: their published run has 14 GB more. */
static void find_checkpointing(hr_reading *r)
{
    const hr_audit_training *t = &r->report->training;
    if (r->report->kind != HR_AUDIT_DEEPSPEED) return;
    if (!r->checkpointing_line)
        hr_audit_doubt(r->report, 0,
                       "the file does not say whether activations are checkpointed: taken as not; "
                       "--checkpointing on or off sets it");
    else if (!t->checkpointing && t->zero_stage == 3)
        hr_audit_doubt(r->report, 0,
                       "without checkpointing, weights that ZeRO stage 3 has gathered may stay "
                       "until the backward pass");
}

static void find_batch(hr_reading *r)
{
    hr_audit_training *t = &r->report->training;
    char text[HR_AUDIT_VALUE_BYTES];
    const hr_audit_kind kind = r->report->kind;
    if (!r->micro_line && kind != HR_AUDIT_DEEPSPEED)
        hr_audit_find(r->report, 0, "no batch size is given: the default of %s is %lld",
                      hr_audit_kind_text(kind), (long long)t->micro_batch);
    find_length(r);
    find_checkpointing(r);
    if (!r->checkpointing_line && t->checkpointing)
        hr_audit_find(r->report, 0, "activation checkpointing is on, the default of %s",
                      hr_audit_kind_text(kind));
    if (r->global_batch) {
        const int64_t rest = r->global_batch / hr_max(t->micro_batch * t->world, 1);
        const bool other = r->micro_given && r->accumulation_given && rest != t->accumulation;
        if (other || rest * t->micro_batch * t->world != r->global_batch)
            hr_audit_find(r->report, 0,
                          "train_batch_size %lld is not %lld sequence%s x %lld accumulation x %lld "
                          "processes",
                          (long long)r->global_batch, (long long)t->micro_batch,
                          t->micro_batch == 1 ? "" : "s", (long long)t->accumulation,
                          (long long)t->world);
        else t->accumulation = hr_max(rest, 1);
    }
    const int64_t rows = t->micro_batch * hr_audit_rows(t);
    if (t->preference && !t->single)
        hr_audit_find(
            r->report, 0, "a preference pair is two rows: %lld pair%s %lld sequences at a time%s",
            (long long)t->micro_batch, t->micro_batch == 1 ? " is" : "s are", (long long)rows,
            !t->reference  ? ""
            : t->lora_rank ? "; the reference is the base without its adapter, and takes no memory"
                           : "; the reference model is in memory too");
    const double logits = (double)rows * (double)t->seq_len *
                          (double)r->report->config->model.vocab_size * 4;
    if (r->report->kind == HR_AUDIT_TRL && !t->preference && !r->loss_line &&
        t->loss == HR_AUDIT_LOSS_WHOLE) {
        t->loss = HR_AUDIT_LOSS_CHUNKED;
        hr_audit_find(r->report, 0,
                      "no loss_type is given: current versions of TRL compute the loss in chunks, "
                      "older ones keep all logits of a micro-batch, %s in fp32",
                      hr_audit_size(logits, text));
    }
    if (t->loss < HR_AUDIT_LOSS_CHUNKED)
        hr_audit_find(r->report, 0,
                      "the logits of a micro-batch are %lld x %lld x %lld in fp32, %s, and their "
                      "gradient is as large",
                      (long long)rows, (long long)t->seq_len,
                      (long long)r->report->config->model.vocab_size, hr_audit_size(logits, text));
    hr_audit_find(r->report, 0,
                  "an update is %lld x %lld x %lld = %lld sequence%s (batch x "
                  "accumulation x processes)%s",
                  (long long)t->micro_batch, (long long)t->accumulation, (long long)t->world,
                  (long long)(t->micro_batch * t->accumulation * t->world),
                  t->micro_batch * t->accumulation * t->world == 1 ? "" : "s",
                  t->packing ? "; packing fills each of them to the full length" : "");
    if (t->zero_stage && t->world == 1 && !r->world_fixed)
        hr_audit_doubt(r->report, 0,
                       "ZeRO stage %lld divides states among processes, and the file does not say "
                       "how many there are: taken as 1; --processes N sets it",
                       (long long)t->zero_stage);
}

/* The loss of preference training reads the logits, so what fuses that of plain training leaves
 * them in memory.
 *
 * Source LLaMA-Factory, apply_liger_kernel(require_logits=stage not in ["pt", "sft"]); axolotl,
 * dpo_use_liger_kernel; TRL, whose DPO and KTO have fused losses of their own. */
static void set_loss(hr_reading *r)
{
    hr_audit_training *t = &r->report->training;
    const hr_audit_kind kind = r->report->kind;
    if (t->preference && r->no_reference) t->reference = false;
    if (!t->preference || (kind != HR_AUDIT_LLAMA_FACTORY && kind != HR_AUDIT_AXOLOTL)) return;
    if (r->fused_preference && t->reference && !r->kto) {
        t->loss = HR_AUDIT_LOSS_FUSED;
        return;
    }
    if (t->loss != HR_AUDIT_LOSS_WHOLE)
        hr_audit_find(r->report, r->loss_switch_line,
                      "%s fuses the loss of plain training only: preference training reads all "
                      "logits",
                      kind == HR_AUDIT_AXOLOTL ? "this key" : "enable_liger_kernel");
    t->loss = HR_AUDIT_LOSS_WHOLE;
}

/* What DeepSpeed does not move: nothing without ZeRO, and weights below stage 3. */
static void set_offload(hr_reading *r)
{
    hr_audit_training *t = &r->report->training;
    if (!t->deepspeed) return;
    if (!t->zero_stage && (t->offload_optimizer || t->offload_weights)) {
        hr_audit_find(r->report, 0, "without a stage of ZeRO nothing is moved to the host");
        t->offload_optimizer = t->offload_weights = false;
    }
    if (t->zero_stage < 3 && t->offload_weights) {
        hr_audit_find(r->report, 0,
                      "offload_param is for stage 3: at stage %lld the weights stay on the device",
                      (long long)t->zero_stage);
        t->offload_weights = false;
    }
}

/* ---- the optimizer */

static void set_optimizer(hr_reading *r)
{
    hr_audit_training *t = &r->report->training;
    const char *name = r->optimizer;
    hr_optimizer_kind ours = HR_OPTIMIZER_ADAMW;
    const bool eight = hr_audit_contains(name, "8bit"), paged = hr_audit_contains(name, "paged");
    static const char *const unknown[] = { "galore", "apollo",        "lomo",
                                           "muon",   "schedule_free", "dion",
                                           "4bit",   "stable",        "grokadamw" };
    const hr_audit_kind kind = r->report->kind;
    /* bitsandbytes has a kernel for each weight, and no temporaries. */
    t->fused_update = t->fused_update || hr_audit_contains(name, "fused") || paged || eight ||
                      hr_audit_contains(name, "bitsandbytes") || hr_audit_contains(name, "bnb") ||
                      (!*name && (kind == HR_AUDIT_TRL || kind == HR_AUDIT_HF ||
                                  kind == HR_AUDIT_LLAMA_FACTORY || kind == HR_AUDIT_AXOLOTL));
    if (!*name || !strcmp(name, "auto")) return;
    if (hr_audit_contains(name, "adafactor"))
        t->optimizer = HR_AUDIT_ADAFACTOR, ours = HR_OPTIMIZER_ADAFACTOR;
    else if (hr_audit_contains(name, "lion"))
        t->optimizer = HR_AUDIT_LION, ours = HR_OPTIMIZER_LION;
    else if (hr_audit_contains(name, "sgd")) t->optimizer = HR_AUDIT_SGD, ours = HR_OPTIMIZER_SGD;
    else if (eight && paged) t->optimizer = HR_AUDIT_PAGED_ADAMW_8BIT;
    else if (eight) t->optimizer = HR_AUDIT_ADAMW_8BIT;
    else if (!hr_audit_contains(name, "adam"))
        hr_audit_doubt(r->report, r->optimizer_line,
                       "the optimizer %.40s is not known: the estimate is for AdamW", name);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (hr_audit_contains(name, unknown[i]))
            hr_audit_doubt(r->report, r->optimizer_line,
                           "the states of %.40s are not modeled: the estimate is for AdamW", name);
    if (hr_audit_contains(name, "adam") && !hr_audit_contains(name, "adamw"))
        ours = HR_OPTIMIZER_ADAM;
    /* transformers' Trainer gives its Adafactor the learning rate of the file as it is. */
    if (ours == HR_OPTIMIZER_ADAFACTOR)
        r->report->config->train.optimizer.adafactor.scale_parameter =
            r->report->config->train.optimizer.adafactor.relative_step = false;
    if (eight)
        hr_audit_find(r->report, r->optimizer_line,
                      "the plan of headroom is for %s with fp32 states, not for %.40s; "
                      "train.state.moments=int8 stores them in 8 bits",
                      ours == HR_OPTIMIZER_LION ? "lion" : "adamw", name);
    r->report->config->train.optimizer.kind = ours;
}

static void set_schedule(hr_reading *r)
{
    hr_config *config = r->report->config;
    const char *name = r->schedule;
    config->train.schedule.kind = hr_audit_contains(name, "cosine")     ? HR_SCHEDULE_COSINE
                                  : hr_audit_contains(name, "constant") ? HR_SCHEDULE_CONSTANT
                                  : hr_audit_contains(name, "stable")   ? HR_SCHEDULE_WSD
                                                                        : HR_SCHEDULE_LINEAR;
    if (r->warmup >= 1) config->train.schedule.warmup_steps = (int64_t)r->warmup;
    else if (config->train.steps > 0)
        config->train.schedule.warmup_steps = (int64_t)(r->warmup_ratio *
                                                        (double)config->train.steps);
    if (config->train.steps && config->train.schedule.warmup_steps > config->train.steps)
        hr_audit_find(
            r->report, r->warmup_line, "the warm-up of %lld steps is longer than the run of %lld",
            (long long)config->train.schedule.warmup_steps, (long long)config->train.steps);
    if (config->train.steps)
        config->train.schedule.warmup_steps = hr_min(config->train.schedule.warmup_steps,
                                                     config->train.steps);
}

/* ---- the config of headroom */

static hr_status set_config(hr_reading *r)
{
    hr_audit_training *t = &r->report->training;
    hr_config *config = r->report->config;
    const bool half = t->weights != HR_AUDIT_FP32 || t->autocast != HR_AUDIT_UNSET;
    const bool fp16 = t->weights == HR_AUDIT_FP32 && t->autocast == HR_AUDIT_FP16;
    config->train.dtype = fp16 ? HR_FORMAT_FP16 : half ? HR_FORMAT_BF16 : HR_FORMAT_FP32;
    config->train.seq_len = t->seq_len;
    config->train.batch = t->micro_batch * t->accumulation * t->world * hr_audit_rows(t);
    snprintf(config->data.tokenizer, sizeof config->data.tokenizer, "words");
    if (config->model.positions && config->model.positions < config->train.seq_len &&
        config->model.family != HR_FAMILY_GPT2 && config->model.family != HR_FAMILY_OPT)
        config->model.positions = config->train.seq_len;
    if (t->autocast == HR_AUDIT_FP16 || t->weights == HR_AUDIT_FP16)
        hr_audit_find(r->report, r->fp16_line ? r->fp16_line : r->dtype_line,
                      "headroom trains in bf16 and not in fp16: its plan is for bf16");
    if (t->lora_rank)
        hr_audit_find(r->report, 0,
                      "the plan of headroom here trains all weights; with train.adapter.kind=lora "
                      "it trains adapters");
    if (t->preference)
        hr_audit_find(r->report, 0,
                      "headroom has no preference loss: its plan is for as many plain sequences");
    if (t->world > 1)
        hr_audit_find(r->report, 0,
                      "headroom trains in one process: its plan has the batch of all %lld",
                      (long long)t->world);
    return hr_config_check(config, r->err);
}

/* Three numbers of a DeepSpeed file fix the number of processes. */
static hr_status set_processes(hr_reading *r, const hr_audit_request *request)
{
    hr_audit_training *t = &r->report->training;
    int64_t update;
    if (request->world > 0) t->world = request->world;
    r->world_fixed = request->world > 0;
    if (r->report->kind != HR_AUDIT_DEEPSPEED || !r->global_batch || !r->micro_given ||
        !r->accumulation_given || !hr_checked_mul(t->micro_batch, t->accumulation, &update) ||
        r->global_batch % update)
        return HR_OK;
    const int64_t world = r->global_batch / update;
    if (request->world > 0 && request->world != world)
        return hr_fail(r->err, HR_USAGE,
                       "%s: train_batch_size %lld is %lld sequences x %lld accumulation x %lld "
                       "processes, so --processes %lld contradicts it",
                       r->path, (long long)r->global_batch, (long long)t->micro_batch,
                       (long long)t->accumulation, (long long)world, (long long)request->world);
    if (request->world <= 0)
        hr_audit_find(r->report, 0,
                      "train_batch_size %lld / (%lld sequences x %lld accumulation) = %lld "
                      "process%s",
                      (long long)r->global_batch, (long long)t->micro_batch,
                      (long long)t->accumulation, (long long)world, world == 1 ? "" : "es");
    r->world_fixed = true;
    return t->world = world, HR_OK;
}

hr_status hr_reading_finish(hr_reading *r, const hr_audit_request *request)
{
    hr_audit_training *t = &r->report->training;
    hr_status status = read_model(r, request);
    if (status != HR_OK) return status;
    if (request->seq_len > 0) t->seq_len = r->length_line = request->seq_len;
    if (request->checkpointing) {
        t->checkpointing = !strcmp(request->checkpointing, "on");
        r->checkpointing_line = 1;
    }
    status = set_processes(r, request);
    if (status != HR_OK) return status;
    int64_t tokens = 2; /* rows of a preference pair */
    if (!hr_checked_mul(tokens, t->micro_batch, &tokens) ||
        !hr_checked_mul(tokens, t->accumulation, &tokens) ||
        !hr_checked_mul(tokens, t->world, &tokens) || !hr_checked_mul(tokens, t->seq_len, &tokens))
        return hr_fail(r->err, HR_USAGE,
                       "%s: %lld sequences x %lld accumulation x %lld processes x %lld tokens are "
                       "too many",
                       r->path, (long long)t->micro_batch, (long long)t->accumulation,
                       (long long)t->world, (long long)t->seq_len);
    t->parameters = hr_model_count(r->report->config);
    set_fsdp(r);
    set_optimizer(r);
    set_dtypes(r);
    set_offload(r);
    set_loss(r);
    status = hr_adapter_set(r);
    if (status != HR_OK) return status;
    find_states(r);
    find_batch(r);
    set_schedule(r);
    hr_autos_find(r);
    return set_config(r);
}
