/* SPDX-License-Identifier: Apache-2.0 */
/* model/hf_config.c - the table of options, a reader and a writer that follow it.
 *
 * A new family is a row of `architectures` and its letter in the rows of the options that it has.
 * A row whose key headroom does not have yet takes the row's value alone. */
#include "model/hf_config.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "model/config_keys.h"
#include "model/family.h"

enum { FILE_BYTES = 65536, OPTIONS_MAX = 256, VALUE_BYTES = 64, PATH_SHOWN = 160, NAME_SHOWN = 60 };

/* ---- the table */

static const struct {
    char letter;
    const char *architecture, *family; /* architecture null: transformers does not have it */
} architectures[] = {
    { 'n', "GPTNeoXForCausalLM", "gpt_neox" },
    { 'l', "LlamaForCausalLM", "llama" },
    { 'g', "GPT2LMHeadModel", "gpt2" },
    { 'o', "OPTForCausalLM", "opt" },
    { 'm', "MistralForCausalLM", "mistral" },
    { 'q', "Qwen2ForCausalLM", "qwen2" },
    { '3', "Qwen3ForCausalLM", "qwen3" },
    { 'e', NULL, "needle" },
    { 'y', NULL, "yxanul" },
    { 'w', NULL, "wide" },
};

enum { ARCHITECTURES = sizeof architectures / sizeof *architectures };

/* What an option that the file leaves out, or has as null, stands for. */
#define NEEDED ""    /* nothing: it has to be there */
#define DERIVED NULL /* what the key's own default makes of the others */
#define ANY NULL     /* where there is no key: nothing that matters */

typedef struct {
    const char *letters; /* of the architectures that have it */
    const char *names;   /* its spellings, that which is written first; section.name where nested */
    const char *key;     /* of the recipe; null: `value` is the only one that is computed with */
    const char *value;   /* where it is left out; null stands for DERIVED, false or none */
} option_row;

static const option_row rows[] = {
    { "nlomq3yew", "hidden_size word_embed_proj_dim", "model.d_model", NEEDED },
    { "g", "n_embd", "model.d_model", NEEDED },
    { "nlomq3yew", "num_hidden_layers", "model.n_layers", NEEDED },
    { "g", "n_layer", "model.n_layers", NEEDED },
    { "nlomq3ye", "num_attention_heads", "model.n_heads", NEEDED },
    { "g", "n_head", "model.n_heads", NEEDED },
    { "nlmq3ye", "intermediate_size", "model.d_ff", NEEDED },
    { "g", "n_inner", "model.d_ff", DERIVED },
    { "o", "ffn_dim", "model.d_ff", NEEDED },
    { "nlgomq3yew", "vocab_size", "model.vocab_size", NEEDED },
    { "nlmq3y", "max_position_embeddings", NULL, ANY }, /* as many as one likes can be rotated */
    { "g", "n_positions", "model.positions", "1024" },
    { "o", "max_position_embeddings", "model.positions", "2048" },
    { "e", "max_position_embeddings", "model.positions", DERIVED },
    { "y", "embedding_rank", "model.embedding_rank", DERIVED },
    { "w", "expansion", "model.expansion", DERIVED },
    { "w", "decoder_rank", "model.decoder_rank", "none" },
    { "ne", "layer_norm_eps", "model.norm_eps", "1e-5" },
    { "g", "layer_norm_epsilon", "model.norm_eps", "1e-5" },
    { "o", "", "model.norm_eps", "1e-5" },
    { "lmq3y", "rms_norm_eps", "model.norm_eps", "1e-6" },

    { "n", "hidden_act", NULL, "gelu" },
    { "lmq3y", "hidden_act", NULL, "silu" },
    { "e", "hidden_act", NULL, "relu" },
    { "g", "activation_function", NULL, "gelu_new" },
    { "o", "activation_function", NULL, "relu" },

    { "lmy", "num_key_value_heads", "model.n_kv_heads", DERIVED },
    { "q3", "num_key_value_heads", "model.n_kv_heads", "32" },
    { "lmqy", "head_dim", "model.head_dim", DERIVED },
    { "3", "head_dim", "model.head_dim", "128" },
    { "n", "rotary_pct rope_parameters.partial_rotary_factor partial_rotary_factor",
      "model.rotary_fraction", "0.25" },
    { "lmq3y", "rope_parameters.partial_rotary_factor partial_rotary_factor", NULL, "1" },
    { "n", "rotary_emb_base rope_parameters.rope_theta rope_theta", "model.rope_theta", "10000" },
    { "lmq3y", "rope_theta rope_parameters.rope_theta", "model.rope_theta", "10000" },
    { "nlmq3y",
      "rope_scaling.rope_type rope_scaling.type rope_parameters.rope_type rope_parameters.type",
      "model.rope_scaling.kind", "default" },
    { "nlmq3y", "rope_scaling.factor rope_parameters.factor", "model.rope_scaling.factor", "8" },
    { "nlmq3y", "rope_scaling.low_freq_factor rope_parameters.low_freq_factor",
      "model.rope_scaling.low_freq_factor", "1" },
    { "nlmq3y", "rope_scaling.high_freq_factor rope_parameters.high_freq_factor",
      "model.rope_scaling.high_freq_factor", "4" },
    { "nlmq3y",
      "rope_scaling.original_max_position_embeddings "
      "rope_parameters.original_max_position_embeddings",
      "model.rope_scaling.original_positions", "8192" },
    { "ly", "sliding_window", "model.attention.sliding_window", "none" },
    { "m", "sliding_window", "model.attention.sliding_window", "4096" },
    { "q3", "use_sliding_window", NULL, "false" },
    { "q3", "sliding_window", NULL, ANY }, /* not without that */
    { "lq3", "layer_types", NULL, "full_attention" },

    { "n", "use_parallel_residual", "model.parallel_residual", "true" },
    { "n", "attention_bias", NULL, "true" },
    { "lm3y", "attention_bias", NULL, "false" },
    { "lmq3y", "mlp_bias", NULL, "false" },
    { "nlmq3", "tie_word_embeddings", "model.tie_embeddings", "false" },
    { "goy", "tie_word_embeddings", "model.tie_embeddings", "true" },
    { "g", "scale_attn_weights", NULL, "true" },
    { "g", "scale_attn_by_inverse_layer_idx", NULL, "false" },
    { "g", "reorder_and_upcast_attn", NULL, "false" },
    { "g", "add_cross_attention", NULL, "false" },
    { "o", "do_layer_norm_before", NULL, "true" },
    { "o", "_remove_final_layer_norm", NULL, "false" },
    { "o", "enable_bias", NULL, "true" },
    { "o", "layer_norm_elementwise_affine", NULL, "true" },

    { "nlgomq3ye", "attention_pattern", "model.attention.pattern", "dense" },
    { "nlgomq3ye", "attention_block", "model.attention.block", "64" },
    { "nlgomq3ye", "attention_window", "model.attention.window", "1" },
    { "nlgomq3ye", "attention_stride", "model.attention.stride", "2" },
};

enum { ROWS = sizeof rows / sizeof *rows };

/* They say who made the file, how the model was first trained, or what a tokenizer needs; not what
 * the model computes. Dropout is the recipe's. What begins with an underscore is the other
 * software's own. */
static const char *const without_effect[] = {
    "transformers_version",
    "torch_dtype",
    "dtype",
    "use_cache",
    "initializer_range",
    "initializer_factor",
    "init_std",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "unk_token_id",
    "tokenizer_class",
    "n_ctx",
    "hidden_dropout",
    "attention_dropout",
    "classifier_dropout",
    "attn_pdrop",
    "embd_pdrop",
    "resid_pdrop",
    "dropout",
    "activation_dropout",
    "layerdrop",
    "summary_activation",
    "summary_first_dropout",
    "summary_proj_to_labels",
    "summary_type",
    "summary_use_proj",
    "task_specific_params",
    "is_decoder",
    "is_encoder_decoder",
    "id2label",
    "label2id",
    "num_labels",
    "return_dict",
    "output_attentions",
    "output_hidden_states",
    "prefix",
    "pretraining_tp",
    "max_window_layers",
    "gradient_checkpointing",
    "output_past",
    "chunk_size_feed_forward",
    "architectures",
    "model_type",
    "finetuning_task",
    "torchscript",
    "problem_type",
    "name_or_path",
};

/* ---- one file into a list of its options */

typedef struct {
    const char *section, *name, *value; /* section empty: of the file itself */
    int64_t value_bytes;
    hr_json_kind kind;
} option;

typedef struct {
    char path[PATH_MAX];
    char text[FILE_BYTES];
    option options[OPTIONS_MAX];
    int32_t option_count;
    char architecture[VALUE_BYTES], model_type[VALUE_BYTES]; /* empty: not there */
    int32_t made_by;                                         /* row of `architectures` */
    hr_error *err;
} reader;

static const char *shown(const reader *r)
{
    const size_t length = strlen(r->path);
    return r->path + (length > PATH_SHOWN ? length - PATH_SHOWN : 0);
}

static hr_status fail(const reader *r, const char *sentence)
{
    return hr_fail(r->err, HR_CORRUPT, "%s: %s", shown(r), sentence);
}

/* A name or a value for a sentence: one line, and not too long. */
static const char *quote(const char *value, int64_t bytes, char text[VALUE_BYTES])
{
    int32_t length = 0;
    for (int64_t i = 0; i < bytes && i < NAME_SHOWN; i++)
        text[length++] = (unsigned char)value[i] < ' ' || value[i] == 127 ? '?' : value[i];
    text[length] = 0;
    return text;
}

static hr_status not_json(const reader *r, const hr_json *json)
{
    return hr_fail(r->err, HR_CORRUPT, "%s: byte %lld: %s", shown(r), (long long)json->at,
                   json->problem ? json->problem : "another kind of value is needed there");
}

static bool copy_word(const hr_json *json, char word[VALUE_BYTES])
{
    quote(json->value, json->value_bytes, word);
    return json->value_bytes < NAME_SHOWN;
}

static hr_status read_architectures(reader *r, hr_json *json)
{
    const hr_json_kind kind = hr_json_next(json);
    if (kind == HR_JSON_NULL) return HR_OK;
    if (kind != HR_JSON_ARRAY || hr_json_next(json) != HR_JSON_STRING) return not_json(r, json);
    copy_word(json, r->architecture);
    if (hr_json_next(json) == HR_JSON_CLOSE) return HR_OK;
    return json->problem ? not_json(r, json) : fail(r, "names more than one architecture");
}

static bool has_no_effect(const char *name)
{
    for (size_t i = 0; i < sizeof without_effect / sizeof *without_effect; i++)
        if (!strcmp(without_effect[i], name)) return true;
    return *name == '_' && strcmp(name, "_remove_final_layer_norm") != 0;
}

static hr_status add_option(reader *r, const hr_json *json, const char *section, const char *name,
                            hr_json_kind kind)
{
    char quoted[VALUE_BYTES];
    for (int32_t i = 0; i < r->option_count; i++)
        if (!strcmp(r->options[i].section, section) && !strcmp(r->options[i].name, name))
            return hr_fail(r->err, HR_CORRUPT, "%s: has \"%s\" twice", shown(r),
                           quote(name, (int64_t)strlen(name), quoted));
    if (r->option_count == OPTIONS_MAX) return fail(r, "has more than 256 options");
    r->options[r->option_count++] = (option){ section, name, json->value, json->value_bytes, kind };
    return HR_OK;
}

/* All layers of one kind are that kind. */
static hr_status read_layer_types(reader *r, hr_json *json, const char *name)
{
    hr_json found = { .value = "of several kinds" };
    const char *first = NULL;
    bool same = true;
    hr_json_kind kind = hr_json_next(json);
    if (kind == HR_JSON_NULL) return HR_OK;
    if (kind != HR_JSON_ARRAY) return not_json(r, json);
    while ((kind = hr_json_next(json)) == HR_JSON_STRING) {
        same = same && (!first || !strcmp(first, json->value));
        first = json->value;
    }
    if (kind != HR_JSON_CLOSE) return not_json(r, json);
    if (same && first) found.value = first;
    found.value_bytes = (int64_t)strlen(found.value);
    return add_option(r, &found, "", name, HR_JSON_STRING);
}

static hr_status read_section(reader *r, hr_json *json, const char *section)
{
    hr_json_kind kind = hr_json_next(json);
    if (kind == HR_JSON_NULL) return HR_OK;
    if (kind != HR_JSON_OBJECT) return not_json(r, json);
    while ((kind = hr_json_next(json)) == HR_JSON_KEY) {
        const char *name = json->value;
        kind = hr_json_next(json);
        if (kind == HR_JSON_WRONG || kind == HR_JSON_OBJECT || kind == HR_JSON_ARRAY)
            return not_json(r, json);
        const hr_status status = add_option(r, json, section, name, kind);
        if (status != HR_OK) return status;
    }
    return kind == HR_JSON_CLOSE ? HR_OK : not_json(r, json);
}

static hr_status read_option(reader *r, hr_json *json)
{
    const char *name = json->value;
    char quoted[VALUE_BYTES];
    if (!strcmp(name, "architectures") && !*r->architecture) return read_architectures(r, json);
    if (!strcmp(name, "layer_types")) return read_layer_types(r, json, name);
    if (!strcmp(name, "rope_scaling") || !strcmp(name, "rope_parameters"))
        return read_section(r, json, name);
    const hr_json_kind kind = hr_json_next(json);
    if (!strcmp(name, "model_type") && kind == HR_JSON_STRING) {
        if (*r->model_type) return fail(r, "has \"model_type\" twice");
        copy_word(json, r->model_type);
        return HR_OK;
    }
    if (has_no_effect(name)) return hr_json_skip(json, kind) ? HR_OK : not_json(r, json);
    if (kind == HR_JSON_WRONG) return not_json(r, json);
    if (kind == HR_JSON_OBJECT || kind == HR_JSON_ARRAY)
        return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\" is no option that is known", shown(r),
                       quote(name, (int64_t)strlen(name), quoted));
    return add_option(r, json, "", name, kind);
}

static hr_status read_options(reader *r, int64_t bytes)
{
    hr_json json = hr_json_over(r->text, bytes);
    hr_json_kind kind;
    if (hr_json_next(&json) != HR_JSON_OBJECT) return not_json(r, &json);
    while ((kind = hr_json_next(&json)) == HR_JSON_KEY) {
        const hr_status status = read_option(r, &json);
        if (status != HR_OK) return status;
    }
    if (kind != HR_JSON_CLOSE || hr_json_next(&json) != HR_JSON_END) return not_json(r, &json);
    return HR_OK;
}

/* ---- the list held against the table */

/* The architecture decides; where it is left out, the kind of model. */
static hr_status find_architecture(reader *r, hr_config *config)
{
    r->made_by = -1;
    for (int32_t i = 0; i < ARCHITECTURES; i++) {
        const char *name = architectures[i].architecture;
        if (*r->architecture ? name && !strcmp(name, r->architecture)
                             : !strcmp(architectures[i].family, r->model_type))
            r->made_by = i;
    }
    if (!*r->architecture && !*r->model_type)
        return fail(r, "has neither \"architectures\" nor \"model_type\"");
    const char *said = *r->architecture ? r->architecture : r->model_type;
    if (r->made_by < 0)
        return hr_fail(r->err, HR_CORRUPT, "%s: %s is no architecture that is known", shown(r),
                       said);
    const char *family = architectures[r->made_by].family;
    if (*r->model_type && strcmp(family, r->model_type))
        return hr_fail(r->err, HR_CORRUPT, "%s: its model_type is %s, and %s is a %s", shown(r),
                       r->model_type, r->architecture, family);
    if (hr_config_set(config, "model.family", family, NULL) == HR_OK) return HR_OK;
    return hr_fail(r->err, HR_CORRUPT, "%s: %s is a family that is not built yet", shown(r), said);
}

/* Whether `names` has the option's spelling. */
static bool spells(const char *names, const option *o)
{
    char name[2 * VALUE_BYTES];
    const int length = snprintf(name, sizeof name, "%s%s%s", o->section, *o->section ? "." : "",
                                o->name);
    if (length >= (int)sizeof name || strchr(name, ' ')) return false;
    for (const char *at = names; *at; at += strspn(at, " ")) {
        const size_t word = strcspn(at, " ");
        if (word == (size_t)length && !memcmp(at, name, word)) return true;
        at += word;
    }
    return false;
}

static bool same_value(const char *a, const char *b)
{
    double x, y;
    return !strcmp(a, b) || (hr_real_parse(a, &x) && hr_real_parse(b, &y) && x == y);
}

/* An option's text as a key takes it. What is null is none or false where there is such a thing. */
static hr_status read_value(const reader *r, const option *o, const option_row *row,
                            char value[VALUE_BYTES])
{
    char name[VALUE_BYTES], quoted[VALUE_BYTES];
    double number;
    const int32_t key = row->key ? hr_config_row_find(row->key) : -1;
    const hr_key *is = key >= 0 ? hr_config_key(key) : NULL;
    const char *zero_word = is ? is->zero_word : row->key ? NULL : "false";
    quote(o->value, o->value_bytes, value);
    if (o->kind == HR_JSON_NULL && zero_word) {
        snprintf(value, VALUE_BYTES, "%s", zero_word);
        return HR_OK;
    }
    const bool truth = o->kind == HR_JSON_TRUE || o->kind == HR_JSON_FALSE;
    const bool word = o->kind == HR_JSON_STRING && strcmp(value, "true") && strcmp(value, "false");
    const bool whole = o->value_bytes < NAME_SHOWN;
    const bool fits = !is || (is->type == HR_KEY_CHOICE ? word || truth
                              : is->type == HR_KEY_BOOL ? truth
                                                        : o->kind == HR_JSON_NUMBER);
    const bool zero = is && zero_word && hr_real_parse(value, &number) && number == 0;
    if (o->kind != HR_JSON_NULL && whole && !zero && fits) return HR_OK;
    return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\" cannot be %s", shown(r),
                   quote(o->name, (int64_t)strlen(o->name), name),
                   quote(o->value, o->value_bytes, quoted));
}

static hr_status take_value(const reader *r, const option_row *row, const char *name,
                            const char *value, hr_config *config)
{
    hr_error inner;
    const char *word = same_value(value, "default") ? "none" : value;
    if (row->key && hr_config_row_find(row->key) >= 0) {
        if (hr_config_set(config, row->key, word, &inner) == HR_OK) return HR_OK;
        return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\": %.300s", shown(r), name, inner.message);
    }
    if (same_value(value, row->value)) return HR_OK;
    return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\" is %s, and %s is all that is known", shown(r),
                   name, value, row->value);
}

static hr_status take_row(reader *r, const option_row *row, hr_config *config)
{
    if (!row->key && !row->value) return HR_OK;
    char value[VALUE_BYTES] = "", other[VALUE_BYTES], name[VALUE_BYTES];
    const option *first = NULL;
    for (int32_t i = 0; i < r->option_count; i++) {
        const option *o = &r->options[i];
        if (!spells(row->names, o)) continue;
        if (o->kind == HR_JSON_NULL && row->key && !row->value) continue;
        const hr_status status = read_value(r, o, row, first ? other : value);
        if (status != HR_OK) return status;
        if (first && !same_value(value, other))
            return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\" is %s, and \"%s\" is %s", shown(r),
                           first->name, value, o->name, other);
        if (!first) first = o;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(row->names, " "), row->names);
    if (first) return take_value(r, row, first->name, value, config);
    if (row->value && *row->value) return take_value(r, row, name, row->value, config);
    if (!row->value) return HR_OK;
    return hr_fail(r->err, HR_CORRUPT, "%s: has no \"%s\"", shown(r), name);
}

static bool has_row(const option_row *row, int32_t architecture)
{
    return strchr(row->letters, architectures[architecture].letter) != NULL;
}

static hr_status check_all_known(const reader *r)
{
    char name[VALUE_BYTES];
    for (int32_t i = 0; i < r->option_count; i++) {
        const option *o = &r->options[i];
        bool known = o->kind == HR_JSON_NULL;
        for (int32_t k = 0; k < ROWS && !known; k++)
            known = has_row(&rows[k], r->made_by) && spells(rows[k].names, o);
        if (!known)
            return hr_fail(r->err, HR_CORRUPT,
                           "%s: \"%s\" is no option of %s that is known, and it may change what "
                           "the model computes",
                           shown(r), quote(o->name, (int64_t)strlen(o->name), name),
                           architectures[r->made_by].family);
    }
    return HR_OK;
}

/* A kind of scaling comes with its numbers. */
static hr_status check_scaling(const reader *r, const hr_config *config)
{
    static const char *const names[] = { "factor", "low_freq_factor", "high_freq_factor",
                                         "original_max_position_embeddings" };
    char kind[VALUE_BYTES];
    const hr_status status = hr_config_get(config, "model.rope_scaling.kind", kind, sizeof kind,
                                           NULL);
    HR_ASSERT(status == HR_OK);
    const int32_t needed = !strcmp(kind, "none") ? 0 : !strcmp(kind, "linear") ? 1 : 4;
    for (int32_t k = 0; k < needed; k++) {
        bool found = false;
        for (int32_t i = 0; i < r->option_count; i++)
            found |= *r->options[i].section && !strcmp(r->options[i].name, names[k]);
        if (!found)
            return hr_fail(r->err, HR_CORRUPT, "%s: rope type %s has no \"%s\"", shown(r), kind,
                           names[k]);
    }
    return HR_OK;
}

static hr_status read_file(reader *r, const char *directory, int64_t *bytes)
{
    int file;
    hr_status status = hr_path_join(directory, "config.json", r->path, sizeof r->path, r->err);
    if (status == HR_OK) status = hr_file_open(r->path, &file, bytes, r->err);
    if (status != HR_OK) return status;
    if (*bytes > FILE_BYTES) status = fail(r, "has more than the 65536 bytes that it may have");
    else status = hr_file_read(file, r->path, 0, r->text, *bytes, r->err);
    hr_file_close(&file);
    return status;
}

hr_status hr_hf_config_read(const char *directory, hr_config *config, hr_error *err)
{
    reader r;
    hr_config fresh, taken;
    int64_t bytes;
    r.option_count = 0;
    r.architecture[0] = r.model_type[0] = 0;
    r.err = err;
    hr_config_default(&fresh);
    fresh.model.d_ff = 0; /* derived, where a family leaves it out */
    hr_status status = read_file(&r, directory, &bytes);
    if (status == HR_OK) status = read_options(&r, bytes);
    if (status == HR_OK) status = find_architecture(&r, &fresh);
    if (status == HR_OK) status = check_all_known(&r);
    for (int32_t i = 0; i < ROWS && status == HR_OK; i++)
        if (has_row(&rows[i], r.made_by)) status = take_row(&r, &rows[i], &fresh);
    if (status == HR_OK) status = check_scaling(&r, &fresh);
    if (status != HR_OK) return status;
    if (fresh.model.d_ff == 0) fresh.model.d_ff = 4 * fresh.model.d_model;
    taken = *config;
    taken.model = fresh.model;
    memcpy(taken.model.from, config->model.from, sizeof taken.model.from);
    taken.model.dropout = config->model.dropout;
    *config = taken;
    return HR_OK;
}

/* ---- the other way */

typedef struct {
    hr_writer *out;
    const hr_config *config;
    int32_t made_by;
    const char *scaling; /* kind */
} writing;

/* Whether a row has a place in the file: what other software reads at its default is left out,
 * unless headroom alone has it. */
static bool is_written(const writing *w, const option_row *row, const char *value)
{
    const bool own = !architectures[w->made_by].architecture;
    const bool scaling = !strncmp(row->names, "rope_scaling.", 13);
    const bool blocks = !strncmp(row->names, "attention_", 10) && row->key;
    if (!*row->names || !value || !strcmp(row->names, "layer_types")) return false;
    if (scaling)
        return strcmp(w->scaling, "none") &&
               (!strcmp(w->scaling, "llama3") || !strncmp(row->names + 13, "rope_type", 9) ||
                !strncmp(row->names + 13, "factor", 6));
    if (blocks) return own || w->config->model.attention.pattern != 0;
    if (!strncmp(row->names, "rope_parameters.", 16)) return false;
    return !(row->value && !strcmp(row->value, "none") && !strcmp(value, "none"));
}

/* What a row says of a config; null: nothing. */
static const char *value_of(const writing *w, const option_row *row, char text[HR_PATH_BYTES])
{
    if (!strcmp(row->names, "use_sliding_window") && w->config->model.attention.sliding_window)
        return "true";
    if (!row->key || hr_config_row_find(row->key) < 0) return row->value;
    if (!strcmp(row->key, "model.n_kv_heads"))
        snprintf(text, HR_PATH_BYTES, "%lld", (long long)hr_config_kv_heads(w->config));
    else if (!strcmp(row->key, "model.head_dim"))
        snprintf(text, HR_PATH_BYTES, "%lld", (long long)hr_config_head_dim(w->config));
    else if (!strcmp(row->key, "model.positions"))
        snprintf(text, HR_PATH_BYTES, "%lld", (long long)hr_config_positions(w->config));
    else if (!strcmp(row->key, "model.embedding_rank"))
        snprintf(text, HR_PATH_BYTES, "%lld", (long long)hr_config_embedding_rank(w->config));
    else if (!strcmp(row->key, "model.expansion"))
        snprintf(text, HR_PATH_BYTES, "%lld", (long long)hr_config_expansion(w->config));
    else if (!strcmp(row->key, "model.tie_embeddings"))
        snprintf(text, HR_PATH_BYTES, "%s", hr_family_ties(w->config) ? "true" : "false");
    else {
        const hr_status status = hr_config_get(w->config, row->key, text, HR_PATH_BYTES, NULL);
        HR_ASSERT(status == HR_OK);
    }
    return text;
}

static void put_value(hr_writer *out, const char *value)
{
    double number;
    const bool none = !strcmp(value, "none");
    if (none) hr_put(out, "null");
    else if (!strcmp(value, "true") || !strcmp(value, "false") || hr_real_parse(value, &number))
        hr_put(out, "%s", value);
    else hr_put(out, "\"%s\"", value);
}

static void put_rows(const writing *w)
{
    char text[HR_PATH_BYTES];
    bool inside = false;
    for (int32_t i = 0; i < ROWS; i++) {
        const option_row *row = &rows[i];
        if (!has_row(row, w->made_by)) continue;
        const char *value = value_of(w, row, text);
        if (!is_written(w, row, value)) continue;
        const int name_bytes = (int)strcspn(row->names, " ");
        const char *dot = memchr(row->names, '.', (size_t)name_bytes);
        if (dot && !inside) hr_put(w->out, "  \"%.*s\": {", (int)(dot - row->names), row->names);
        else if (!dot && inside) hr_put(w->out, " },\n");
        if (!dot) hr_put(w->out, "  \"%.*s\": ", name_bytes, row->names);
        else
            hr_put(w->out, "%s\"%.*s\": ", inside ? ", " : " ",
                   (int)(row->names + name_bytes - dot - 1), dot + 1);
        put_value(w->out, value);
        if (!dot) hr_put(w->out, ",\n");
        inside = dot != NULL;
    }
    if (inside) hr_put(w->out, " },\n");
}

/* Not taken back: positions that are not learned are train.seq_len, and dropout is the recipe's. */
static void put_rest(const writing *w)
{
    static const struct {
        const char *letters, *name;
    } dropouts[] = { { "n", "hidden_dropout" }, { "nlmq3oy", "attention_dropout" },
                     { "g", "attn_pdrop" },     { "g", "embd_pdrop" },
                     { "g", "resid_pdrop" },    { "eo", "dropout" } };
    const char letter = architectures[w->made_by].letter;
    for (size_t i = 0; i < sizeof dropouts / sizeof *dropouts; i++)
        if (strchr(dropouts[i].letters, letter))
            hr_put(w->out, "  \"%s\": %.17g,\n", dropouts[i].name, w->config->model.dropout);
    if (letter == 'n') hr_put(w->out, "  \"bos_token_id\": 0,\n  \"eos_token_id\": 0,\n");
    if (strchr("nlmq3y", letter))
        hr_put(w->out, "  \"max_position_embeddings\": %lld,\n",
               (long long)w->config->train.seq_len);
    if (strchr("q3", letter) && w->config->model.attention.sliding_window)
        hr_put(w->out, "  \"max_window_layers\": 0,\n  \"sliding_window\": %lld,\n",
               (long long)w->config->model.attention.sliding_window);
}

void hr_hf_config_write(const hr_config *config, hr_writer *writer)
{
    char family[VALUE_BYTES], scaling[VALUE_BYTES];
    writing w = { writer, config, -1, scaling };
    hr_status status = hr_config_get(config, "model.family", family, sizeof family, NULL);
    if (status == HR_OK)
        status = hr_config_get(config, "model.rope_scaling.kind", scaling, sizeof scaling, NULL);
    for (int32_t i = 0; i < ARCHITECTURES; i++)
        if (!strcmp(architectures[i].family, family)) w.made_by = i;
    HR_ASSERT(status == HR_OK && w.made_by >= 0);
    const char *architecture = architectures[w.made_by].architecture;
    hr_put(writer, "{\n");
    if (architecture) hr_put(writer, "  \"architectures\": [\"%s\"],\n", architecture);
    hr_put(writer, "  \"model_type\": \"%s\",\n", family);
    put_rows(&w);
    put_rest(&w);
    hr_put(writer, "  \"torch_dtype\": \"float32\"\n}\n");
}
