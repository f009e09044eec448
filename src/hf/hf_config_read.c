/* SPDX-License-Identifier: Apache-2.0 */
/* hf/hf_config_read.c - parses config.json to a list of options and applies the table to it. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "config/config_keys.h"
#include "hf/hf_config.h"
#include "hf/hf_layers.h"
#include "hf/hf_table.h"
#include "model/family.h"

enum {
    FILE_BYTES = 65536,
    OPTIONS_MAX = 256,
    VALUE_BYTES = 64,
    NAME_BYTES = 128, /* of a section and an option in it */
    PATH_SHOWN = 160,
    NAME_SHOWN = 60
};

/* ---- parsing */

typedef struct {
    const char *section, *name, *value; /* section empty: top level */
    int64_t value_bytes;
    hr_json_kind kind;
} option;

typedef struct {
    char path[PATH_MAX];
    char text[FILE_BYTES];
    option options[OPTIONS_MAX];
    int32_t option_count;
    hr_hf_layers layers[HR_HF_LISTS];
    hr_writer token_ids;                                     /* lines in the format of the file */
    char architecture[VALUE_BYTES], model_type[VALUE_BYTES]; /* empty: absent */
    int32_t made_by;                                         /* row of hr_hf_architectures */
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

/* A name or value for an error message: one line, truncated. */
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
                   json->problem ? json->problem : "wrong type of value");
}

static bool copy_word(const hr_json *json, char word[VALUE_BYTES])
{
    quote(json->value, json->value_bytes, word);
    return json->value_bytes < NAME_SHOWN;
}

static hr_status read_architectures(reader *r, hr_json *json)
{
    if (*r->architecture) return fail(r, "has \"architectures\" twice");
    const hr_json_kind kind = hr_json_next(json);
    if (kind == HR_JSON_NULL) return HR_OK;
    const bool named = kind == HR_JSON_ARRAY && hr_json_next(json) == HR_JSON_STRING;
    if (json->problem) return not_json(r, json);
    if (!named) return fail(r, "\"architectures\" is not a list with one name");
    copy_word(json, r->architecture);
    if (hr_json_next(json) == HR_JSON_CLOSE) return HR_OK;
    return json->problem ? not_json(r, json) : fail(r, "names more than one architecture");
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

/* The option's name with its section. Returns its length, as snprintf. */
static int spell(const option *o, char name[NAME_BYTES])
{
    return snprintf(name, NAME_BYTES, "%s%s%s", o->section, *o->section ? "." : "", o->name);
}

/* Returns whether `names` contains the option's name. */
static bool spells(const char *names, const option *o)
{
    char name[NAME_BYTES];
    const int length = spell(o, name);
    if (length >= NAME_BYTES || strpbrk(o->name, " .=")) return false;
    names += *names == '=';
    for (const char *at = names; *at; at += strspn(at, " ")) {
        const size_t word = strcspn(at, " ");
        if (word == (size_t)length && !memcmp(at, name, word)) return true;
        at += word;
    }
    return false;
}

static hr_status read_layers(reader *r, hr_json *json, int32_t list, const char *name)
{
    const hr_json_kind kind = hr_json_next(json);
    if (kind == HR_JSON_NULL) return HR_OK;
    const char *problem = kind == HR_JSON_ARRAY ? hr_hf_layers_read(json, &r->layers[list])
                                                : "is not a list";
    if (json->problem) return not_json(r, json);
    if (problem) return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\" %s", shown(r), name, problem);
    return add_option(r, json, "", name, HR_JSON_STRING);
}

static hr_status read_section(reader *r, hr_json *json, const char *section)
{
    char quoted[VALUE_BYTES];
    hr_json_kind kind = hr_json_next(json);
    if (kind == HR_JSON_NULL) return HR_OK;
    if (kind == HR_JSON_WRONG) return not_json(r, json);
    if (kind != HR_JSON_OBJECT)
        return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\" is not a mapping", shown(r), section);
    while ((kind = hr_json_next(json)) == HR_JSON_KEY) {
        const char *name = json->value;
        kind = hr_json_next(json);
        if (kind == HR_JSON_WRONG) return not_json(r, json);
        if (kind == HR_JSON_OBJECT || kind == HR_JSON_ARRAY)
            return hr_fail(r->err, HR_CORRUPT,
                           "%s: \"%s.%s\" has several values, only one is supported", shown(r),
                           section, quote(name, (int64_t)strlen(name), quoted));
        const hr_status status = add_option(r, json, section, name, kind);
        if (status != HR_OK) return status;
    }
    return kind == HR_JSON_CLOSE ? HR_OK : not_json(r, json);
}

/* Reads the rest of a list; `same` out: whether it is [128, 128]. */
static bool read_block_size(hr_json *json, bool *same)
{
    int32_t count = 0;
    hr_json_kind kind;
    *same = true;
    for (; (kind = hr_json_next(json)) != HR_JSON_CLOSE; count++) {
        *same = *same && kind == HR_JSON_NUMBER && hr_json_is(json, "128");
        if (!hr_json_skip(json, kind)) return false;
    }
    *same = *same && count == 2;
    return true;
}

/* Weights in F8_E4M3 with a scale for each block of 128 x 128 are read (checkpoint/block_scales.h);
 * any other quantization is refused by its name. */
static hr_status read_quantization(reader *r, hr_json *json)
{
    char method[VALUE_BYTES] = "";
    bool blocks = false, e4m3 = true;
    hr_json_kind kind = hr_json_next(json);
    if (kind == HR_JSON_NULL) return HR_OK;
    if (kind == HR_JSON_WRONG) return not_json(r, json);
    if (kind != HR_JSON_OBJECT)
        return hr_fail(r->err, HR_CORRUPT, "%s: \"quantization_config\" is not a mapping",
                       shown(r));
    while ((kind = hr_json_next(json)) == HR_JSON_KEY) {
        const bool is_method = hr_json_is(json, "quant_method"),
                   is_format = hr_json_is(json, "fmt");
        const bool is_size = hr_json_is(json, "weight_block_size");
        kind = hr_json_next(json);
        if (is_method && kind == HR_JSON_STRING) quote(json->value, json->value_bytes, method);
        if (is_format && kind != HR_JSON_NULL)
            e4m3 = kind == HR_JSON_STRING && hr_json_is(json, "e4m3");
        const bool read = is_size && kind == HR_JSON_ARRAY ? read_block_size(json, &blocks)
                                                           : hr_json_skip(json, kind);
        if (!read) return not_json(r, json);
    }
    if (kind != HR_JSON_CLOSE) return not_json(r, json);
    if (!strcmp(method, "fp8") && blocks && e4m3) return HR_OK;
    return hr_fail(r->err, HR_CORRUPT,
                   "%s: quantization_config with quant_method \"%s\" is not supported; headroom "
                   "reads \"fp8\" with \"fmt\": \"e4m3\" and \"weight_block_size\": [128, 128]",
                   shown(r), method);
}

/* Returns whether any architecture has this option. */
static bool is_option(const char *name)
{
    const option o = { .section = "", .name = name };
    for (int32_t k = 0; k < HR_HF_OPTIONS; k++)
        if (spells(hr_hf_options[k].names, &o)) return true;
    return false;
}

static bool is_token_id(const char *name)
{
    return !strcmp(name, "bos_token_id") || !strcmp(name, "eos_token_id") ||
           !strcmp(name, "pad_token_id");
}

/* Stores one id, a list of ids or null in a uniform format. Skips anything else: it has no
 * effect. */
static hr_status read_token_id(reader *r, hr_json *json)
{
    static const char digits[] = "0123456789,[] \t\r\n";
    const hr_writer before = r->token_ids;
    hr_writer *w = &r->token_ids;
    hr_put(w, "  \"%s\": ", json->value);
    const hr_json_kind kind = hr_json_next(json);
    const bool several = kind == HR_JSON_ARRAY;
    const char *from = several ? json->text + json->at - 1 : json->value;
    if (!hr_json_skip(json, kind)) return not_json(r, json);
    const int64_t bytes = several ? json->text + json->at - from : json->value_bytes;
    bool known = several || kind == HR_JSON_NUMBER;
    for (int64_t i = 0; i < bytes && known; i++) {
        known = strchr(digits, from[i]) && from[i];
        if (known && from[i] > ' ') hr_put(w, from[i] == ',' ? ", " : "%c", from[i]);
    }
    if (kind == HR_JSON_NULL) hr_put(w, "null");
    hr_put(w, ",\n");
    if ((known || kind == HR_JSON_NULL) && !w->cut) return HR_OK;
    *w = before;
    w->text[w->used] = 0;
    return HR_OK;
}

static hr_status read_option(reader *r, hr_json *json)
{
    const char *name = json->value;
    char quoted[VALUE_BYTES];
    if (!strcmp(name, "architectures")) return read_architectures(r, json);
    const int32_t list = hr_hf_layers_list(name);
    if (list < HR_HF_LISTS) return read_layers(r, json, list, name);
    if (!strcmp(name, "rope_scaling") || !strcmp(name, "rope_parameters"))
        return read_section(r, json, name);
    if (!strcmp(name, "quantization_config")) return read_quantization(r, json);
    if (is_token_id(name)) return read_token_id(r, json);
    const hr_json_kind kind = hr_json_next(json);
    if (!strcmp(name, "model_type") && kind == HR_JSON_STRING) {
        if (*r->model_type) return fail(r, "has \"model_type\" twice");
        copy_word(json, r->model_type);
        return HR_OK;
    }
    if (hr_hf_has_no_effect(name)) return hr_json_skip(json, kind) ? HR_OK : not_json(r, json);
    if (kind == HR_JSON_WRONG) return not_json(r, json);
    const bool several = kind == HR_JSON_OBJECT || kind == HR_JSON_ARRAY;
    if (several && !strcmp(name, "pruned_heads")) { /* an empty list is accepted */
        const hr_json_kind first = hr_json_next(json);
        if (first == HR_JSON_CLOSE) return HR_OK;
        if (first == HR_JSON_WRONG) return not_json(r, json);
    }
    if (several)
        return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\" %s", shown(r),
                       quote(name, (int64_t)strlen(name), quoted),
                       is_option(name) ? "has several values, only one is supported"
                                       : "is not a known option");
    return add_option(r, json, "", name, kind);
}

static hr_status read_options(reader *r, int64_t bytes)
{
    hr_json json = hr_json_over_file(r->text, bytes);
    hr_json_kind kind;
    if (hr_json_next(&json) != HR_JSON_OBJECT) return not_json(r, &json);
    while ((kind = hr_json_next(&json)) == HR_JSON_KEY) {
        const hr_status status = read_option(r, &json);
        if (status != HR_OK) return status;
    }
    if (kind != HR_JSON_CLOSE || hr_json_next(&json) != HR_JSON_END) return not_json(r, &json);
    return HR_OK;
}

/* ---- applying the table */

/* Selects by "architectures" or, if absent, by "model_type". */
static hr_status find_architecture(reader *r, hr_config *config)
{
    r->made_by = -1;
    for (int32_t i = 0; i < HR_HF_ARCHITECTURES; i++) {
        const char *name = hr_hf_architectures[i].architecture;
        if (*r->architecture ? name && !strcmp(name, r->architecture)
                             : !strcmp(hr_hf_architectures[i].family, r->model_type))
            r->made_by = i;
    }
    if (!*r->architecture && !*r->model_type)
        return fail(r, "has neither \"architectures\" nor \"model_type\"");
    const char *said = *r->architecture ? r->architecture : r->model_type;
    if (r->made_by < 0)
        return hr_fail(r->err, HR_CORRUPT, "%s: architecture %s is not supported", shown(r), said);
    const char *family = hr_hf_architectures[r->made_by].family;
    if (*r->model_type && strcmp(family, r->model_type))
        return hr_fail(r->err, HR_CORRUPT, "%s: model_type is %s, but %s is a %s", shown(r),
                       r->model_type, r->architecture, family);
    if (hr_config_set(config, "model.family", family, NULL) == HR_OK) return HR_OK;
    return hr_fail(r->err, HR_CORRUPT, "%s: architecture %s is not supported yet", shown(r), said);
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
static hr_status read_value(const reader *r, const option *o, const hr_hf_option *row,
                            char value[VALUE_BYTES])
{
    char name[VALUE_BYTES], quoted[VALUE_BYTES];
    double number;
    const int32_t key = row->key ? hr_config_row_find(row->key) : -1;
    const hr_key *is = key >= 0 ? hr_config_key(key) : NULL;
    const bool truths = !row->key && (!strcmp(row->value, "true") || !strcmp(row->value, "false"));
    const char *zero_word = is ? is->zero_word : truths ? "false" : NULL;
    quote(o->value, o->value_bytes, value);
    if (o->kind == HR_JSON_NULL && zero_word) {
        snprintf(value, VALUE_BYTES, "%s", zero_word);
        return HR_OK;
    }
    const bool truth = o->kind == HR_JSON_TRUE || o->kind == HR_JSON_FALSE;
    const bool word = o->kind == HR_JSON_STRING && strcmp(value, "true") &&
                      strcmp(value, "false") && strcmp(value, "none");
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

static hr_status take_value(const reader *r, const hr_hf_option *row, const char *name,
                            const char *value, hr_config *config)
{
    hr_error inner;
    const char *word = same_value(value, "default") ? "none" : value;
    if (row->key && hr_config_row_find(row->key) >= 0) {
        if (hr_config_set(config, row->key, word, &inner) == HR_OK) return HR_OK;
        return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\": %.300s", shown(r), name, inner.message);
    }
    if (same_value(value, row->value)) return HR_OK;
    return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\" is %s, only %s is supported", shown(r), name,
                   value, row->value);
}

/* Returns whether null means that the option is absent. */
static bool is_left_out(const hr_hf_option *row)
{
    double number;
    return row->key ? !row->value : hr_real_parse(row->value, &number);
}

/* Checks an option that sets nothing: it must agree with the key that other options set. */
static hr_status check_row(const reader *r, const hr_hf_option *row, const hr_config *config)
{
    char value[VALUE_BYTES], is[VALUE_BYTES];
    for (int32_t i = 0; i < r->option_count; i++) {
        const option *o = &r->options[i];
        if (!spells(row->names, o) || o->kind == HR_JSON_NULL) continue;
        quote(o->value, o->value_bytes, value);
        const hr_status status = hr_config_get(config, row->key, is, sizeof is, NULL);
        HR_ASSERT(status == HR_OK);
        if (!same_value(value, is))
            return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\" is %s, but the other options make %s %s",
                           shown(r), o->name, value, row->key, is);
    }
    return HR_OK;
}

static hr_status take_row(reader *r, const hr_hf_option *row, hr_config *config)
{
    if (!row->key && !row->value) return HR_OK;
    if (*row->names == '=') return check_row(r, row, config);
    char value[VALUE_BYTES] = "", other[VALUE_BYTES], name[VALUE_BYTES];
    const option *first = NULL;
    for (int32_t i = 0; i < r->option_count; i++) {
        const option *o = &r->options[i];
        if (!spells(row->names, o)) continue;
        if (o->kind == HR_JSON_NULL && is_left_out(row)) continue;
        const hr_status status = read_value(r, o, row, first ? other : value);
        if (status != HR_OK) return status;
        if (first && !same_value(value, other)) {
            char one[NAME_BYTES], two[NAME_BYTES];
            spell(first, one);
            spell(o, two);
            return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\" is %s, but \"%s\" is %s", shown(r), one,
                           value, two, other);
        }
        if (!first) first = o;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(row->names, " "), row->names);
    if (first) return take_value(r, row, first->name, value, config);
    if (row->value && *row->value) return take_value(r, row, name, row->value, config);
    if (!row->value) return HR_OK;
    return hr_fail(r->err, HR_CORRUPT, "%s: has no \"%s\"", shown(r), name);
}

static hr_status check_all_known(const reader *r)
{
    char name[VALUE_BYTES];
    for (int32_t i = 0; i < r->option_count; i++) {
        const option *o = &r->options[i];
        bool known = o->kind == HR_JSON_NULL;
        for (int32_t k = 0; k < HR_HF_OPTIONS && !known; k++)
            known = hr_hf_has(&hr_hf_options[k], r->made_by) && spells(hr_hf_options[k].names, o);
        if (!known)
            return hr_fail(r->err, HR_CORRUPT,
                           "%s: \"%s\" is not a known option of %s and may change what the model "
                           "computes",
                           shown(r), quote(o->name, (int64_t)strlen(o->name), name),
                           hr_hf_architectures[r->made_by].family);
    }
    return HR_OK;
}

/* Checks that a kind of scaling has all its numbers. */
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

static bool is_in(const reader *r, const char *section, const char *name)
{
    const bool type = !strcmp(name, "type") || !strcmp(name, "rope_type");
    for (int32_t i = 0; i < r->option_count; i++) {
        const option *o = &r->options[i];
        const bool same = !strcmp(o->name, name) ||
                          (type && (!strcmp(o->name, "type") || !strcmp(o->name, "rope_type")));
        if (!strcmp(o->section, section) && same) return true;
    }
    return false;
}

/* Checks that two sections have the same options: other software uses only one of them, and
 * versions differ in which. */
static hr_status check_sections(const reader *r)
{
    static const char *const sections[] = { "rope_scaling", "rope_parameters" };
    char quoted[VALUE_BYTES];
    bool both[2] = { false, false };
    for (int32_t i = 0; i < r->option_count; i++)
        for (int32_t k = 0; k < 2; k++) both[k] |= !strcmp(r->options[i].section, sections[k]);
    for (int32_t i = 0; i < r->option_count && both[0] && both[1]; i++) {
        const option *o = &r->options[i];
        if (!*o->section) continue;
        const char *other = sections[!strcmp(o->section, sections[0])];
        if (!is_in(r, other, o->name))
            return hr_fail(
                r->err, HR_CORRUPT, "%s: \"%s\" has \"%s\", but \"%s\" has not: remove one of them",
                shown(r), o->section, quote(o->name, (int64_t)strlen(o->name), quoted), other);
    }
    return HR_OK;
}

/* Returns the value of an option of the top level; `absent` if the file has none or null. */
static hr_status integer_of(const reader *r, const char *name, int64_t absent, int64_t *value)
{
    char text[VALUE_BYTES];
    *value = absent;
    for (int32_t i = 0; i < r->option_count; i++) {
        const option *o = &r->options[i];
        if (*o->section || strcmp(o->name, name) || o->kind == HR_JSON_NULL) continue;
        quote(o->value, o->value_bytes, text);
        const bool truth = o->kind == HR_JSON_TRUE || o->kind == HR_JSON_FALSE;
        if (truth) *value = o->kind == HR_JSON_TRUE;
        else if (o->kind != HR_JSON_NUMBER || !hr_integer_parse(text, value) || *value < 0)
            return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\" cannot be %s", shown(r), name, text);
    }
    return HR_OK;
}

/* Sets the window and the layers that have it, in families that mix layers. */
static hr_status take_layers(reader *r, hr_config *config)
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
    return hr_fail(r->err, HR_CORRUPT, "%s: %.300s", shown(r), inner.message);
}

static hr_status read_file(reader *r, const char *directory, int64_t *bytes)
{
    int file;
    hr_status status = hr_directory_find(directory, r->err);
    if (status == HR_OK)
        status = hr_path_join(directory, "config.json", r->path, sizeof r->path, r->err);
    if (status == HR_OK) status = hr_file_open(r->path, &file, bytes, r->err);
    if (status != HR_OK) return status;
    if (*bytes > FILE_BYTES) status = fail(r, "has more than 65,536 bytes, the limit");
    else status = hr_file_read(file, r->path, 0, r->text, *bytes, r->err);
    hr_file_close(&file);
    return status;
}

hr_status hr_hf_config_read(const char *directory, hr_config *config, hr_error *err)
{
    reader r;
    hr_config fresh, taken;
    hr_error inner;
    int64_t bytes;
    hr_config_default(&fresh);
    r.option_count = 0;
    for (int32_t i = 0; i < HR_HF_LISTS; i++) r.layers[i].count = 0;
    r.token_ids = (hr_writer){ .text = fresh.token_ids, .bytes = sizeof fresh.token_ids };
    r.architecture[0] = r.model_type[0] = 0;
    r.err = err;
    fresh.model.d_ff = 0; /* a family that does not read it derives it */
    hr_status status = read_file(&r, directory, &bytes);
    if (status == HR_OK) status = read_options(&r, bytes);
    if (status == HR_OK) status = find_architecture(&r, &fresh);
    if (status == HR_OK) status = check_all_known(&r);
    if (status == HR_OK) status = check_sections(&r);
    for (int32_t i = 0; i < HR_HF_OPTIONS && status == HR_OK; i++)
        if (hr_hf_has(&hr_hf_options[i], r.made_by))
            status = take_row(&r, &hr_hf_options[i], &fresh);
    if (status == HR_OK) status = check_scaling(&r, &fresh);
    if (status == HR_OK) status = take_layers(&r, &fresh);
    if (status != HR_OK) return status;
    if (fresh.model.d_ff == 0) fresh.model.d_ff = 4 * fresh.model.d_model;
    if (hr_config_check_model(&fresh, &inner) != HR_OK)
        return hr_fail(err, HR_CORRUPT, "%s: %.300s", shown(&r), inner.message);
    taken = *config;
    taken.model = fresh.model;
    memcpy(taken.token_ids, fresh.token_ids, sizeof taken.token_ids);
    memcpy(taken.model.from, config->model.from, sizeof taken.model.from);
    taken.model.dropout = config->model.dropout;
    *config = taken;
    return HR_OK;
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
