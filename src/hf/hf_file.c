/* SPDX-License-Identifier: Apache-2.0 */
/* hf/hf_file.c - parses config.json. */
#include "hf/hf_file.h"

#include <stdio.h>
#include <string.h>

#include "base/directory.h"
#include "base/file.h"
#include "base/path.h"
#include "hf/hf_table.h"

enum { PATH_SHOWN = 160 };

const char *hr_hf_shown(const hr_hf_file *r)
{
    const size_t length = strlen(r->path);
    return r->path + (length > PATH_SHOWN ? length - PATH_SHOWN : 0);
}

hr_status hr_hf_fail(const hr_hf_file *r, const char *sentence)
{
    return hr_fail(r->err, HR_CORRUPT, "%s: %s", hr_hf_shown(r), sentence);
}

/* A name or value for an error message: one line, truncated. */
const char *hr_hf_quote(const char *value, int64_t bytes, char text[HR_HF_VALUE_BYTES])
{
    int32_t length = 0;
    for (int64_t i = 0; i < bytes && i < HR_HF_NAME_SHOWN; i++)
        text[length++] = (unsigned char)value[i] < ' ' || value[i] == 127 ? '?' : value[i];
    text[length] = 0;
    return text;
}

static hr_status not_json(const hr_hf_file *r, const hr_json *json)
{
    return hr_fail(r->err, HR_CORRUPT, "%s: byte %lld: %s", hr_hf_shown(r), (long long)json->at,
                   json->problem ? json->problem : "wrong type of value");
}

static bool copy_word(const hr_json *json, char word[HR_HF_VALUE_BYTES])
{
    hr_hf_quote(json->value, json->value_bytes, word);
    return json->value_bytes < HR_HF_NAME_SHOWN;
}

static hr_status read_architectures(hr_hf_file *r, hr_json *json)
{
    if (*r->architecture) return hr_hf_fail(r, "has \"architectures\" twice");
    const hr_json_kind kind = hr_json_next(json);
    if (kind == HR_JSON_NULL) return HR_OK;
    const bool named = kind == HR_JSON_ARRAY && hr_json_next(json) == HR_JSON_STRING;
    if (json->problem) return not_json(r, json);
    if (!named) return hr_hf_fail(r, "\"architectures\" is not a list with one name");
    copy_word(json, r->architecture);
    if (hr_json_next(json) == HR_JSON_CLOSE) return HR_OK;
    return json->problem ? not_json(r, json) : hr_hf_fail(r, "names more than one architecture");
}

static hr_status add_option(hr_hf_file *r, const hr_json *json, const char *section,
                            const char *name, hr_json_kind kind)
{
    char quoted[HR_HF_VALUE_BYTES];
    for (int32_t i = 0; i < r->entry_count; i++)
        if (!strcmp(r->entries[i].section, section) && !strcmp(r->entries[i].name, name))
            return hr_fail(r->err, HR_CORRUPT, "%s: has \"%s\" twice", hr_hf_shown(r),
                           hr_hf_quote(name, (int64_t)strlen(name), quoted));
    if (r->entry_count == HR_HF_ENTRIES_MAX) return hr_hf_fail(r, "has more than 256 options");
    r->entries[r->entry_count++] = (hr_hf_entry){ section, name, json->value, json->value_bytes,
                                                  kind };
    return HR_OK;
}

/* The option's name with its section. Returns its length, as snprintf. */
int hr_hf_spell(const hr_hf_entry *o, char name[HR_HF_NAME_BYTES])
{
    return snprintf(name, HR_HF_NAME_BYTES, "%s%s%s", o->section, *o->section ? "." : "", o->name);
}

/* Returns whether `names` contains the option's name. */
bool hr_hf_spells(const char *names, const hr_hf_entry *o)
{
    char name[HR_HF_NAME_BYTES];
    const int length = hr_hf_spell(o, name);
    if (length >= HR_HF_NAME_BYTES || strpbrk(o->name, " .=")) return false;
    names += *names == '=';
    for (const char *at = names; *at; at += strspn(at, " ")) {
        const size_t word = strcspn(at, " ");
        if (word == (size_t)length && !memcmp(at, name, word)) return true;
        at += word;
    }
    return false;
}

static hr_status read_layers(hr_hf_file *r, hr_json *json, int32_t list, const char *name)
{
    const hr_json_kind kind = hr_json_next(json);
    if (kind == HR_JSON_NULL) return HR_OK;
    const char *problem = kind == HR_JSON_ARRAY ? hr_hf_layers_read(json, &r->layers[list])
                                                : "is not a list";
    if (json->problem) return not_json(r, json);
    if (problem) return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\" %s", hr_hf_shown(r), name, problem);
    return add_option(r, json, "", name, HR_JSON_STRING);
}

static hr_status read_section(hr_hf_file *r, hr_json *json, const char *section)
{
    char quoted[HR_HF_VALUE_BYTES];
    hr_json_kind kind = hr_json_next(json);
    if (kind == HR_JSON_NULL) return HR_OK;
    if (kind == HR_JSON_WRONG) return not_json(r, json);
    if (kind != HR_JSON_OBJECT)
        return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\" is not a mapping", hr_hf_shown(r), section);
    while ((kind = hr_json_next(json)) == HR_JSON_KEY) {
        const char *name = json->value;
        kind = hr_json_next(json);
        if (kind == HR_JSON_WRONG) return not_json(r, json);
        if (kind == HR_JSON_OBJECT || kind == HR_JSON_ARRAY)
            return hr_fail(
                r->err, HR_CORRUPT, "%s: \"%s.%s\" has several values, only one is supported",
                hr_hf_shown(r), section, hr_hf_quote(name, (int64_t)strlen(name), quoted));
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
static hr_status read_quantization(hr_hf_file *r, hr_json *json)
{
    char method[HR_HF_VALUE_BYTES] = "";
    bool blocks = false, e4m3 = true;
    hr_json_kind kind = hr_json_next(json);
    if (kind == HR_JSON_NULL) return HR_OK;
    if (kind == HR_JSON_WRONG) return not_json(r, json);
    if (kind != HR_JSON_OBJECT)
        return hr_fail(r->err, HR_CORRUPT, "%s: \"quantization_config\" is not a mapping",
                       hr_hf_shown(r));
    while ((kind = hr_json_next(json)) == HR_JSON_KEY) {
        const bool is_method = hr_json_is(json, "quant_method"),
                   is_format = hr_json_is(json, "fmt");
        const bool is_size = hr_json_is(json, "weight_block_size");
        kind = hr_json_next(json);
        if (is_method && kind == HR_JSON_STRING)
            hr_hf_quote(json->value, json->value_bytes, method);
        if (is_format && kind != HR_JSON_NULL)
            e4m3 = kind == HR_JSON_STRING && hr_json_is(json, "e4m3");
        const bool read = is_size && kind == HR_JSON_ARRAY ? read_block_size(json, &blocks)
                                                           : hr_json_skip(json, kind);
        if (!read) return not_json(r, json);
    }
    if (kind != HR_JSON_CLOSE) return not_json(r, json);
    r->weights = HR_WEIGHTS_F8_E4M3;
    const bool fp8 = !strcmp(method, "fp8");
    if (fp8 && blocks && e4m3) return HR_OK;
    return hr_fail(r->err, HR_CORRUPT,
                   "%s: quantization_config with quant_method \"%s\"%s is not supported; headroom "
                   "reads \"fp8\" with \"fmt\": \"e4m3\" and \"weight_block_size\": [128, 128]",
                   hr_hf_shown(r), method,
                   !fp8    ? ""
                   : !e4m3 ? " and another \"fmt\""
                           : " and another \"weight_block_size\"");
}

/* Returns whether any architecture has this option. */
static bool is_option(const char *name)
{
    const hr_hf_entry o = { .section = "", .name = name };
    for (int32_t k = 0; k < HR_HF_OPTIONS; k++)
        if (hr_hf_spells(hr_hf_options[k].names, &o)) return true;
    return false;
}

static bool is_token_id(const char *name)
{
    return !strcmp(name, "bos_token_id") || !strcmp(name, "eos_token_id") ||
           !strcmp(name, "pad_token_id");
}

/* Stores one id, a list of ids or null in a uniform format. Skips anything else: it has no
 * effect. */
static hr_status read_token_id(hr_hf_file *r, hr_json *json)
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

static hr_status read_option(hr_hf_file *r, hr_json *json)
{
    const char *name = json->value;
    char quoted[HR_HF_VALUE_BYTES];
    if (!strcmp(name, "architectures")) return read_architectures(r, json);
    const int32_t list = hr_hf_layers_list(name);
    if (list < HR_HF_LISTS) return read_layers(r, json, list, name);
    if (!strcmp(name, "rope_scaling") || !strcmp(name, "rope_parameters"))
        return read_section(r, json, name);
    if (!strcmp(name, "quantization_config")) return read_quantization(r, json);
    if (is_token_id(name)) return read_token_id(r, json);
    const hr_json_kind kind = hr_json_next(json);
    if (!strcmp(name, "model_type") && kind == HR_JSON_STRING) {
        if (*r->model_type) return hr_hf_fail(r, "has \"model_type\" twice");
        copy_word(json, r->model_type);
        return HR_OK;
    }
    const bool is_dtype = !strcmp(name, "torch_dtype") || !strcmp(name, "dtype");
    if (is_dtype && kind == HR_JSON_STRING && r->weights == HR_WEIGHTS_COMPUTE)
        r->weights = hr_json_is(json, "float16")    ? HR_WEIGHTS_F16
                     : hr_json_is(json, "bfloat16") ? HR_WEIGHTS_BF16
                                                    : HR_WEIGHTS_COMPUTE;
    if (hr_hf_has_no_effect(name)) return hr_json_skip(json, kind) ? HR_OK : not_json(r, json);
    if (kind == HR_JSON_WRONG) return not_json(r, json);
    const bool several = kind == HR_JSON_OBJECT || kind == HR_JSON_ARRAY;
    if (several && !strcmp(name, "pruned_heads")) { /* an empty list is accepted */
        const hr_json_kind first = hr_json_next(json);
        if (first == HR_JSON_CLOSE) return HR_OK;
        if (first == HR_JSON_WRONG) return not_json(r, json);
    }
    if (several)
        return hr_fail(r->err, HR_CORRUPT, "%s: \"%s\" %s", hr_hf_shown(r),
                       hr_hf_quote(name, (int64_t)strlen(name), quoted),
                       is_option(name) ? "has several values, only one is supported"
                                       : "is not a known option");
    return add_option(r, json, "", name, kind);
}

static hr_status read_options(hr_hf_file *r, int64_t bytes)
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

static hr_status read_text(hr_hf_file *r, const char *directory, int64_t *bytes)
{
    int file;
    hr_status status = hr_directory_find(directory, r->err);
    if (status == HR_OK)
        status = hr_path_join(directory, "config.json", r->path, sizeof r->path, r->err);
    if (status == HR_OK) status = hr_file_open(r->path, &file, bytes, r->err);
    if (status != HR_OK) return status;
    if (*bytes > HR_HF_FILE_BYTES) status = hr_hf_fail(r, "has more than 65,536 bytes, the limit");
    else status = hr_file_read(file, r->path, 0, r->text, *bytes, r->err);
    hr_file_close(&file);
    return status;
}

hr_status hr_hf_file_read(hr_hf_file *r, const char *directory)
{
    int64_t bytes;
    r->entry_count = 0;
    for (int32_t i = 0; i < HR_HF_LISTS; i++) r->layers[i].count = 0;
    r->architecture[0] = r->model_type[0] = 0;
    r->weights = HR_WEIGHTS_COMPUTE;
    const hr_status status = read_text(r, directory, &bytes);
    return status == HR_OK ? read_options(r, bytes) : status;
}
