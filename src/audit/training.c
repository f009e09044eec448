/* SPDX-License-Identifier: Apache-2.0 */
/* audit/training.c - walks through the entries of a training file and gives each its state. */
#include "audit/training.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/words.h"
#include "config/config.h"

const hr_foreign *hr_foreign_of(hr_audit_kind kind)
{
    switch (kind) {
    case HR_AUDIT_HF: return &hr_foreign_hf;
    case HR_AUDIT_TRL: return &hr_foreign_trl;
    case HR_AUDIT_AXOLOTL: return &hr_foreign_axolotl;
    case HR_AUDIT_LLAMA_FACTORY: return &hr_foreign_llama_factory;
    case HR_AUDIT_TORCHTUNE: return &hr_foreign_torchtune;
    case HR_AUDIT_DEEPSPEED: return &hr_foreign_deepspeed;
    case HR_AUDIT_MLX: return &hr_foreign_mlx;
    default: return NULL;
    }
}

static bool matches(const char *name, size_t length, const char *key)
{
    const char *star = memchr(name, '*', length);
    const size_t begin = star ? (size_t)(star - name) : length, bytes = strlen(key);
    const size_t end = star ? length - begin - 1 : 0;
    return (star ? bytes >= begin + end : bytes == length) && !memcmp(key, name, begin) &&
           !memcmp(key + bytes - end, name + length - end, end);
}

static bool has_name(const char *names, const char *key)
{
    for (const char *at = names; *at; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        if (matches(at, length, key)) return true;
        at += length;
    }
    return false;
}

static const hr_foreign_keys *find(const hr_foreign *foreign, const char *key)
{
    for (int32_t t = 0; t < HR_FOREIGN_TABLES && foreign->tables[t]; t++)
        for (const hr_foreign_keys *row = foreign->tables[t]; row->names; row++)
            if (has_name(row->names, key)) return row;
    return NULL;
}

/* Notes a key that is known and differs in a letter or two: likely a slip. */
static void find_near(const hr_foreign *foreign, const char *key, hr_audit_key *to)
{
    enum { LETTERS_LEAST = 5 };
    if (strlen(key) < LETTERS_LEAST || strlen(key) > HR_WORD_LETTERS_MAX) return;
    for (int32_t t = 0; t < HR_FOREIGN_TABLES && foreign->tables[t]; t++)
        for (const hr_foreign_keys *row = foreign->tables[t]; row->names; row++) {
            hr_words words = { .at = row->names };
            while (row->meaning != HR_MEANS_NOTHING && hr_words_next(&words)) {
                if (hr_word_distance(key, words.text) > 2) continue;
                snprintf(to->near, sizeof to->near, "%.47s", words.text);
                return;
            }
        }
}

static void record(hr_reading *r, const hr_foreign *foreign, const hr_entry *entry,
                   const char *prefix, const hr_foreign_keys *row)
{
    hr_audit_report *report = r->report;
    report->doubt_count += !row && !entry->is_null;
    if (report->key_count == HR_AUDIT_KEYS_MOST) {
        report->keys_left_out++;
        return;
    }
    hr_audit_key *to = &report->keys[report->key_count++];
    to->line = *prefix ? 0 : entry->line;
    /* A key without a value is not set. */
    to->state = !row && entry->is_null             ? HR_AUDIT_NO_EFFECT
                : !row                             ? HR_AUDIT_UNREAD
                : row->meaning == HR_MEANS_NOTHING ? HR_AUDIT_NO_EFFECT
                                                   : HR_AUDIT_READ;
    snprintf(to->key, sizeof to->key, "%s%.80s", prefix, entry->key);
    const bool cut = strlen(entry->value) >= sizeof to->value;
    snprintf(to->value, sizeof to->value, cut ? "%.60s..." : "%s", entry->value);
    const char *ours = row ? hr_meaning_key(row->meaning) : NULL;
    snprintf(to->ours, sizeof to->ours, "%s", ours ? ours : "");
    *to->near = 0;
    if (to->state == HR_AUDIT_UNREAD) find_near(foreign, entry->key, to);
}

/* Reads all entries with a table. `prefix` is the name of another file, for the report. */
static hr_status take_all(hr_reading *r, const hr_entries *entries, const hr_foreign *foreign,
                          const char *prefix)
{
    static const char inside[] = "deepspeed.";
    r->elsewhere = *prefix != 0;
    for (int32_t i = 0; i < entries->count; i++) {
        hr_entry entry = entries->list[i];
        const hr_foreign_keys *row = find(foreign, entry.key);
        /* Settings of DeepSpeed inside of another file. */
        const bool nested = row && row->meaning == HR_MEANS_DEEPSPEED &&
                            !strncmp(entry.key, inside, sizeof inside - 1);
        if (nested) {
            entry.key += sizeof inside - 1;
            row = find(&hr_foreign_deepspeed, entry.key);
        }
        r->deepspeed_inside |= nested;
        record(r, nested ? &hr_foreign_deepspeed : foreign, &entry, nested ? inside : prefix, row);
        if (row && row->meaning == HR_MEANS_LENGTH && entry.is_null)
            r->length_null_line = entry.line;
        if (!row || row->meaning == HR_MEANS_NOTHING || entry.is_null) continue;
        const hr_status status = hr_reading_take(r, &entry, row->meaning);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

/* The stage in a name such as "zero2.json", "ds_z3_offload_config.json" or "stage-1.json"; 0: none
 * is in it. */
static int64_t stage_in(const char *name)
{
    static const char *const words[] = { "zero", "stage", "z", "ds" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (const char *at = strstr(name, words[i]); at; at = strstr(at + 1, words[i])) {
            const char *digit = at + strlen(words[i]);
            digit += strspn(digit, "-_ ");
            if (*digit >= '1' && *digit <= '3') return *digit - '0';
        }
    return 0;
}

/* What the name of a DeepSpeed file that is not here says. */
static void take_file_name(hr_reading *r)
{
    hr_audit_training *t = &r->report->training;
    const char *last = strrchr(r->deepspeed, '/'), *name = last ? last + 1 : r->deepspeed;
    const int64_t stage = stage_in(name);
    const bool offloads = strstr(name, "offload") != NULL;
    /* The files that LLaMA-Factory and axolotl come with: ds_z3_offload_config.json,
     * zero3_bf16_cpuoffload_all.json, zero3_bf16_cpuoffload_params.json. */
    const bool all = strstr(name, "ds_z3_offload") || strstr(name, "offload_all");
    const bool params = offloads && strstr(name, "param");
    t->zero_stage = stage ? stage : 1;
    t->offload_optimizer = offloads && !strstr(name, "offload_params");
    t->offload_weights = params || all;
    hr_audit_find(r->report, r->deepspeed_line,
                  stage ? "%.100s is not here; by its name it is ZeRO stage %d%s"
                        : "%.100s is not here, and its name has no stage: taken as ZeRO stage %d%s",
                  r->deepspeed, (int)t->zero_stage,
                  t->offload_weights && t->offload_optimizer
                      ? ", with states and weights in host memory"
                  : t->offload_weights   ? ", with weights in host memory"
                  : t->offload_optimizer ? ", with states in host memory"
                                         : "");
}

/* Reads the DeepSpeed file that a training file names, if it is there. */
static hr_status take_deepspeed(hr_reading *r, hr_region *region)
{
    char folder[HR_PATH_BYTES], path[2 * HR_PATH_BYTES], *text;
    hr_entries entries;
    int64_t bytes;
    int file;
    if (!*r->deepspeed) return HR_OK;
    hr_audit_folder(r->path, folder);
    const bool rooted = *r->deepspeed == '/' || !*folder;
    snprintf(path, sizeof path, "%s%s%s", rooted ? "" : folder, rooted ? "" : "/", r->deepspeed);
    /* Trainers read it from the folder that they are started in. */
    if (!hr_file_exists(path)) snprintf(path, sizeof path, "%s", r->deepspeed);
    if (!hr_file_exists(path)) return take_file_name(r), HR_OK;
    hr_status status = hr_file_open(path, &file, &bytes, r->err);
    if (status != HR_OK) return status;
    text = bytes <= HR_AUDIT_FILE_BYTES ? hr_region_take(region, 1, bytes + 1) : NULL;
    status = text ? hr_file_read(file, path, 0, text, bytes, r->err)
                  : hr_fail(r->err, HR_USAGE, "%s is too long for a DeepSpeed file", path);
    hr_file_close(&file);
    if (status == HR_OK) status = hr_entries_read_json(path, text, bytes, region, &entries, r->err);
    if (status != HR_OK) return status;
    const char *name = strrchr(path, '/');
    char prefix[48];
    snprintf(prefix, sizeof prefix, "%.40s: ", name ? name + 1 : path);
    return take_all(r, &entries, &hr_foreign_deepspeed, prefix);
}

/* A file of the same program that trains nothing: null if it may train. */
static const char *other_purpose(hr_audit_kind kind, const hr_entries *entries)
{
    if (kind == HR_AUDIT_LLAMA_FACTORY) {
        if (hr_entries_has(entries, "export_dir")) return "merges and exports a model";
        if (hr_entries_has(entries, "infer_backend")) return "runs a model";
        const hr_entry *train = hr_entries_find(entries, "do_train");
        if (hr_entries_has(entries, "do_predict") && (!train || strcmp(train->value, "true") != 0))
            return "evaluates a model";
    }
    if (kind != HR_AUDIT_TORCHTUNE || hr_entries_has(entries, "optimizer")) return NULL;
    return hr_entries_has(entries, "tasks")            ? "evaluates a model"
           : hr_entries_has(entries, "max_new_tokens") ? "generates text"
           : hr_entries_has(entries, "quantizer")      ? "quantizes a model"
                                                       : NULL;
}

static hr_status check_trains(const char *path, hr_audit_kind kind, const hr_entries *entries,
                              hr_error *err)
{
    const char *purpose = other_purpose(kind, entries);
    if (!purpose) return HR_OK;
    return hr_fail(err, HR_USAGE,
                   "%s %s with %s and trains nothing: there is no training step to "
                   "audit",
                   path, purpose, hr_audit_kind_text(kind));
}

/* The defaults of 4 bits: axolotl and LLaMA-Factory ask bitsandbytes for scales in 8 bits,
 * torchtune always has them, and TRL does so with use_bnb_nested_quant. */
static bool has_double_quant(hr_audit_kind kind)
{
    return kind == HR_AUDIT_AXOLOTL || kind == HR_AUDIT_LLAMA_FACTORY || kind == HR_AUDIT_TORCHTUNE;
}

hr_status hr_audit_training_file(const char *path, hr_audit_kind kind,
                                 const hr_audit_request *request, hr_entries *entries,
                                 hr_audit_report *report, hr_error *err)
{
    hr_reading r = { .path = path, .report = report, .err = err, .dtype = HR_AUDIT_UNSET };
    hr_audit_training *t = &report->training;
    const hr_foreign *foreign = hr_foreign_of(kind);
    hr_status status = check_trains(path, kind, entries, err);
    if (status != HR_OK) return status;
    *t = (hr_audit_training){ .micro_batch = foreign->micro_batch,
                              .seq_len = foreign->seq_len,
                              .accumulation = 1,
                              .world = 1,
                              .published = HR_AUDIT_BF16,
                              .weights = HR_AUDIT_FP32,
                              .autocast = HR_AUDIT_UNSET,
                              .base = HR_AUDIT_UNSET,
                              .adapters = HR_AUDIT_FP32,
                              .double_quant = has_double_quant(kind),
                              .lacks_bf16 = request->lacks_bf16,
                              .frozen = HR_AUDIT_UNSET,
                              .checkpointing = foreign->checkpointing };
    report->config->train.optimizer.weight_decay = 0; /* SGD takes a temporary for it */
    status = take_all(&r, entries, foreign, "");
    if (status == HR_OK) status = take_deepspeed(&r, entries->region);
    return status == HR_OK ? hr_reading_finish(&r, request) : status;
}

/* ---- the kind */

static bool has(const hr_entries *entries, const char *key)
{
    return hr_entries_has(entries, key);
}

static bool has_component(const hr_entries *entries)
{
    for (int32_t i = 0; i < entries->count; i++)
        if (strstr(entries->list[i].key, "_component_")) return true;
    return false;
}

static bool has_our_key(const hr_entries *entries)
{
    for (int32_t i = 0; i < entries->count; i++)
        if (strchr(entries->list[i].key, '.') && hr_config_name(entries->list[i].key)) return true;
    return false;
}

hr_audit_kind hr_training_kind(const hr_entries *entries, bool is_json)
{
    /* Keys that no script of transformers has. */
    static const char trl[] =
        "max_length max_seq_length packing loss_type use_peft lora_r lora_target_modules "
        "dataset_text_field completion_only_loss assistant_only_loss beta max_prompt_length "
        "max_completion_length precompute_ref_log_probs num_generations reward_model_path "
        "teacher_model_name_or_path model_init_kwargs.dtype model_init_kwargs.torch_dtype";
    if (has(entries, "zero_optimization") || has(entries, "train_micro_batch_size_per_gpu"))
        return HR_AUDIT_DEEPSPEED;
    if (has_component(entries)) return HR_AUDIT_TORCHTUNE;
    if (has(entries, "base_model")) return HR_AUDIT_AXOLOTL;
    if (has(entries, "finetuning_type") || has(entries, "cutoff_len") ||
        (has(entries, "template") && (has(entries, "model_name_or_path") || has(entries, "model"))))
        return HR_AUDIT_LLAMA_FACTORY;
    if (has(entries, "fine_tune_type") || has(entries, "lora_parameters") ||
        (hr_entries_find(entries, "model") && has(entries, "iters")))
        return HR_AUDIT_MLX;
    if (has_our_key(entries)) return HR_AUDIT_RECIPE;
    for (hr_words w = { trl }; hr_words_next(&w);)
        if (has(entries, w.text)) return HR_AUDIT_TRL;
    /* Both have these; scripts of transformers read them from JSON, those of TRL from YAML. */
    if (!is_json && !has(entries, "block_size") &&
        (has(entries, "model_name_or_path") || has(entries, "dataset_name")))
        return HR_AUDIT_TRL;
    if (has(entries, "per_device_train_batch_size") || has(entries, "num_train_epochs") ||
        has(entries, "block_size"))
        return HR_AUDIT_HF;
    return HR_AUDIT_AUTO;
}
