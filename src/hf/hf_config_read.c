/* SPDX-License-Identifier: Apache-2.0 */
/* hf/hf_config_read.c - applies the table of options to the entries of config.json. */
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/file.h"
#include "base/number.h"
#include "base/path.h"
#include "config/config_keys.h"
#include "hf/hf_config.h"
#include "hf/hf_file.h"
#include "hf/hf_table.h"
#include "model/family.h"

/* Selects by "architectures" or, if absent, by "model_type". */
static hr_status find_architecture(hr_hf_file *r, hr_config *config)
{
    r->made_by = -1;
    for (int32_t i = 0; i < HR_HF_ARCHITECTURES; i++) {
        const char *name = hr_hf_architectures[i].architecture;
        if (*r->architecture ? name && !strcmp(name, r->architecture)
                             : !strcmp(hr_hf_architectures[i].family, r->model_type))
            r->made_by = i;
    }
    if (!*r->architecture && !*r->model_type)
        return hr_hf_fail(r, "has neither \"architectures\" nor \"model_type\"");
    const char *said = *r->architecture ? r->architecture : r->model_type;
    if (r->made_by < 0)
        return hr_fail(r->err, HR_CORRUPT, "%s: architecture %s is not supported", hr_hf_shown(r),
                       said);
    const char *family = hr_hf_architectures[r->made_by].family;
    if (*r->model_type && strcmp(family, r->model_type))
        return hr_fail(r->err, HR_CORRUPT, "%s: model_type is %s, but %s is a %s", hr_hf_shown(r),
                       r->model_type, r->architecture, family);
    if (hr_config_set(config, "model.family", family, NULL) == HR_OK) return HR_OK;
    return hr_fail(r->err, HR_CORRUPT, "%s: architecture %s is not supported yet", hr_hf_shown(r),
                   said);
}

/* The table's name for a function with several names. */
static const char *canonical_name(const char *function)
{
    static const char *const names[][2] = { { "swish", "silu" },
                                            { "gelu_python", "gelu" },
                                            { "gelu_fast", "gelu_new" },
                                            { "gelu_pytorch_tanh", "gelu_new" } };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(function, names[i][0])) return names[i][1];
    return function;
}

static bool same_value(const char *a, const char *b)
{
    double x, y;
    return !strcmp(canonical_name(a), canonical_name(b)) ||
           (hr_real_parse(a, &x) && hr_real_parse(b, &y) && x == y);
}

/* Converts an option's text to the form of the key. null becomes none or false if the key has
 * it. */
static hr_status read_value(const hr_hf_file *r, const hr_hf_entry *o, const hr_hf_option *row,
                            char value[HR_HF_VALUE_BYTES])
{
    char name[HR_HF_VALUE_BYTES], quoted[HR_HF_VALUE_BYTES];
    double number;
    const int32_t key = row->key ? hr_config_row_find(row->key) : -1;
    const hr_key *is = key >= 0 ? hr_config_key(key) : NULL;
    const bool truths = !row->key && (!strcmp(row->value, "true") || !strcmp(row->value, "false"));
    const char *zero_word = is ? is->zero_word : truths ? "false" : NULL;
    hr_hf_quote(o->value, o->value_bytes, value);
    if (o->kind == HR_JSON_NULL && zero_word) {
        snprintf(value, HR_HF_VALUE_BYTES, "%s", zero_word);
        return HR_OK;
    }
    const bool truth = o->kind == HR_JSON_TRUE || o->kind == HR_JSON_FALSE;
    const bool word = o->kind == HR_JSON_STRING && strcmp(value, "true") &&
                      strcmp(value, "false") && strcmp(value, "none");
    const bool whole = o->value_bytes < HR_HF_NAME_SHOWN;
    const bool fits = !is || (is->type == HR_KEY_CHOICE ? word || truth
                              : is->type == HR_KEY_TEXT ? word
                              : is->type == HR_KEY_BOOL ? truth
                                                        : o->kind == HR_JSON_NUMBER);
    const bool zero = is && zero_word && hr_real_parse(value, &number) && number == 0;
    if (o->kind != HR_JSON_NULL && whole && !zero && fits) return HR_OK;
    return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\" cannot be %s%s", hr_hf_shown(r),
                   hr_hf_quote(o->name, (int64_t)strlen(o->name), name),
                   o->kind == HR_JSON_STRING ? "the text " : "",
                   hr_hf_quote(o->value, o->value_bytes, quoted));
}

static hr_status take_value(const hr_hf_file *r, const hr_hf_option *row, const char *name,
                            const char *value, hr_config *config)
{
    hr_error inner;
    const char *word = same_value(value, "default") ? "none" : value;
    if (row->key && hr_config_row_find(row->key) >= 0) {
        if (hr_config_set(config, row->key, word, &inner) == HR_OK) return HR_OK;
        return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\": %.300s", hr_hf_shown(r), name,
                       inner.message);
    }
    if (same_value(value, row->value)) return HR_OK;
    return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\" is %s, only %s is supported", hr_hf_shown(r),
                   name, value, row->value);
}

/* Returns whether null means that the option is absent. */
static bool is_left_out(const hr_hf_option *row)
{
    double number;
    return row->key ? !row->value : hr_real_parse(row->value, &number);
}

/* Checks an option that sets nothing: it must agree with the key that other options set. */
static hr_status check_row(const hr_hf_file *r, const hr_hf_option *row, const hr_config *config)
{
    char value[HR_HF_VALUE_BYTES], is[HR_HF_VALUE_BYTES];
    for (int32_t i = 0; i < r->entry_count; i++) {
        const hr_hf_entry *o = &r->entries[i];
        if (!hr_hf_spells(row->names, o) || o->kind == HR_JSON_NULL) continue;
        hr_hf_quote(o->value, o->value_bytes, value);
        const hr_status status = hr_config_get(config, row->key, is, sizeof is, NULL);
        HR_ASSERT(status == HR_OK);
        if (!same_value(value, is))
            return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\" is %s, but the other options make %s %s",
                           hr_hf_shown(r), o->name, value, row->key, is);
    }
    return HR_OK;
}

static hr_status take_row(hr_hf_file *r, const hr_hf_option *row, hr_config *config)
{
    if (!row->key && !row->value) return HR_OK;
    if (*row->names == '=') return check_row(r, row, config);
    char value[HR_HF_VALUE_BYTES] = "", other[HR_HF_VALUE_BYTES], name[HR_HF_VALUE_BYTES];
    const hr_hf_entry *first = NULL;
    for (int32_t i = 0; i < r->entry_count; i++) {
        const hr_hf_entry *o = &r->entries[i];
        if (!hr_hf_spells(row->names, o)) continue;
        if (o->kind == HR_JSON_NULL && is_left_out(row)) continue;
        const hr_status status = read_value(r, o, row, first ? other : value);
        if (status != HR_OK) return status;
        if (first && !same_value(value, other)) {
            char one[HR_HF_NAME_BYTES], two[HR_HF_NAME_BYTES];
            hr_hf_spell(first, one);
            hr_hf_spell(o, two);
            return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\" is %s, but \"%s\" is %s", hr_hf_shown(r),
                           one, value, two, other);
        }
        if (!first) first = o;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(row->names, " "), row->names);
    if (first) return take_value(r, row, first->name, value, config);
    if (row->value && *row->value) return take_value(r, row, name, row->value, config);
    if (!row->value) return HR_OK;
    return hr_fail(r->err, HR_CORRUPT, "%s: has no \"%s\"", hr_hf_shown(r), name);
}

static hr_status check_all_known(const hr_hf_file *r)
{
    char name[HR_HF_VALUE_BYTES];
    for (int32_t i = 0; i < r->entry_count; i++) {
        const hr_hf_entry *o = &r->entries[i];
        bool known = o->kind == HR_JSON_NULL;
        for (int32_t k = 0; k < HR_HF_OPTIONS && !known; k++)
            known = hr_hf_has(&hr_hf_options[k], r->made_by) &&
                    hr_hf_spells(hr_hf_options[k].names, o);
        if (!known)
            return hr_fail(r->err, HR_CORRUPT,
                           "%s: \"%s\" is not a known option of %s and may change what the model "
                           "computes",
                           hr_hf_shown(r), hr_hf_quote(o->name, (int64_t)strlen(o->name), name),
                           hr_hf_architectures[r->made_by].family);
    }
    return HR_OK;
}

static bool has_scaling(const hr_hf_file *r, const char *name)
{
    for (int32_t i = 0; i < r->entry_count; i++)
        if (*r->entries[i].section && !strcmp(r->entries[i].name, name)) return true;
    return false;
}

/* Checks that a kind of scaling has all its numbers. Without original positions, those of yarn are
 * those of the model. Those of dynamic always are, which then are no limit: as in transformers. */
static hr_status take_scaling(const hr_hf_file *r, hr_config *config)
{
    static const char *const names[] = { "factor", "low_freq_factor", "high_freq_factor",
                                         "original_max_position_embeddings" };
    const hr_rope_scaling_choice kind = (hr_rope_scaling_choice)config->model.rope_scaling.kind;
    const int32_t needed = kind == HR_ROPE_SCALING_NONE     ? 0
                           : kind == HR_ROPE_SCALING_LLAMA3 ? 4
                                                            : 1;
    char word[HR_HF_VALUE_BYTES];
    const hr_status status = hr_config_get(config, "model.rope_scaling.kind", word, sizeof word,
                                           NULL);
    HR_ASSERT(status == HR_OK);
    for (int32_t k = 0; k < needed; k++)
        if (!has_scaling(r, names[k]))
            return hr_fail(r->err, HR_CORRUPT, "%s: rope type %s has no \"%s\"", hr_hf_shown(r),
                           word, names[k]);
    const bool yarn = kind == HR_ROPE_SCALING_YARN && !has_scaling(r, names[3]);
    const bool dynamic = kind == HR_ROPE_SCALING_DYNAMIC;
    if ((yarn || dynamic) && config->model.positions)
        config->model.rope_scaling.original_positions = config->model.positions;
    if (dynamic) config->model.positions = 0;
    return HR_OK;
}

static bool is_in(const hr_hf_file *r, const char *section, const char *name)
{
    const bool type = !strcmp(name, "type") || !strcmp(name, "rope_type");
    for (int32_t i = 0; i < r->entry_count; i++) {
        const hr_hf_entry *o = &r->entries[i];
        const bool same = !strcmp(o->name, name) ||
                          (type && (!strcmp(o->name, "type") || !strcmp(o->name, "rope_type")));
        if (!strcmp(o->section, section) && same) return true;
    }
    return false;
}

/* Checks that two sections have the same options: other software uses only one of them, and
 * versions differ in which. */
static hr_status check_sections(const hr_hf_file *r)
{
    static const char *const sections[] = { "rope_scaling", "rope_parameters" };
    char quoted[HR_HF_VALUE_BYTES];
    bool both[2] = { false, false };
    for (int32_t i = 0; i < r->entry_count; i++)
        for (int32_t k = 0; k < 2; k++) both[k] |= !strcmp(r->entries[i].section, sections[k]);
    for (int32_t i = 0; i < r->entry_count && both[0] && both[1]; i++) {
        const hr_hf_entry *o = &r->entries[i];
        if (!*o->section) continue;
        const char *other = sections[!strcmp(o->section, sections[0])];
        if (!is_in(r, other, o->name))
            return hr_fail(r->err, HR_CORRUPT,
                           "%s: \"%s\" has \"%s\", but \"%s\" has not: remove one of them",
                           hr_hf_shown(r), o->section,
                           hr_hf_quote(o->name, (int64_t)strlen(o->name), quoted), other);
    }
    return HR_OK;
}

/* Returns the value of an option of the top level; `absent` if the file has none or null. */
static hr_status integer_of(const hr_hf_file *r, const char *name, int64_t absent, int64_t *value)
{
    char text[HR_HF_VALUE_BYTES];
    *value = absent;
    for (int32_t i = 0; i < r->entry_count; i++) {
        const hr_hf_entry *o = &r->entries[i];
        if (*o->section || strcmp(o->name, name) || o->kind == HR_JSON_NULL) continue;
        hr_hf_quote(o->value, o->value_bytes, text);
        const bool truth = o->kind == HR_JSON_TRUE || o->kind == HR_JSON_FALSE;
        if (truth) *value = o->kind == HR_JSON_TRUE;
        else if (o->kind != HR_JSON_NUMBER || !hr_integer_parse(text, value) || *value < 0)
            return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\" cannot be %s%s", hr_hf_shown(r), name,
                           o->kind == HR_JSON_STRING ? "the text " : "", text);
    }
    return HR_OK;
}

/* Sets the window and the layers that have it, in families that mix layers. */
static hr_status take_layers(hr_hf_file *r, hr_config *config)
{
    enum { MAX_WINDOW_LAYERS = 28 }; /* the default of transformers */
    hr_error inner;
    hr_hf_window window = { .has_switch = false };
    int64_t on = 0;
    hr_status status = HR_OK;
    if (!(hr_family_of(config)->traits & HR_MIXES_ATTENTION) && !r->layers[0].count) return HR_OK;
    if (config->model.family == HR_FAMILY_GPT_NEO) {
        hr_hf_layers_default(r->layers);
    } else if (hr_family_of(config)->traits & HR_MIXES_ATTENTION) {
        window.has_switch = true;
        status = integer_of(r, "use_sliding_window", false, &on);
        window.is_on = on;
    }
    if (status == HR_OK && window.has_switch)
        status = integer_of(r, "max_window_layers", MAX_WINDOW_LAYERS, &window.max_window_layers);
    if (status != HR_OK || hr_hf_layers_take(r->layers, &window, config, &inner) == HR_OK)
        return status;
    return hr_fail(r->err, HR_CORRUPT, "%s: %.300s", hr_hf_shown(r), inner.message);
}

/* Takes what the file says into `fresh`. Not inlined: the file is large, and the stack size is
 * planned. */
static __attribute__((noinline)) hr_status read_model(const char *directory, hr_config *fresh,
                                                      char shown[HR_PATH_BYTES], hr_error *err)
{
    hr_hf_file r;
    r.token_ids = (hr_writer){ .text = fresh->token_ids, .bytes = sizeof fresh->token_ids };
    r.err = err;
    hr_status status = hr_hf_file_read(&r, directory);
    if (status == HR_OK) status = find_architecture(&r, fresh);
    if (status == HR_OK) status = check_all_known(&r);
    if (status == HR_OK) status = check_sections(&r);
    for (int32_t i = 0; i < HR_HF_OPTIONS && status == HR_OK; i++)
        if (hr_hf_has(&hr_hf_options[i], r.made_by))
            status = take_row(&r, &hr_hf_options[i], fresh);
    if (status == HR_OK) status = take_scaling(&r, fresh);
    if (status == HR_OK) status = take_layers(&r, fresh);
    if (status == HR_OK) snprintf(shown, HR_PATH_BYTES, "%s", hr_hf_shown(&r));
    fresh->stored_weights = r.weights;
    return status;
}

hr_status hr_hf_config_over(const char *directory, const hr_config *config, hr_config *adopted,
                            hr_error *err)
{
    hr_error inner;
    char shown[HR_PATH_BYTES];
    hr_config_default(adopted);
    adopted->model.d_ff = 0; /* a family that does not read it derives it */
    const hr_status status = read_model(directory, adopted, shown, err);
    if (status != HR_OK) return status;
    if (adopted->model.d_ff == 0) adopted->model.d_ff = 4 * adopted->model.d_model;
    if (hr_config_check_model(adopted, &inner) != HR_OK)
        return hr_fail(err, HR_CORRUPT, "%s: %.300s", shown, inner.message);
    memcpy(adopted->model.from, config->model.from, sizeof adopted->model.from);
    adopted->model.dropout = config->model.dropout;
    adopted->model.weights = config->model.weights;
    adopted->data = config->data;
    adopted->train = config->train;
    adopted->memory = config->memory;
    adopted->stage = config->stage;
    memcpy(adopted->given, config->given, sizeof adopted->given);
    memcpy(adopted->from_recipe, config->from_recipe, sizeof adopted->from_recipe);
    adopted->old_names = config->old_names;
    return HR_OK;
}

hr_status hr_hf_config_read(const char *directory, hr_config *config, hr_error *err)
{
    hr_config adopted;
    const hr_status status = hr_hf_config_over(directory, config, &adopted, err);
    if (status == HR_OK) *config = adopted;
    return status;
}

bool hr_hf_has_tokenizer(const char *folder)
{
    static const char *const names[] = { "tokenizer.json", "vocab.json", "tokenizer.model" };
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (hr_path_join(folder, names[i], path, sizeof path, NULL) == HR_OK &&
            hr_file_exists(path))
            return true;
    return false;
}
