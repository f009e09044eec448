/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/low_rank.c - finds the parts of an adapter by name, and multiplies them row by row. */
#include "checkpoint/low_rank.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/words.h"
#include "checkpoint/names.h"
#include "checkpoint/unpack.h"
#include "checkpoint/weights_in.h"
#include "graph/program.h"
#include "hf/hf_adapter.h"
#include "model/adapter.h"
#include "model/family.h"

/* For each byte of the file: fp32 of values of two bytes or more, and doubles of lengths. */
enum { NAME_BYTES = 256, NAME_SHOWN = 120, WIDEST = 8 };

static hr_status path_of(const char *adapter, char folder[HR_PATH_BYTES], double *factor,
                         char path[HR_PATH_BYTES], hr_error *err)
{
    const hr_status status = hr_hf_adapter_split(adapter, folder, factor, err);
    return status == HR_OK ? hr_adapter_path(folder, path, err) : status;
}

/* Bytes of the file of the adapters; 0: it cannot be opened, which hr_low_rank_open reports. */
static int64_t file_bytes(const char *path)
{
    int file;
    int64_t bytes;
    hr_error ignored;
    if (hr_file_open(path, &file, &bytes, &ignored) != HR_OK) return 0;
    hr_file_close(&file);
    return bytes;
}

int64_t hr_low_rank_bytes(const char *adapter)
{
    char folder[HR_PATH_BYTES], path[HR_PATH_BYTES];
    double factor;
    hr_error ignored;
    if (path_of(adapter, folder, &factor, path, &ignored) != HR_OK) return 0;
    const int64_t header = hr_stored_bytes(path);
    return 2 * header + WIDEST * file_bytes(path) + (int64_t)sizeof(hr_config) + 5 * 64;
}

static hr_status read_configs(hr_low_rank *low, const char *base, hr_error *err)
{
    hr_config_default(low->config);
    hr_status status = hr_config_set(low->config, "model.from", base, err);
    if (status == HR_OK)
        status = hr_config_set(low->config, "train.adapter.from", low->folder, err);
    if (status == HR_OK) status = hr_config_adopt(low->config, err);
    if (status == HR_OK && low->config->train.adapter.kind == HR_ADAPTER_NPT)
        return hr_fail(err, HR_USAGE,
                       "%.200s: NPT adapters change weights with each token; choose one with "
                       "headroom adapter capture, and headroom adapter replay makes a folder of it "
                       "that can be used here",
                       low->folder);
    if (status == HR_OK)
        low->inputs_first = hr_family_of(low->config)->traits & HR_STORES_INPUTS_FIRST;
    return status;
}

hr_status hr_low_rank_open(hr_low_rank *low, const char *adapter, const char *base, void *piece,
                           int64_t piece_bytes, hr_region *region, hr_error *err)
{
    char path[HR_PATH_BYTES];
    *low = (hr_low_rank){ .piece = piece, .piece_bytes = piece_bytes, .cpu_mask = hr_cpu_detect() };
    hr_status status = path_of(adapter, low->folder, &low->factor, path, err);
    if (status != HR_OK) return status;
    low->config = hr_region_take(region, 1, sizeof *low->config);
    if (!low->config)
        return hr_fail(err, HR_FAILURE, "%.200s: out of memory for its keys", low->folder);
    status = read_configs(low, base, err);
    if (status == HR_OK) status = hr_stored_open(&low->stored, path, region, err);
    if (status != HR_OK) return status;
    low->room = file_bytes(path);
    low->used = hr_region_take(region, low->stored.tensor_count, sizeof *low->used);
    low->factors = hr_region_take(region, low->room, sizeof *low->factors);
    low->squares = hr_region_take(region, low->room / 2 + 1, sizeof *low->squares);
    if (low->used && low->factors && low->squares) return HR_OK;
    return hr_fail(err, HR_FAILURE, "%.200s: out of memory for its tensors", low->folder);
}

/* The part "lora_A.weight" or another of a matrix; null: it has none. Files of base models alone
 * lack the prefix of the architecture. */
static const hr_stored_tensor *find(const hr_low_rank *low, const hr_stored_tensor *tensor,
                                    const char *part)
{
    const char *bare = hr_name_without_prefix(tensor->name);
    for (int32_t i = 0; i < HR_PREFIXES; i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "%s%s%.*s.%s", HR_ADAPTER_PREFIX, hr_prefixes[i],
                 hr_module_length(bare), bare, part);
        const hr_stored_tensor *found = hr_stored_find(&low->stored, name);
        if (found) return found;
    }
    return NULL;
}

bool hr_low_rank_has(const hr_low_rank *low, const hr_stored_tensor *tensor)
{
    static const char *const parts[] = { "lora_A.weight", "lora_B.weight", "lora_embedding_A",
                                         "lora_embedding_B" };
    bool has = false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && tensor->rank == 2; i++)
        has |= find(low, tensor, parts[i]) != NULL;
    return has;
}

const hr_stored_tensor *hr_low_rank_instead(hr_low_rank *low, const hr_stored_tensor *tensor)
{
    const hr_stored_tensor *whole = NULL;
    const char *bare = hr_name_without_prefix(tensor->name);
    for (int32_t i = 0; i < HR_PREFIXES && !whole; i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "%s%s%s", HR_ADAPTER_PREFIX, hr_prefixes[i], bare);
        whole = hr_stored_find(&low->stored, name);
    }
    if (whole) low->used[whole - low->stored.tensors] = true;
    return whole;
}

bool hr_low_rank_is_tied(const hr_low_rank *low, const hr_stored_tensor *tensor)
{
    static const char *const names[] = { "embed_tokens.weight", "wte.weight",
                                         "embed_in.weight",     "lm_head.weight",
                                         "embed_out.weight",    "tok_emb" };
    bool named = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        named |= hr_ends_with(tensor->name, names[i]);
    return named && low->config->model.tie_embeddings == HR_TIE_TRUE;
}

/* Reads a part [dims] into `to`, turned or not. */
static hr_status read_part(hr_low_rank *low, const hr_stored_tensor *part, bool turned, float *to,
                           hr_error *err)
{
    const int64_t rows = part->dims[0], width = part->rank == 2 ? part->dims[1] : 1;
    const int64_t size = part->dtype->bits / 8;
    const int64_t step = hr_max(1, low->piece_bytes / hr_max(1, width * size));
    hr_unpack unpack = { .kind = part->dtype->kind,
                         .layout = HR_ROWS,
                         .K = turned ? width : rows,
                         .N = turned ? rows : width,
                         .transposed = turned,
                         .master = to,
                         .cpu_mask = low->cpu_mask };
    bool finite = part->dtype->kind <= HR_STORED_BF16 && width * size <= low->piece_bytes;
    for (int64_t at = 0; at < rows && finite; at += step) {
        const int64_t some = hr_min(step, rows - at);
        const hr_status status = hr_file_read(low->stored.files[part->file].file, low->stored.path,
                                              part->offset + at * width * size, low->piece,
                                              some * width * size, err);
        if (status != HR_OK) return status;
        finite = hr_unpack_take(&unpack, at, some, low->piece);
    }
    if (finite) return HR_OK;
    return hr_fail(err, HR_CORRUPT,
                   "%.200s: tensor %.*s is not F32, F16 or BF16, or has values that are NaN or Inf",
                   low->folder, NAME_SHOWN, part->name);
}

/* What the configs say about the adapter with part A. */
static hr_adapter_rule rule_of(const hr_low_rank *low, const hr_stored_tensor *a)
{
    char module[NAME_BYTES];
    snprintf(module, sizeof module, "%s", a->name + sizeof HR_ADAPTER_PREFIX - 1);
    *strstr(module, ".lora_") = 0;
    return hr_adapter_of(low->config, 0, hr_name_layer(module), module);
}

hr_status hr_low_rank_read(hr_low_rank *low, const hr_stored_tensor *part, float *values,
                           hr_error *err)
{
    return read_part(low, part, false, values, err);
}

double hr_low_rank_scale(const hr_low_rank *low, const hr_stored_tensor *part)
{
    return low->factor * (double)rule_of(low, part).scale;
}

/* Reads the magnitudes of the outputs. */
static hr_status read_magnitudes(hr_low_rank *low, const hr_stored_tensor *tensor, int64_t outputs,
                                 hr_error *err)
{
    const hr_stored_tensor *m = find(low, tensor, "lora_magnitude_vector");
    float *to = low->factors + low->rank * (low->rows + low->width);
    if (!m || m->rank != 1 || m->dims[0] != outputs)
        return hr_fail(err, HR_CORRUPT,
                       "%.200s: the adapter of %.*s has no lora_magnitude_vector of %lld elements",
                       low->folder, NAME_SHOWN, tensor->name, (long long)outputs);
    low->used[m - low->stored.tensors] = true;
    memset(low->squares, 0, (size_t)outputs * sizeof *low->squares);
    low->magnitudes = to;
    return read_part(low, m, false, to, err);
}

hr_status hr_low_rank_load(hr_low_rank *low, const hr_stored_tensor *tensor, hr_error *err)
{
    const hr_stored_tensor *a = find(low, tensor, "lora_A.weight");
    const hr_stored_tensor *b = find(low, tensor, "lora_B.weight");
    const bool looks_up = !a && !b; /* an embedding, whose inputs are its rows */
    const bool inputs_first = low->inputs_first || looks_up;
    if (looks_up) {
        a = find(low, tensor, "lora_embedding_A");
        b = find(low, tensor, "lora_embedding_B");
    }
    if (!a || !b)
        return hr_fail(err, HR_CORRUPT, "%.200s: tensor %.*s has part %c of an adapter without %c",
                       low->folder, NAME_SHOWN, tensor->name, a ? 'A' : 'B', a ? 'B' : 'A');
    const hr_adapter_rule rule = rule_of(low, a);
    const int64_t R = tensor->dims[0], W = tensor->dims[1], r = rule.rank;
    const int64_t inputs = inputs_first ? R : W, outputs = inputs_first ? W : R;
    low->rows = R;
    low->width = W;
    low->rank = r;
    low->scale = low->factor * (double)rule.scale;
    if (r == 0)
        return hr_fail(err, HR_CORRUPT,
                       "%.200s: adapter_config.json names no adapter of %.*s, and there is one",
                       low->folder, NAME_SHOWN, tensor->name);
    if (a->rank != 2 || b->rank != 2 || a->dims[0] != r || a->dims[1] != inputs ||
        b->dims[0] != outputs || b->dims[1] != r || r * (R + W) + outputs > low->room)
        return hr_fail(err, HR_CORRUPT,
                       "%.200s: the adapter of %.*s has another shape: rank %lld, %lld inputs and "
                       "%lld outputs are needed",
                       low->folder, NAME_SHOWN, tensor->name, (long long)r, (long long)inputs,
                       (long long)outputs);
    low->used[a - low->stored.tensors] = low->used[b - low->stored.tensors] = true;
    const hr_stored_tensor *of_rows = inputs_first ? a : b;
    const hr_stored_tensor *of_columns = inputs_first ? b : a;
    hr_status status = read_part(low, of_rows, inputs_first, low->factors, err);
    if (status == HR_OK)
        status = read_part(low, of_columns, inputs_first, low->factors + R * r, err);
    low->magnitudes = NULL;
    if (status == HR_OK && rule.magnitudes) status = read_magnitudes(low, tensor, outputs, err);
    return status;
}

/* Measures or sets the lengths of the outputs in a row of the matrix. */
static void scale_row(hr_low_rank *low, int64_t row, float *values)
{
    for (int64_t w = 0; w < low->width; w++) {
        const int64_t output = low->inputs_first ? w : row;
        const double square = low->squares[output];
        if (low->measures) low->squares[output] += (double)values[w] * (double)values[w];
        else
            values[w] = square > 0 ? (float)(values[w] * (low->magnitudes[output] / sqrt(square)))
                                   : 0;
    }
}

void hr_low_rank_add(hr_low_rank *low, int64_t first, int64_t count, float *values)
{
    const int64_t W = low->width, r = low->rank;
    const float *columns = low->factors + low->rows * r;
    for (int64_t i = 0; i < count; i++) {
        const float *row = low->factors + (first + i) * r;
        for (int64_t k = 0; k < r; k++) {
            const float factor = (float)(low->scale * (double)row[k]);
            for (int64_t w = 0; w < W; w++) values[i * W + w] += factor * columns[k * W + w];
        }
        if (low->magnitudes) scale_row(low, first + i, values + i * W);
    }
}

hr_status hr_low_rank_check(const hr_low_rank *low, hr_error *err)
{
    for (int32_t t = 0; t < low->stored.tensor_count; t++)
        if (!low->used[t] && !strstr(low->stored.tensors[t].name, ".base_layer."))
            return hr_fail(err, HR_CORRUPT, "%.200s: tensor %.*s belongs to no tensor of the base",
                           low->folder, NAME_SHOWN, low->stored.tensors[t].name);
    return HR_OK;
}
