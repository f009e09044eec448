/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/sidecar_files.c - copies config.json with its dtype and quantization updated, all
 * other files unchanged. */
#include "checkpoint/sidecar_files.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/path.h"
#include "hf/hf_config.h"

static const char *const names[HR_SIDECAR_FILES] = {
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "chat_template.jinja",
};

bool hr_sidecar_files_have(const char *name)
{
    for (int32_t i = 0; i < HR_SIDECAR_FILES; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

typedef struct {
    int64_t begin, end;
} span;

/* The dtype's name in PyTorch; empty for F8_E4M3, beside which the old dtype stays in use. */
static const char *torch_name(const hr_stored_dtype *dtype)
{
    return dtype->kind == HR_STORED_F32    ? "float32"
           : dtype->kind == HR_STORED_F16  ? "float16"
           : dtype->kind == HR_STORED_BF16 ? "bfloat16"
                                           : "";
}

/* Positions in a config, in order. */
typedef struct {
    span dtypes[2]; /* values of "torch_dtype" and "dtype" */
    int32_t dtype_count;
    span quantization; /* the entry, with one comma; empty: none */
    int64_t inside;    /* after the first brace, if there is an entry; otherwise 0 */
} positions;

/* The entry that begins at `from`, with the comma after it or, for the last entry, before it. */
static span entry_of(const char *text, int64_t from, int64_t to, int64_t bytes)
{
    int64_t next = to;
    while (next < bytes && strchr(" \t\r\n", text[next])) next++;
    if (next < bytes && text[next] == ',') {
        next++;
        while (next < bytes && strchr(" \t\r\n", text[next])) next++;
        return (span){ from, next };
    }
    while (from > 0 && strchr(" \t\r\n", text[from - 1])) from--;
    return (span){ from > 0 && text[from - 1] == ',' ? from - 1 : from, to };
}

/* Finds what a conversion changes. Parses a copy, because the parser decodes strings in place.
 * Returns null, or the error in the text. */
static const char *find_positions(const char *text, char *copy, int64_t bytes, positions *found)
{
    hr_json json = hr_json_over_file(copy, bytes);
    hr_json_kind kind = hr_json_next(&json);
    const int64_t inside = json.at;
    *found = (positions){ 0 };
    if (kind != HR_JSON_OBJECT) return json.problem ? json.problem : "not an object";
    while ((kind = hr_json_next(&json)) == HR_JSON_KEY) {
        found->inside = inside;
        const bool is_dtype = hr_json_is(&json, "torch_dtype") || hr_json_is(&json, "dtype");
        const bool is_quantization = hr_json_is(&json, "quantization_config");
        const int64_t from = json.value - 1 - copy;
        kind = hr_json_next(&json);
        if (is_dtype && kind == HR_JSON_STRING && found->dtype_count < 2)
            found->dtypes[found->dtype_count++] = (span){ json.value - copy, json.at - 1 };
        else if (!hr_json_skip(&json, kind)) return json.problem;
        if (is_quantization) found->quantization = entry_of(text, from, json.at, bytes);
    }
    if (kind == HR_JSON_CLOSE) kind = hr_json_next(&json);
    return kind == HR_JSON_END ? NULL : json.problem;
}

/* Reads the config into memory and finds what may change. */
static hr_status read_config(const hr_sidecar_files *c, const char *path, int64_t *bytes,
                             positions *found, hr_error *err)
{
    char *text = c->memory, *copy = text + HR_SIDECAR_FILE_BYTES / 2;
    int file;
    hr_status status = hr_file_open(path, &file, bytes, err);
    if (status != HR_OK) return status;
    if (*bytes >= HR_SIDECAR_FILE_BYTES / 2)
        status = hr_fail(err, HR_CORRUPT, "%.200s: has %lld bytes, the limit is %d", path,
                         (long long)*bytes, HR_SIDECAR_FILE_BYTES / 2 - 1);
    else status = hr_file_read(file, path, 0, text, *bytes, err);
    hr_file_close(&file);
    if (status != HR_OK) return status;
    memcpy(copy, text, (size_t)*bytes);
    const char *problem = find_positions(text, copy, *bytes, found);
    if (!problem) return HR_OK;
    return hr_fail(err, HR_CORRUPT, "%.200s: not JSON: %s", path, problem);
}

/* Appends the config up to `edit`, and `text` in place of it. */
static hr_status replace(hr_file_out *out, const char *config, int64_t *taken, span edit,
                         const char *text, hr_error *err)
{
    const hr_status status = hr_file_append(out, config + *taken, edit.begin - *taken, err);
    *taken = edit.end;
    return status == HR_OK ? hr_file_append(out, text, (int64_t)strlen(text), err) : status;
}

/* Writes the config with the dtype and the quantization of the converted weights. */
static hr_status write_config(const hr_sidecar_files *c, const char *path, hr_error *err)
{
    positions found;
    int64_t bytes, taken = 0;
    hr_file_out out;
    hr_status status = read_config(c, path, &bytes, &found, err);
    if (status != HR_OK) return status;
    const char *text = c->memory, *name = c->dtype ? torch_name(c->dtype) : "";
    bool dropped = (!c->quantized && !c->dequantized) || !found.quantization.end;
    status = hr_file_begin(&out, c->destination, names[0], err);
    if (status == HR_OK && c->quantized && found.inside)
        status = replace(&out, text, &taken, (span){ found.inside, found.inside }, "\n  ", err);
    if (status == HR_OK && c->quantized && found.inside)
        status = replace(&out, text, &taken, (span){ found.inside, found.inside },
                         hr_hf_quantization, err);
    for (int32_t i = 0; i <= found.dtype_count && status == HR_OK; i++) {
        const bool last = i == found.dtype_count;
        if (!dropped && (last || found.dtypes[i].begin > found.quantization.begin)) {
            status = replace(&out, text, &taken, found.quantization, "", err);
            dropped = true;
        }
        if (status == HR_OK && !last && *name)
            status = replace(&out, text, &taken, found.dtypes[i], name, err);
    }
    if (status == HR_OK) status = hr_file_append(&out, text + taken, bytes - taken, err);
    return status == HR_OK ? hr_file_commit(&out, err) : status;
}

/* The path of a sidecar file in the source; `there` is false if it does not exist. */
static hr_status find_sidecar(const hr_sidecar_files *c, int32_t which, char path[PATH_MAX],
                              bool *there, hr_error *err)
{
    *there = false;
    if (!c->source) return HR_OK;
    const hr_status status = hr_path_join(c->source, names[which], path, PATH_MAX, err);
    if (status == HR_OK) *there = hr_file_exists(path);
    return status;
}

hr_status hr_sidecar_files_check(const hr_sidecar_files *c, hr_error *err)
{
    char path[PATH_MAX];
    positions found;
    int64_t bytes;
    for (int32_t i = 0; i < HR_SIDECAR_FILES; i++) {
        bool there;
        hr_status status = find_sidecar(c, i, path, &there, err);
        if (status == HR_OK && there && i == 0) status = read_config(c, path, &bytes, &found, err);
        if (status == HR_OK && there)
            status = hr_path_join(c->destination, names[i], path, sizeof path, err);
        if (status != HR_OK) return status;
        if (there && hr_file_exists(path))
            return hr_fail(err, HR_USAGE, "%.200s: already has %s; give another folder",
                           c->destination, names[i]);
    }
    return HR_OK;
}

hr_status hr_sidecar_files_copy(hr_sidecar_files *c, hr_error *err)
{
    char path[PATH_MAX];
    hr_status status = HR_OK;
    for (int32_t i = 0; i < HR_SIDECAR_FILES && status == HR_OK; i++) {
        bool there;
        status = find_sidecar(c, i, path, &there, err);
        if (status != HR_OK || !there) continue;
        if (i == 0) status = write_config(c, path, err);
        else
            status = hr_file_copy(path, c->destination, names[i], c->memory, HR_SIDECAR_FILE_BYTES,
                                  err);
        c->copied[i] = status == HR_OK;
    }
    return status;
}

void hr_sidecar_files_remove(const hr_sidecar_files *c)
{
    char path[PATH_MAX];
    for (int32_t i = 0; i < HR_SIDECAR_FILES; i++)
        if (c->copied[i] &&
            hr_path_join(c->destination, names[i], path, sizeof path, NULL) == HR_OK)
            unlink(path);
}
