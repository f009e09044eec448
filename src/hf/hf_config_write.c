/* SPDX-License-Identifier: Apache-2.0 */
/* hf/hf_config_write.c - writes config.json for other software, row by row of the table. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/number.h"
#include "config/config_keys.h"
#include "hf/hf_config.h"
#include "hf/hf_layers.h"
#include "hf/hf_table.h"
#include "model/family.h"

enum { VALUE_BYTES = 64 };

typedef struct {
    hr_writer *out;
    const hr_config *config;
    int32_t made_by;
    const char *scaling; /* kind of scaling */
} writing;

/* The numbers of each kind of scaling, beside its factor. */
static bool is_of_scaling(const char *kind, const char *name, const char *value)
{
    static const struct {
        const char *kind, *names;
    } kinds[] = { { "llama3", "low_freq_factor high_freq_factor original" },
                  { "yarn", "original beta_fast beta_slow attention_factor" } };
    if (!strncmp(name, "rope_type", 9) || !strncmp(name, "factor", 6)) return true;
    if (!strcmp(value, "auto")) return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kind, kinds[i].kind)) continue;
        for (const char *at = kinds[i].names; *at; at += strspn(at, " ")) {
            const size_t length = strcspn(at, " ");
            if (!strncmp(name, at, length)) return true;
            at += length;
        }
    }
    return false;
}

/* Returns whether a row is written. Defaults of other software are omitted, unless only headroom
 * has the option. */
static bool is_written(const writing *w, const hr_hf_option *row, const char *value)
{
    const bool own = !hr_hf_architectures[w->made_by].architecture;
    const bool scaling = !strncmp(row->names, "rope_scaling.", 13);
    const bool blocks = !strncmp(row->names, "attention_", 10) && row->key;
    const bool sparse = !strcmp(row->names, "sparse_attention") || !strncmp(row->names, "nsa_", 4);
    if (!*row->names || !value) return false;
    if (sparse)
        return w->config->model.attention.kind == HR_ATTENTION_NSA && strcmp(value, "auto") != 0;
    if (scaling)
        return strcmp(w->scaling, "none") && is_of_scaling(w->scaling, row->names + 13, value);
    if (blocks) return own || w->config->model.attention.pattern != 0;
    if (!strncmp(row->names, "rope_parameters.", 16)) return false;
    return !(row->value && !strcmp(row->value, "none") && !strcmp(value, "none"));
}

/* The value of a row for a config; null: none. */
static const char *value_of(const writing *w, const hr_hf_option *row, char text[HR_PATH_BYTES])
{
    if (!strcmp(row->names, "window_size") && !w->config->model.attention.sliding_window)
        return row->value; /* no layer has it */
    if (!row->key || hr_config_row_find(row->key) < 0) return row->value;
    if (!strcmp(row->key, "model.attention.stride") && !w->config->model.attention.stride)
        return NULL; /* the pattern's default */
    if (!strcmp(row->key, "model.n_kv_heads"))
        snprintf(text, HR_PATH_BYTES, "%lld", (long long)hr_config_kv_heads(w->config));
    else if (!strcmp(row->key, "model.head_dim"))
        snprintf(text, HR_PATH_BYTES, "%lld", (long long)hr_config_head_dim(w->config));
    else if (!strcmp(row->key, "model.positions")) {
        /* What dynamic scaling starts from, and no limit. */
        const bool dynamic = w->config->model.rope_scaling.kind == HR_ROPE_SCALING_DYNAMIC;
        snprintf(text, HR_PATH_BYTES, "%lld",
                 (long long)(dynamic ? w->config->model.rope_scaling.original_positions
                                     : hr_config_positions(w->config)));
    } else if (!strcmp(row->key, "model.embedding_rank"))
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
    for (int32_t i = 0; i < HR_HF_WRITTEN; i++) {
        const hr_hf_option *row = &hr_hf_options[i];
        if (!hr_hf_has(row, w->made_by)) continue;
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

/* Writes options that hr_hf_config_read ignores; dropout comes from the recipe. */
static void put_rest(const writing *w)
{
    static const struct {
        const char *letters, *name;
    } dropouts[] = { { "n", "hidden_dropout" }, { "nlmq3opy", "attention_dropout" },
                     { "g", "attn_pdrop" },     { "g", "embd_pdrop" },
                     { "g", "resid_pdrop" },    { "p", "resid_dropout" },
                     { "p", "embed_dropout" },  { "eo", "dropout" } };
    const char letter = hr_hf_architectures[w->made_by].letter;
    for (size_t i = 0; i < sizeof dropouts / sizeof *dropouts; i++)
        if (strchr(dropouts[i].letters, letter))
            hr_put(w->out, "  \"%s\": %.17g,\n", dropouts[i].name, w->config->model.dropout);
    if (*w->config->token_ids) hr_put(w->out, "%s", w->config->token_ids);
    else if (letter == 'n') hr_put(w->out, "  \"bos_token_id\": 0,\n  \"eos_token_id\": 0,\n");
    if (strchr("q3", letter)) hr_hf_layers_put_qwen(w->config, w->out);
    if (letter == 'p') hr_hf_layers_put_neo(w->config, w->out);
}

/* The row of architectures. A llama with a sliding window becomes a mistral, because other software
 * has no window for llama. */
static int32_t architecture_of(const hr_config *config)
{
    const bool slides = config->model.attention.sliding_window > 0;
    const bool llama = config->model.family == HR_FAMILY_LLAMA;
    const char *family = llama && slides ? hr_family_mistral.name : hr_family_of(config)->name;
    int32_t made_by = -1;
    for (int32_t i = 0; i < HR_HF_ARCHITECTURES; i++)
        if (!strcmp(hr_hf_architectures[i].family, family)) made_by = i;
    HR_ASSERT(made_by >= 0);
    return made_by;
}

const char hr_hf_quantization[] =
    "\"quantization_config\": {\"activation_scheme\": \"dynamic\", \"fmt\": \"e4m3\", "
    "\"quant_method\": \"fp8\", \"weight_block_size\": [128, 128]},";

void hr_hf_config_write(const hr_config *config, int32_t weights, hr_writer *writer)
{
    char scaling[VALUE_BYTES];
    const writing w = { writer, config, architecture_of(config), scaling };
    const hr_status status = hr_config_get(config, "model.rope_scaling.kind", scaling,
                                           sizeof scaling, NULL);
    HR_ASSERT(status == HR_OK);
    const char *architecture = hr_hf_architectures[w.made_by].architecture;
    hr_put(writer, "{\n");
    if (architecture) hr_put(writer, "  \"architectures\": [\"%s\"],\n", architecture);
    hr_put(writer, "  \"model_type\": \"%s\",\n", hr_hf_architectures[w.made_by].family);
    put_rows(&w);
    put_rest(&w);
    if (weights == HR_WEIGHTS_F8_E4M3) hr_put(writer, "  %s\n", hr_hf_quantization);
    const bool rounded = config->train.dtype == HR_FORMAT_BF16 &&
                         config->train.state.master == HR_MASTERS_NONE;
    hr_put(writer, "  \"torch_dtype\": \"%s\"\n}\n", rounded ? "bfloat16" : "float32");
}

const char *hr_hf_config_note(const hr_config *config)
{
    const bool known = hr_hf_architectures[architecture_of(config)].architecture != NULL;
    if (!known || !config->train.out[0]) return NULL;
    if (config->model.attention.kind == HR_ATTENTION_NSA)
        return "note   model.attention.kind=nsa has no Hugging Face equivalent: other software "
               "cannot use this model";
    if (!config->model.attention.pattern) return NULL;
    return "note   model.attention.pattern has no Hugging Face equivalent: other "
           "software will use dense attention with these weights";
}
