/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/weights_in.c - matches names and shapes at opening, then reads the data in chunks. */
#define _GNU_SOURCE
#include "checkpoint/weights_in.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/directory.h"
#include "base/path.h"
#include "base/words.h"
#include "checkpoint/names.h"
#include "checkpoint/repack.h"
#include "checkpoint/unpack.h"
#include "config/config.h"

enum { NAME_BYTES = 128, NAME_SHOWN = 120 };

/* Buffers that are not weights. */
static const char *const buffers[] = {
    ".attention.bias",       ".attention.masked_bias", ".attn.bias",
    ".attn.masked_bias",     ".rotary_emb.inv_freq",   ".rotary_emb.cos_cached",
    ".rotary_emb.sin_cached"
};

/* Names of a head, or of its copy if the head is tied to the embedding table. */
static const char *const heads[] = { "lm_head.weight", "embed_out.weight" };

int64_t hr_weights_width_most(const hr_config *config)
{
    /* Products side by side: q, k, v and the like, of heads that may be wider than the model. */
    enum { BESIDE = 4 };
    const int64_t attention = hr_max(config->model.n_heads, 1) * hr_config_head_dim(config);
    return hr_max(config->model.vocab_size,
                  BESIDE * hr_max(attention, hr_max(config->model.d_model, config->model.d_ff)));
}

int64_t hr_weights_in_bytes(const hr_program *program)
{
    return program->param_count * (int64_t)(sizeof(hr_weights_source) + sizeof(hr_block_scales)) +
           HR_STORED_FILES_MAX * (int64_t)sizeof(int) + 3 * 64;
}

int64_t hr_weights_in_kept_bytes(const hr_program *program)
{
    return program->param_count * (int64_t)sizeof(hr_weights_source) + (int64_t)sizeof(int) +
           2 * 64;
}

int64_t hr_weights_in_scratch_bytes(const char *path)
{
    /* One flag byte for each tensor. */
    const int64_t bytes = hr_stored_bytes(path);
    return bytes + bytes / (int64_t)sizeof(hr_stored_tensor) + 64;
}

hr_status hr_weights_in_check(const char *path, hr_error *err)
{
    const hr_status status = hr_directory_find(path, err);
    return status == HR_OK ? hr_stored_check(path, err) : status;
}

/* ---- names */

/* Finds the one tensor with a parameter's name, with any prefix. */
static hr_status find(const hr_stored *stored, const char *path, const char *wanted,
                      const hr_stored_tensor **found, hr_error *err)
{
    const char *bare = hr_name_without_prefix(wanted);
    *found = NULL;
    for (int32_t i = 0; i < HR_PREFIXES; i++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "%s%s", hr_prefixes[i], bare);
        const hr_stored_tensor *tensor = hr_stored_find(stored, name);
        if (!tensor) continue;
        if (*found)
            return hr_fail(err, HR_CORRUPT, "%s: has both %s and %s: remove one of them",
                           hr_path_shown(path), (*found)->name, tensor->name);
        *found = tensor;
    }
    if (*found) return HR_OK;
    return hr_fail(err, HR_CORRUPT, "%s: has no tensor %s%s", hr_path_shown(path), wanted,
                   !strncmp(wanted, HR_ADAPTER_PREFIX, sizeof HR_ADAPTER_PREFIX - 1)
                       ? ""
                       : ", with or without a prefix");
}

static bool is_buffer(const char *name)
{
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (hr_ends_with(name, buffers[i])) return true;
    return false;
}

static bool is_head(const char *name)
{
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (!strcmp(name, heads[i])) return true;
    return false;
}

/* ---- shapes */

static hr_status check_shape(const char *path, const hr_param *param,
                             const hr_stored_tensor *tensor, hr_error *err)
{
    const bool vector = param->dims[1] == 0;
    const int32_t first = param->external_transposed && !vector ? 1 : 0;
    hr_stored_tensor expected = { .rank = vector ? 1 : 2,
                                  .dims = { param->dims[first], param->dims[1 - first] } };
    char is[64], needed[64];
    if (param->rule.stack) {
        const int64_t stack = param->rule.stack, *dims = expected.dims;
        const bool columns = param->rule.stacks_columns;
        expected = (hr_stored_tensor){ .rank = 3,
                                       .dims = { stack, columns ? dims[0] : dims[0] / stack,
                                                 columns ? dims[1] / stack : dims[1] } };
    }
    const bool same = tensor->rank == expected.rank &&
                      !memcmp(tensor->dims, expected.dims,
                              (size_t)expected.rank * sizeof *expected.dims);
    if (!same)
        return hr_fail(err, HR_CORRUPT, "%s: tensor %.*s is %s, the configuration implies %s",
                       hr_path_shown(path), NAME_SHOWN, tensor->name,
                       hr_stored_shape(tensor, is, sizeof is),
                       hr_stored_shape(&expected, needed, sizeof needed));
    if (tensor->dtype->kind >= HR_STORED_U8)
        return hr_fail(err, HR_CORRUPT,
                       "%s: tensor %.*s is %s; weights are F32, F16, BF16 or F8_E4M3",
                       hr_path_shown(path), NAME_SHOWN, tensor->name, tensor->dtype->name);
    const hr_weight_format *format = hr_weight_format_of(param->format);
    if (!format->file_dtype || !strcmp(tensor->dtype->name, format->file_dtype)) return HR_OK;
    return hr_fail(
        err, HR_CORRUPT,
        "%s: tensor %.*s is %s, weights stored as %s must be %s; convert the folder with "
        "headroom convert --dtype %s, or store weights as compute",
        hr_path_shown(path), NAME_SHOWN, tensor->name, tensor->dtype->name, format->name,
        format->file_dtype, format->name);
}

/* Compares two tensors in chunks on the stack. */
static hr_status compare_bytes(const hr_stored *stored, const hr_stored_tensor *head,
                               const hr_stored_tensor *table, bool *same, hr_error *err)
{
    char a[8192], b[8192];
    *same = true;
    for (int64_t at = 0; at < head->bytes && *same; at += (int64_t)sizeof a) {
        const int64_t part = hr_min((int64_t)sizeof a, head->bytes - at);
        hr_status status = hr_file_read(stored->files[head->file].file, stored->path,
                                        head->offset + at, a, part, err);
        if (status == HR_OK)
            status = hr_file_read(stored->files[table->file].file, stored->path, table->offset + at,
                                  b, part, err);
        if (status != HR_OK) return status;
        *same = !memcmp(a, b, (size_t)part);
    }
    return HR_OK;
}

/* A stored copy of a tied head must equal the embedding table byte for byte. */
static hr_status check_copy(const hr_weights_in *in, const hr_stored *stored,
                            const hr_stored_tensor *head, hr_error *err)
{
    const hr_param *param = &in->program->params[0]; /* the embedding table, in every family */
    const hr_stored_tensor *table;
    bool same = false;
    hr_status status = find(stored, in->path, param->external_name, &table, err);
    if (status == HR_OK) status = check_shape(in->path, param, head, err);
    if (status != HR_OK) return status;
    if (head->dtype != table->dtype)
        return hr_fail(err, HR_CORRUPT,
                       "%s: tensor %s is %s, but %s, the output head by config.json, is %s",
                       hr_path_shown(in->path), head->name, head->dtype->name, table->name,
                       table->dtype->name);
    status = compare_bytes(stored, head, table, &same, err);
    if (status != HR_OK || same) return status;
    return hr_fail(err, HR_CORRUPT,
                   "%s: config.json ties the embeddings, but tensors %s and %s differ; set "
                   "\"tie_word_embeddings\": false to load both",
                   hr_path_shown(in->path), head->name, table->name);
}

/* PEFT copies a whole head or table into the file of its adapters; the base is read instead. Null,
 * or the parameter that a tensor is such a copy of. */
static const hr_param *copied_from(const hr_program *program, const char *name)
{
    static const char end[] = ".base_layer.weight";
    const size_t before = sizeof HR_ADAPTER_PREFIX - 1, after = sizeof end - 1;
    const size_t length = strlen(name);
    if (length <= before + after || strcmp(name + length - after, end)) return NULL;
    for (int32_t p = 0; p < program->param_count; p++) {
        const char *own = hr_param_name_in_model(&program->params[p]);
        const size_t module = (size_t)hr_module_length(own);
        if (module == length - before - after && !strncmp(own, name + before, module))
            return &program->params[p];
    }
    return NULL;
}

/* Checks a tensor that is not a parameter: it must be a buffer, or a copy of a tied embedding
 * table. A tied table is marked by external_transposed, because the head's product reads it as a
 * matrix. */
static hr_status check_other(const hr_weights_in *in, const hr_stored *stored,
                             const hr_stored_tensor *tensor, hr_error *err)
{
    const bool ties = in->program->param_count && in->program->params[0].external_transposed;
    const hr_param *copied = copied_from(in->program, tensor->name);
    if (is_buffer(tensor->name)) return HR_OK;
    if (copied) return check_shape(in->path, copied, tensor, err);
    if (ties && is_head(tensor->name)) return check_copy(in, stored, tensor, err);
    return hr_fail(err, HR_CORRUPT, "%s: tensor %.*s does not belong to this model",
                   hr_path_shown(in->path), NAME_SHOWN, tensor->name);
}

static hr_status find_all(hr_weights_in *in, int32_t part, const hr_stored *stored, uint8_t *used,
                          hr_error *err)
{
    hr_status status = HR_OK;
    for (int32_t p = 0; p < in->program->param_count; p++) {
        const hr_param *param = &in->program->params[p];
        const hr_stored_tensor *tensor;
        const bool adapts = part >= HR_PART_ADAPTERS;
        if (adapts ? !hr_param_is_in_adapters(param) || param->rule.which != part - HR_PART_ADAPTERS
                   : param->adapts != HR_NONE)
            continue;
        status = find(stored, in->path,
                      adapts ? param->external_name : hr_param_name_in_model(param), &tensor, err);
        if (status == HR_OK) status = check_shape(in->path, param, tensor, err);
        if (status != HR_OK) return status;
        used[tensor - stored->tensors] = 1;
        if (tensor->dtype->kind == HR_STORED_E4M3) {
            const hr_stored_tensor *scales;
            status = hr_block_scales_find(stored, tensor, &in->scales[p], &scales, err);
            if (status != HR_OK) return status;
            used[scales - stored->tensors] = 1;
        }
        in->sources[p] = (hr_weights_source){ tensor->offset, tensor->file, tensor->dtype->kind };
    }
    for (int32_t t = 0; t < stored->tensor_count && status == HR_OK; t++)
        if (!used[t]) status = check_other(in, stored, &stored->tensors[t], err);
    return status;
}

hr_status hr_adapter_path(const char *folder, char path[HR_PATH_BYTES], hr_error *err)
{
    char pickle[HR_PATH_BYTES];
    hr_status status = hr_path_join(folder, "npt_model.safetensors", path, HR_PATH_BYTES, err);
    if (status != HR_OK || hr_file_exists(path)) return status;
    status = hr_path_join(folder, "adapter_model.bin", pickle, sizeof pickle, err);
    if (status == HR_OK)
        status = hr_path_join(folder, "adapter_model.safetensors", path, HR_PATH_BYTES, err);
    if (status != HR_OK || hr_file_exists(path) || !hr_file_exists(pickle)) return status;
    return hr_fail(err, HR_USAGE,
                   "%.300s: a pickle, which is never read because it can run code; save the "
                   "adapters as safetensors",
                   pickle);
}

hr_status hr_weights_in_open(hr_weights_in *in, const hr_program *program, int32_t part,
                             const char *path, uint32_t cpu_mask, hr_region *kept,
                             hr_region *scratch, hr_error *err)
{
    hr_stored stored;
    *in = (hr_weights_in){ .program = program, .path = path, .cpu_mask = cpu_mask };
    hr_status status = hr_stored_open(&stored, path, scratch, err);
    if (status != HR_OK) return status;
    uint8_t *used = hr_region_take(scratch, stored.tensor_count, 1);
    in->sources = hr_region_take(kept, program->param_count, sizeof *in->sources);
    in->scales = hr_region_take(kept, program->param_count, sizeof *in->scales);
    in->files = hr_region_take(kept, HR_STORED_FILES_MAX, sizeof *in->files);
    if (!used || !in->sources || !in->scales || !in->files)
        status = hr_fail(err, HR_FAILURE, "%s: out of memory for the table of weights",
                         hr_path_shown(path));
    else status = find_all(in, part, &stored, used, err);
    for (int32_t f = 0; status == HR_OK && f < stored.file_count; f++) {
        in->files[in->file_count++] = stored.files[f].file; /* the table now owns the descriptor */
        stored.files[f].file = -1;
        posix_fadvise(in->files[f], 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    hr_stored_close(&stored);
    return status;
}

/* Compares in chunks on the stack: the header may be large, and the expected text is already in
 * memory. */
static hr_status compare_header(int file, const char *path, const char *header, int64_t bytes,
                                hr_error *err)
{
    char piece[4096];
    for (int64_t at = 0; at < bytes; at += (int64_t)sizeof piece) {
        const int64_t part = hr_min((int64_t)sizeof piece, bytes - at);
        const hr_status status = hr_file_read(file, path, at, piece, part, err);
        if (status != HR_OK) return status;
        if (memcmp(piece, header + at, (size_t)part))
            return hr_fail(err, HR_CORRUPT, "%s: belongs to another model or program version",
                           hr_path_shown(path));
    }
    return HR_OK;
}

static hr_stored_kind kind_of(const hr_weight_format *format)
{
    return format->file_dtype ? hr_stored_dtype_find(format->file_dtype)->kind : HR_STORED_F32;
}

hr_status hr_weights_in_open_kept(hr_weights_in *in, const hr_program *program, hr_kept kept,
                                  const char *directory, uint32_t cpu_mask, char *text,
                                  int64_t bytes, hr_error *err)
{
    char path[PATH_MAX];
    int64_t file_bytes, offset = hr_weights_header(program, kept, text, bytes);
    const int64_t all_bytes = offset + hr_kept_bytes(program, kept);
    in->program = program;
    in->kept = kept;
    in->scales = NULL;
    in->path = hr_kept_name(program, kept);
    in->file_count = 0;
    in->cpu_mask = cpu_mask;
    hr_status status = hr_path_join(directory, in->path, path, sizeof path, err);
    if (status == HR_OK) status = hr_file_open(path, in->files, &file_bytes, err);
    if (status != HR_OK) return status;
    in->file_count = 1;
    if (file_bytes != all_bytes)
        return hr_fail(err, HR_CORRUPT, "%s: has %lld bytes, %lld are needed", hr_path_shown(path),
                       (long long)file_bytes, (long long)all_bytes);
    for (int32_t p = 0; p < program->param_count; p++) {
        in->sources[p] = (hr_weights_source){ offset, 0,
                                              kind_of(hr_kept_format(program, p, kept)) };
        if (hr_kept_tensor(program, p, kept) != HR_NONE)
            offset += hr_kept_bytes_of(program, p, kept);
    }
    return compare_header(in->files[0], path, text, offset - hr_kept_bytes(program, kept), err);
}

void hr_weights_in_close(hr_weights_in *in)
{
    for (int32_t f = 0; f < in->file_count; f++) hr_file_close(&in->files[f]);
    *in = (hr_weights_in){ 0 };
}

/* ---- bytes */

static hr_unpack unpack_of(const hr_weights_in *in, int32_t index)
{
    const hr_kept_shape shape = hr_kept_shape_of(in->program, index, in->kept);
    const int32_t to = in->kept == HR_KEPT_WEIGHTS ? in->program->params[index].master
                                                   : hr_kept_tensor(in->program, index, in->kept);
    const hr_tensor *tensor = &in->program->tensors[to];
    return (hr_unpack){ .kind = in->sources[index].kind,
                        .layout = (hr_layout)tensor->layout,
                        .K = shape.K,
                        .N = shape.N,
                        .transposed = shape.transposed,
                        .groups = shape.groups,
                        .cpu_mask = in->cpu_mask };
}

/* Whole panels if they fit, otherwise an even number of rows, as the pair layout needs. Rows of
 * E4M3 lie in one row of blocks: their number divides 128. */
static int64_t rows_of_piece(const hr_unpack *unpack, int64_t staging_bytes)
{
    const int64_t row_bytes = hr_unpack_width(unpack) * hr_stored_kind_bytes(unpack->kind);
    int64_t rows = hr_min(staging_bytes / row_bytes, hr_unpack_rows(unpack));
    HR_ASSERT(rows > 0);
    if (unpack->kind == HR_STORED_E4M3) {
        int64_t divisor = HR_SCALE_BLOCK;
        while (divisor > rows && rows < hr_unpack_rows(unpack)) divisor /= 2;
        rows = hr_min(divisor, rows);
    }
    if (rows == 1 || rows == hr_unpack_rows(unpack)) return rows;
    return rows < HR_PANEL_WIDTH ? rows / 2 * 2 : rows / HR_PANEL_WIDTH * HR_PANEL_WIDTH;
}

/* As above, of some rows. */
static hr_unpack unpack_rows(const hr_weights_in *in, int32_t param, hr_weights_place place)
{
    hr_unpack unpack = unpack_of(in, param);
    HR_ASSERT(!place.rows || (unpack.transposed && unpack.groups <= 1));
    if (place.rows) unpack.N = place.rows;
    unpack.master = place.master;
    unpack.weight = place.weight;
    unpack.residual = place.residual;
    return unpack;
}

int64_t hr_weights_in_pieces(const hr_weights_in *in, int32_t param, hr_weights_place place,
                             int64_t staging_bytes)
{
    const hr_unpack unpack = unpack_rows(in, param, place);
    const int64_t rows = rows_of_piece(&unpack, staging_bytes);
    return (hr_unpack_rows(&unpack) + rows - 1) / rows;
}

int64_t hr_weights_in_bytes_of(const hr_weights_in *in, int32_t param, hr_weights_place place)
{
    const hr_unpack unpack = unpack_rows(in, param, place);
    return hr_unpack_rows(&unpack) * hr_unpack_width(&unpack) * hr_stored_kind_bytes(unpack.kind);
}

int64_t hr_weights_in_bytes_of_tensor(const hr_weights_in *in, int32_t weight)
{
    const hr_tensor *tensor = &in->program->tensors[weight];
    const int32_t root = hr_tensor_root(in->program, weight);
    int32_t p = 0;
    while (in->program->params[p].weight != root) p++;
    const hr_weights_place place = { .rows = weight == root ? 0 : tensor->dims[1] };
    return hr_weights_in_bytes_of(in, p, place);
}

/* The scales of an E4M3 parameter. In a file of headroom's own they follow the matrix. */
static hr_block_scales scales_of(const hr_weights_in *in, int32_t param)
{
    if (in->scales) return in->scales[param];
    const hr_unpack unpack = unpack_of(in, param);
    const int64_t bytes = hr_unpack_rows(&unpack) * hr_unpack_width(&unpack);
    return (hr_block_scales){ .offset = in->sources[param].offset + bytes,
                              .columns = (int32_t)hr_scale_blocks(hr_unpack_width(&unpack)),
                              .kind = HR_STORED_F32 };
}

/* The scales of row `row` of an E4M3 parameter. */
static hr_status read_scales(const hr_weights_in *in, int32_t param, int64_t row,
                             float scales[HR_SCALES_MAX], hr_error *err)
{
    const hr_block_scales of = scales_of(in, param);
    return hr_block_scales_read(&of, in->files[of.file], in->path, row / HR_SCALE_BLOCK, scales,
                                err);
}

/* Keeps the elements as they are. The first chunk of a row of blocks keeps its scales. */
static bool take_stored(const hr_weights_in *in, int32_t param, const hr_unpack *unpack,
                        int64_t first, int64_t count, const void *rows, hr_weights_place place)
{
    const hr_weight_format *format = hr_kept_format(in->program, param, in->kept);
    const hr_repack repack = { .layout = unpack->layout,
                               .K = unpack->K,
                               .N = unpack->N,
                               .transposed = unpack->transposed,
                               .element_bytes = hr_dtype_bytes(format->dtype),
                               .pad = place.zero };
    const int64_t width = hr_unpack_width(unpack), columns = hr_scale_blocks(width);
    hr_repack_take(&repack, first, count, rows, place.weight);
    if (unpack->scales && first % HR_SCALE_BLOCK == 0)
        memcpy(place.scales + first / HR_SCALE_BLOCK * columns, unpack->scales,
               (size_t)columns * sizeof *place.scales);
    const uint32_t most = in->program->dtype == HR_BF16 ? HR_UNPACK_MOST_BF16 : HR_UNPACK_MOST_F32;
    return hr_repack_is_finite(format, rows, count, width, unpack->scales, most);
}

/* The path of an open file, or of its folder. */
static const char *path_of(const hr_weights_in *in, int32_t file, char path[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", in->files[file]);
    const ssize_t length = in->streams ? readlink(link, path, PATH_MAX - 1) : -1;
    if (length <= 0) return in->path;
    path[length] = 0;
    return hr_path_shown(path);
}

/* Reads bytes of a file to `to`, or by direct I/O to where `to` then points. */
static hr_status read_bytes(const hr_weights_in *in, int32_t file, int64_t offset, int64_t bytes,
                            void **to, hr_error *err)
{
    enum { ALIGN = 8 };
    char path[PATH_MAX];
    hr_error own;
    if (!err) err = &own;
    const char *shown = path_of(in, file, path);
    if (!in->direct) {
        const hr_status status = hr_file_read(in->files[file], shown, offset, *to, bytes, err);
        if (in->streams) posix_fadvise(in->files[file], offset, bytes, POSIX_FADV_DONTNEED);
        return status;
    }
    void *blocks = *to;
    *to = hr_file_read_direct(in->direct[file], shown, offset, blocks, bytes, err);
    if (!*to) return err->status;
    if (offset % ALIGN) *to = memmove(blocks, *to, (size_t)bytes); /* rare: other writers align */
    return HR_OK;
}

static hr_status refuse_values(const hr_weights_in *in, int32_t param, hr_error *err)
{
    return hr_fail(err, HR_CORRUPT, "%s: tensor %s has NaN or Inf values", hr_path_shown(in->path),
                   in->program->params[param].external_name);
}

hr_status hr_weights_in_take_row(const hr_weights_in *in, int32_t param, int64_t row, void *to,
                                 void *staging, hr_error *err)
{
    const hr_weights_source *source = &in->sources[param];
    const hr_unpack whole = unpack_of(in, param);
    const int64_t width = hr_unpack_width(&whole);
    const int64_t bytes = width * hr_stored_kind_bytes(whole.kind);
    const hr_tensor *weight = &in->program->tensors[in->program->params[param].weight];
    const bool wide = weight->dtype == HR_F32;
    float scales[HR_SCALES_MAX];
    const hr_unpack unpack = { .kind = whole.kind,
                               .layout = HR_ROWS,
                               .K = 1,
                               .N = width,
                               .master = wide ? to : NULL,
                               .weight = wide ? NULL : to,
                               .cpu_mask = in->cpu_mask,
                               .scales = whole.kind == HR_STORED_E4M3 ? scales : NULL };
    HR_ASSERT(row >= 0 && row < hr_unpack_rows(&whole));
    hr_status status = read_bytes(in, source->file, source->offset + row * bytes, bytes, &staging,
                                  err);
    if (status == HR_OK && unpack.scales) status = read_scales(in, param, row, scales, err);
    if (status != HR_OK) return status;
    return hr_unpack_take(&unpack, 0, 1, staging) ? HR_OK : refuse_values(in, param, err);
}

hr_status hr_weights_in_take(const hr_weights_in *in, int32_t param, int64_t piece,
                             hr_weights_place place, void *staging, int64_t staging_bytes,
                             hr_error *err)
{
    const hr_weights_source *source = &in->sources[param];
    const hr_weight_format *format = hr_kept_format(in->program, param, in->kept);
    const bool stored = format->file_dtype && source->kind == kind_of(format);
    hr_unpack unpack = unpack_rows(in, param, place);
    const int64_t rows = rows_of_piece(&unpack, staging_bytes), first = piece * rows;
    const int64_t count = hr_min(rows, hr_unpack_rows(&unpack) - first);
    const int64_t row_bytes = hr_unpack_width(&unpack) * hr_stored_kind_bytes(unpack.kind);
    float scales[HR_SCALES_MAX];
    const bool flat = hr_unpack_is_flat(&unpack) && !in->direct;
    void *read = flat ? place.master + first * unpack.N : staging;
    hr_status status = read_bytes(in, source->file,
                                  source->offset + (place.first_row + first) * row_bytes,
                                  count * row_bytes, &read, err);
    unpack.scales = unpack.kind == HR_STORED_E4M3 ? scales : NULL;
    if (status == HR_OK && unpack.scales)
        status = read_scales(in, param, place.first_row + first, scales, err);
    if (status != HR_OK) return status;
    if (stored ? take_stored(in, param, &unpack, first, count, read, place)
               : hr_unpack_take(&unpack, first, count, read))
        return HR_OK;
    return refuse_values(in, param, err);
}
