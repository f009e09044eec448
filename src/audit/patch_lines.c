/* SPDX-License-Identifier: Apache-2.0 */
/* audit/patch_lines.c - the lines of a change in the file of each program. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "audit/patches.h"

enum { OF_FULL = HR_CHANGES }; /* adapters over 4 bits for a file that trains all weights */

/* Sets of programs. */
#define OF(kind) (1U << HR_AUDIT_##kind)
#define TRAINERS (OF(HF) | OF(TRL) | OF(LLAMA_FACTORY)) /* with the keys of TrainingArguments */

typedef struct {
    uint32_t kinds;
    int32_t which;     /* a change; half of the length stands for a quarter too */
    const char *lines; /* %lld: the number of the change */
} row;

#define TRL_ADAPTER \
    "use_peft: true\nlora_r: 16\nlora_alpha: 32\nlora_target_modules: all-linear\n" \
    "dtype: bfloat16"
#define FACTORY_ADAPTER "finetuning_type: lora\nlora_rank: 16\nlora_target: all"

static const row rows[] = {
    { TRAINERS | OF(AXOLOTL), HR_CHANGE_FORMAT, "bf16: false\nfp16: true" },
    { OF(TORCHTUNE), HR_CHANGE_FORMAT, "dtype: fp32" },

    { TRAINERS, HR_CHANGE_FUSED, "optim: adamw_torch_fused" },
    { OF(AXOLOTL), HR_CHANGE_FUSED, "optimizer: adamw_torch_fused" },
    { OF(TORCHTUNE), HR_CHANGE_FUSED, "optimizer:\n  fused: True" },

    { OF(HF), HR_CHANGE_LOSS, "use_liger_kernel: true" },
    { OF(LLAMA_FACTORY), HR_CHANGE_LOSS, "enable_liger_kernel: true" },

    { TRAINERS, HR_CHANGE_MICRO,
      "per_device_train_batch_size: 1\ngradient_accumulation_steps: %lld" },
    { OF(AXOLOTL), HR_CHANGE_MICRO, "micro_batch_size: 1\ngradient_accumulation_steps: %lld" },
    { OF(TORCHTUNE), HR_CHANGE_MICRO, "batch_size: 1\ngradient_accumulation_steps: %lld" },
    { OF(MLX), HR_CHANGE_MICRO, "batch_size: 1\ngrad_accumulation_steps: %lld" },
    { OF(DEEPSPEED), HR_CHANGE_MICRO,
      "train_micro_batch_size_per_gpu: 1\ngradient_accumulation_steps: %lld" },

    { OF(HF) | OF(TRL) | OF(AXOLOTL), HR_CHANGE_CHECKPOINTING, "gradient_checkpointing: true" },
    { OF(LLAMA_FACTORY), HR_CHANGE_CHECKPOINTING, "disable_gradient_checkpointing: false" },
    { OF(TORCHTUNE), HR_CHANGE_CHECKPOINTING, "enable_activation_checkpointing: True" },
    { OF(MLX), HR_CHANGE_CHECKPOINTING, "grad_checkpoint: true" },

    { TRAINERS, HR_CHANGE_EIGHT_BIT, "optim: paged_adamw_8bit" },
    { OF(AXOLOTL), HR_CHANGE_EIGHT_BIT, "optimizer: paged_adamw_8bit" },
    { OF(TORCHTUNE), HR_CHANGE_EIGHT_BIT,
      "optimizer:\n  _component_: bitsandbytes.optim.PagedAdamW8bit" },

    { OF(TRL), HR_CHANGE_BF16, "dtype: bfloat16" },
    { OF(AXOLOTL), HR_CHANGE_BF16, "bf16: true" },
    { OF(LLAMA_FACTORY), HR_CHANGE_BF16, "pure_bf16: true" },
    { OF(TORCHTUNE), HR_CHANGE_BF16, "dtype: bf16" },

    { OF(TRL), HR_CHANGE_LORA, TRL_ADAPTER },
    { OF(AXOLOTL), HR_CHANGE_LORA,
      "adapter: lora\nlora_r: 16\nlora_alpha: 32\nlora_target_linear: true" },
    { OF(LLAMA_FACTORY), HR_CHANGE_LORA, FACTORY_ADAPTER },
    { OF(MLX), HR_CHANGE_LORA,
      "fine_tune_type: lora\nlora_parameters:\n  rank: 16\n  scale: 20.0\n  dropout: 0.0" },

    { OF(TRL), HR_CHANGE_QLORA, "load_in_4bit: true" },
    { OF(AXOLOTL), HR_CHANGE_QLORA, "adapter: qlora\nload_in_4bit: true\nload_in_8bit: false" },
    { OF(LLAMA_FACTORY), HR_CHANGE_QLORA, "quantization_bit: 4" },
    { OF(TRL), OF_FULL, TRL_ADAPTER "\nload_in_4bit: true" },
    { OF(AXOLOTL), OF_FULL,
      "adapter: qlora\nlora_r: 16\nlora_alpha: 32\nlora_target_linear: true\n"
      "load_in_4bit: true" },
    { OF(LLAMA_FACTORY), OF_FULL, FACTORY_ADAPTER "\nquantization_bit: 4" },

    { OF(TRL), HR_CHANGE_HALF_LENGTH, "max_length: %lld" },
    { OF(AXOLOTL), HR_CHANGE_HALF_LENGTH, "sequence_len: %lld" },
    { OF(LLAMA_FACTORY), HR_CHANGE_HALF_LENGTH, "cutoff_len: %lld" },
    { OF(TORCHTUNE), HR_CHANGE_HALF_LENGTH, "tokenizer:\n  max_seq_len: %lld" },
    { OF(MLX), HR_CHANGE_HALF_LENGTH, "max_seq_length: %lld" },
};
enum { ROWS = sizeof rows / sizeof *rows };

static const char *row_of(hr_audit_kind kind, int32_t which)
{
    if (which == HR_CHANGE_QUARTER_LENGTH) which = HR_CHANGE_HALF_LENGTH;
    for (int32_t i = 0; i < ROWS; i++)
        if (rows[i].kinds >> kind & 1 && rows[i].which == which) return rows[i].lines;
    return NULL;
}

/* ---- keys of the file */

static bool is_true(const hr_audit_report *report, const char *key)
{
    const char *value = hr_audit_value(report, key);
    return value && !strcasecmp(value, "true");
}

/* The value of a key of the DeepSpeed file beside the file, whose keys have its name in front;
 * null: there is none. */
static const char *beside_of(const hr_audit_report *report, const char *key)
{
    for (int32_t i = 0; i < report->key_count; i++) {
        const char *colon = strstr(report->keys[i].key, ": ");
        if (colon && !strcmp(colon + 2, key)) return report->keys[i].value;
    }
    return NULL;
}

/* Whether the DeepSpeed file beside the file has a number for a key, which wins. */
static bool fixes(const hr_audit_report *report, const char *key)
{
    const char *value = beside_of(report, key);
    return value && strcmp(value, "auto") != 0;
}

/* AdamW of PyTorch, which has a fused form with the same results. */
static bool has_fused_form(const hr_audit_report *report)
{
    static const char *const keys[] = { "optim", "optimizer", "optimizer._component_" };
    static const char *const names[] = { "adamw_torch", "torch.optim.AdamW", "torch.optim.Adam" };
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
        const char *value = hr_audit_value(report, keys[k]);
        for (size_t i = 0; value && i < sizeof names / sizeof *names; i++)
            if (!strcmp(value, names[i])) return true;
    }
    return false;
}

/* Whether a DeepSpeed file says bf16 itself, so that no key of the trainer's file changes it. */
static bool fixes_bf16(const hr_audit_report *report)
{
    const char *path = hr_audit_value(report, "deepspeed");
    return fixes(report, "bf16.enabled") || (path && strstr(path, "bf16"));
}

/* ---- lines */

/* Adds a line; a text that is too long stays without its end, and hr_patch_lines refuses it. */
static void add(char to[HR_AUDIT_PATCH_BYTES], const char *line, size_t length)
{
    const size_t used = strlen(to);
    snprintf(to + used, HR_AUDIT_PATCH_BYTES - used, "%s%.*s", used ? "\n" : "", (int)length, line);
}

static void add_line(char to[HR_AUDIT_PATCH_BYTES], const char *line)
{
    add(to, line, strlen(line));
}

/* Switches off the other losses that the file has: axolotl refuses two together. */
static void add_one_loss(const hr_audit_report *report, const char *loss,
                         char to[HR_AUDIT_PATCH_BYTES])
{
    static const char *const losses[] = { "cut_cross_entropy", "liger_cross_entropy",
                                          "liger_fused_linear_cross_entropy",
                                          "chunked_cross_entropy" };
    char line[96];
    snprintf(line, sizeof line, "%s: true", loss);
    add_line(to, line);
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        if (!strcmp(losses[i], loss) || !is_true(report, losses[i])) continue;
        snprintf(line, sizeof line, "%s: false", losses[i]);
        add_line(to, line);
    }
}

/* The list of plugins of axolotl with the one that computes the loss without logits. */
static void add_plugins(const hr_audit_report *report, char to[HR_AUDIT_PATCH_BYTES])
{
    static const char liger[] = "axolotl.integrations.liger.LigerPlugin";
    char list[HR_AUDIT_PATCH_BYTES] = "plugins: [";
    bool has_liger = false;
    for (int32_t i = 0; i < report->key_count; i++) {
        const hr_audit_key *key = &report->keys[i];
        const size_t used = strlen(list);
        if (strncmp(key->key, "plugins[", 8) != 0) continue;
        if (strstr(key->value, "CutCrossEntropyPlugin")) {
            add_one_loss(report, "cut_cross_entropy", to);
            return;
        }
        has_liger |= !strcmp(key->value, liger);
        snprintf(list + used, sizeof list - used, "%s, ", key->value);
    }
    const size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s]", liger);
    if (!has_liger) add_line(to, list);
    add_one_loss(report, "liger_fused_linear_cross_entropy", to);
}

/* The dtype of the weights, under the name that the file has for it. */
static void add_dtype(const hr_audit_report *report, hr_audit_dtype dtype,
                      char to[HR_AUDIT_PATCH_BYTES])
{
    static const char *const keys[] = { "torch_dtype", "model_init_kwargs.torch_dtype",
                                        "model_init_kwargs.dtype" };
    static const char *const forms[] = { "torch_dtype: %s", "model_init_kwargs:\n  torch_dtype: %s",
                                         "model_init_kwargs:\n  dtype: %s", "dtype: %s" };
    enum { KEYS = sizeof keys / sizeof *keys };
    const char *name = dtype == HR_AUDIT_FP32   ? "float32"
                       : dtype == HR_AUDIT_FP16 ? "float16"
                                                : "bfloat16";
    char text[96];
    size_t k = 0;
    while (k < KEYS && !hr_audit_value(report, keys[k])) k++;
    const char *form = forms[k], *place = strstr(form, "%s");
    snprintf(text, sizeof text, "%.*s%s", (int)(place - form), form, name);
    add_line(to, text);
}

/* The names that the file has for a key: a second one would be refused, or be without effect. */
static void add_spelled(const hr_audit_report *report, const char *line, size_t length,
                        char to[HR_AUDIT_PATCH_BYTES])
{
    static const char dtype[] = "dtype: bfloat16", limit[] = "max_length";
    const bool is_dtype = length == strlen(dtype) && !strncmp(line, dtype, length);
    if (is_dtype) add_dtype(report, hr_adapter_half(&report->training), to);
    else if (!strncmp(line, limit, strlen(limit)) && hr_audit_value(report, "max_seq_length")) {
        char text[HR_AUDIT_PATCH_BYTES];
        snprintf(text, sizeof text, "max_seq_length%.*s", (int)(length - strlen(limit)),
                 line + strlen(limit));
        add_line(to, text);
    } else add(to, line, length);
}

/* The dtype of the weights beside fp16, where they have bf16: fp32 where they are trained. */
static void add_format(const hr_audit_report *report, char to[HR_AUDIT_PATCH_BYTES])
{
    const hr_audit_training *t = &report->training;
    const bool full = !t->lora_rank, named = t->weights != HR_AUDIT_FP32 && !t->deepspeed;
    if (report->kind == HR_AUDIT_AXOLOTL && full && !t->deepspeed)
        snprintf(to, HR_AUDIT_PATCH_BYTES, "bf16: false\nfp16: false");
    if ((report->kind == HR_AUDIT_TRL || report->kind == HR_AUDIT_HF) && named)
        add_dtype(report, full ? HR_AUDIT_FP32 : HR_AUDIT_FP16, to);
    if (is_true(report, "pure_bf16")) add_line(to, "pure_bf16: false");
}

/* Whether keys of the file can ask for fp16 in the place of bf16. */
static bool has_format(const hr_audit_report *report)
{
    const hr_audit_training *t = &report->training;
    const bool trl = report->kind == HR_AUDIT_TRL, hf = report->kind == HR_AUDIT_HF;
    if (t->deepspeed && t->autocast == HR_AUDIT_UNSET && fixes_bf16(report)) return false;
    /* TRL casts these adapters to bf16. */
    if (trl && t->lora_rank && t->adapters == HR_AUDIT_BF16) return false;
    /* The dtype is in the code that loads the model. */
    return !(hf && t->weights != HR_AUDIT_FP32 && !t->deepspeed &&
             !hr_audit_value(report, "model_name_or_path"));
}

/* Keys of the file that a change must set as well. */
static void add_others(const hr_audit_report *report, hr_change which,
                       char to[HR_AUDIT_PATCH_BYTES])
{
    const hr_audit_training *t = &report->training;
    const bool adapter = which == HR_CHANGE_LORA || which == HR_CHANGE_QLORA;
    if (which == HR_CHANGE_FORMAT) {
        add_format(report, to);
        return;
    }
    switch (report->kind) {
    case HR_AUDIT_TRL:
        if (which == HR_CHANGE_QLORA && is_true(report, "load_in_8bit"))
            add_line(to, "load_in_8bit: false");
        break;
    case HR_AUDIT_AXOLOTL:
        if (adapter && t->lacks_bf16) add_line(to, "bf16: false\nfp16: true");
        else if (adapter && t->weights == HR_AUDIT_FP32) add_line(to, "bf16: true");
        break;
    case HR_AUDIT_LLAMA_FACTORY:
        /* Refused together. */
        if (which == HR_CHANGE_BF16 && is_true(report, "bf16")) add_line(to, "bf16: false");
        if (which == HR_CHANGE_BF16 && is_true(report, "fp16")) add_line(to, "fp16: false");
        break;
    case HR_AUDIT_TORCHTUNE:
        if (which == HR_CHANGE_EIGHT_BIT && hr_audit_value(report, "optimizer.fused"))
            add_line(to, "  # remove fused");
        break;
    default: break;
    }
}

/* The loss of preference training without logits: TRL has one for DPO and KTO, which axolotl
 * uses for DPO, and LLaMA-Factory none.
 *
 * Source TRL, DPOTrainer and KTOTrainer with use_liger_kernel, which refuse an adapter on the
 * head and log-probabilities of the reference in advance; liger_kernel, LigerFusedLinearDPOLoss. */
static const char *preference_loss(const hr_audit_report *report)
{
    static const char *const known[] = { "sigmoid", "apo_zero", "apo_down", "sppo_hard",
                                         "nca_pair" };
    const hr_audit_training *t = &report->training;
    const bool axolotl = report->kind == HR_AUDIT_AXOLOTL;
    const char *loss = hr_audit_value(report, axolotl ? "dpo_loss_type" : "loss_type");
    bool takes = !loss;
    for (size_t i = 0; loss && i < sizeof known / sizeof *known; i++)
        takes |= !strcmp(loss, known[i]);
    if (!takes || !t->reference || is_true(report, "precompute_ref_log_probs") ||
        strstr(t->lora_targets, "lm_head"))
        return NULL;
    if (report->kind == HR_AUDIT_TRL) return "use_liger_kernel: true";
    const char *stage = axolotl ? hr_audit_value(report, "rl") : NULL;
    return stage && !strcasecmp(stage, "dpo") ? "dpo_use_liger_kernel: true" : NULL;
}

/* The lines of a change; null: none, or not beside other keys of the file. */
static const char *form_of(const hr_audit_report *report, hr_change which)
{
    const hr_audit_training *t = &report->training;
    const hr_audit_kind kind = report->kind;
    if (which == HR_CHANGE_FUSED && !has_fused_form(report)) return NULL;
    if (which == HR_CHANGE_FORMAT && !has_format(report)) return NULL;
    if (which == HR_CHANGE_LOSS && t->preference) return preference_loss(report);
    if (which == HR_CHANGE_LOSS && kind == HR_AUDIT_TRL) {
        const char *loss = hr_audit_value(report, "loss_type");
        return !loss || !strcmp(loss, "nll") ? "loss_type: chunked_nll" : NULL;
    }
    /* torchtune refuses accumulation with an update in the backward pass. */
    if (which == HR_CHANGE_MICRO && kind == HR_AUDIT_TORCHTUNE && t->in_backward) return NULL;
    if (which == HR_CHANGE_MICRO && (fixes(report, "train_micro_batch_size_per_gpu") ||
                                     fixes(report, "gradient_accumulation_steps")))
        return NULL;
    return row_of(kind, which == HR_CHANGE_QLORA && !t->lora_rank ? OF_FULL : (int32_t)which);
}

static int64_t number_of(const hr_audit_training *t, hr_change which)
{
    return which == HR_CHANGE_HALF_LENGTH      ? t->seq_len / 2
           : which == HR_CHANGE_QUARTER_LENGTH ? t->seq_len / 4
                                               : t->accumulation * t->micro_batch;
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

/* ---- all */

bool hr_patch_lines(const hr_audit_report *report, hr_change which, char to[HR_AUDIT_PATCH_BYTES])
{
    char text[HR_AUDIT_PATCH_BYTES] = "", form[HR_AUDIT_PATCH_BYTES];
    if (hr_patch_is_offload(which)) return hr_patch_offload(report, which, to);
    if (which == HR_CHANGE_FORMAT && report->kind == HR_AUDIT_DEEPSPEED)
        return hr_patch_format_sections(report, to);
    if (which == HR_CHANGE_LOSS && report->kind == HR_AUDIT_AXOLOTL && !report->training.preference)
        add_plugins(report, text);
    else {
        const char *lines = form_of(report, which), *place = lines ? strstr(lines, "%lld") : NULL;
        if (!lines) return false;
        if (place)
            snprintf(form, sizeof form, "%.*s%" PRId64 "%s", (int)(place - lines), lines,
                     number_of(&report->training, which), place + 4);
        else snprintf(form, sizeof form, "%s", lines);
        for (const char *at = form; *at; at += strspn(at, "\n")) {
            const size_t length = strcspn(at, "\n");
            add_spelled(report, at, length, text);
            at += length;
        }
        add_others(report, which, text);
    }
    if (strlen(text) + 1 == sizeof text) return false;
    if (!report->is_json) return memcpy(to, text, sizeof text), true;
    if (strstr(text, ":\n")) return false;
    *to = 0;
    for (const char *at = text; *at;) {
        const size_t length = strcspn(at, "\n"), used = strlen(to);
        const bool last = !at[length];
        put_json_line(at, length, last, to + used, HR_AUDIT_PATCH_BYTES - used);
        at += length + !last;
    }
    return true;
}
