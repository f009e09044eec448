/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/convert.c - assigns names and offsets first, then copies tensors through one buffer.
 *
 * Config files are written first and the index last, so an incomplete folder is not mistaken for a
 * complete one. On an error or signal, the written files are removed. */
#include "checkpoint/convert.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "base/directory.h"
#include "base/path.h"
#include "base/words.h"
#include "base/writer.h"
#include "checkpoint/block_scales.h"
#include "checkpoint/convert_tensor.h"
#include "checkpoint/names.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/sidecar_files.h"

enum {
    TEXT_BYTES = 1 << 20, /* header and index, apart from their tensor entries */
    NAME_BYTES = 1024,
    LENGTH_BYTES = 8,
    ALIGN = 64,
    WORD_BYTES = 16,
    NAME_SHOWN = 120
};

_Static_assert((int64_t)HR_CONVERT_PIECE_BYTES >= HR_SIDECAR_FILE_BYTES,
               "the buffer for tensors also holds a sidecar file");

/* Prefixes of head tensors, which never get a model prefix. */
static const char *const heads[] = { "lm_head.", "embed_out.", "score." };

/* Element widths in bits, in the order within a file. */
static const int32_t widths[] = { 64, 32, 16, 8, 6, 4 };

typedef struct {
    const hr_convert_request *request;
    hr_error *err;
    hr_stored stored;
    hr_converted *rows; /* [row_count], in the byte order of the source */
    int32_t row_count;  /* at most twice the tensors of the source */
    int64_t *file_bytes;
    int32_t file_count;
    const hr_stored_dtype *dtype; /* null: keep each dtype */
    char *text;                   /* [text_bytes] */
    int64_t text_bytes;
    hr_tensor_conversion tensors;
    hr_low_rank low;       /* of request->adapter */
    bool made;             /* this conversion created the destination folder */
    int32_t files_written; /* so far */
    hr_sidecar_files sidecars;
} conversion;

int64_t hr_convert_bytes(const hr_convert_request *request)
{
    const char *source = request->source;
    const int64_t adapter = request->adapter ? hr_low_rank_bytes(request->adapter) : 0;
    /* For each tensor of the source at most two are written, each of which needs less than the
     * source's in the tables and, without white space, in the header and the index. */
    return hr_stored_bytes(source) + 4 * hr_stored_compact_bytes(source) +
           3 * (int64_t)HR_CONVERT_PIECE_BYTES + TEXT_BYTES + 65536 + adapter;
}

/* ---- names */

static bool starts_with(const char *name, const char *prefix)
{
    return !strncmp(name, prefix, strlen(prefix));
}

static bool is_head(const char *name)
{
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        if (starts_with(name, heads[i])) return true;
    return false;
}

/* A destination name in two parts. */
typedef struct {
    const char *prefix, *rest;
} name_parts;

static name_parts name_of(const conversion *c, const hr_stored_tensor *tensor)
{
    const char *prefix = c->request->prefix;
    const char *bare = hr_name_without_prefix(tensor->name);
    if (!prefix || is_head(bare)) return (name_parts){ "", tensor->name };
    return (name_parts){ strcmp(prefix, "none") ? prefix : "", bare };
}

/* Checks that names stay unique when all get the same prefix. */
static hr_status check_names(const conversion *c)
{
    char name[NAME_BYTES];
    for (int32_t i = 0; c->request->prefix && i < c->stored.tensor_count; i++) {
        const hr_stored_tensor *tensor = &c->stored.tensors[i];
        const char *bare = hr_name_without_prefix(tensor->name);
        for (int32_t k = 0; k < HR_PREFIXES; k++) {
            snprintf(name, sizeof name, "%s%s", hr_prefixes[k], bare);
            const hr_stored_tensor *other = hr_stored_find(&c->stored, name);
            if (other && other != tensor)
                return hr_fail(c->err, HR_CORRUPT, "%.200s: %.*s and %.*s would get the same name",
                               c->request->source, NAME_SHOWN, tensor->name, NAME_SHOWN,
                               other->name);
        }
    }
    return HR_OK;
}

static void put_name(hr_writer *w, const char *name)
{
    for (; *name; name++) hr_put(w, *name == '"' || *name == '\\' ? "\\%c" : "%c", *name);
}

static void put_tensor_name(const conversion *c, hr_writer *w, const hr_converted *r)
{
    const name_parts name = name_of(c, r->from);
    hr_put(w, "\"%s", name.prefix);
    put_name(w, name.rest);
    hr_put(w, r->scales ? HR_SCALES_SUFFIX "\"" : "\"");
}

static void put_file_name(const conversion *c, int32_t file, char name[HR_NAME_BYTES])
{
    if (!c->request->shard_bytes) snprintf(name, HR_NAME_BYTES, "%s", hr_stored_single_name);
    else snprintf(name, HR_NAME_BYTES, "model-%05d-of-%05d.safetensors", file + 1, c->file_count);
}

/* ---- rows */

/* Whether a name has a number between dots, as tensors of layers have. */
static bool is_in_layer(const char *name)
{
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
        const size_t digits = strspn(dot + 1, "0123456789");
        if (digits && dot[1 + digits] == '.') return true;
    }
    return false;
}

/* Matrices of layers become F8_E4M3, with and without ".weight"; embedding tables, heads and
 * vectors do not. */
static bool becomes_e4m3(const hr_stored_tensor *tensor)
{
    return tensor->rank == 2 && tensor->dims[0] && tensor->dims[1] && is_in_layer(tensor->name) &&
           !hr_ends_with(tensor->name, "bias") && tensor->dims[1] <= HR_SCALES_MAX * HR_SCALE_BLOCK;
}

static void add_row(conversion *c, const hr_stored_tensor *from, const hr_stored_dtype *dtype,
                    bool scales)
{
    int64_t bytes = from->bytes;
    if (scales) bytes = hr_scale_blocks(from->dims[0]) * hr_scale_blocks(from->dims[1]) * 4;
    else if (dtype != from->dtype) bytes = bytes / (from->dtype->bits / 8) * (dtype->bits / 8);
    c->rows[c->row_count++] = (hr_converted){
        .from = from, .dtype = dtype, .bytes = bytes, .scales = scales
    };
}

/* New scales must not get the name of another tensor. */
static hr_status add_scales(conversion *c, const hr_stored_tensor *from)
{
    char name[NAME_BYTES];
    for (int32_t k = 0; k < HR_PREFIXES; k++) {
        const char *bare = c->request->prefix ? hr_name_without_prefix(from->name) : from->name;
        snprintf(name, sizeof name, "%s%s%s", c->request->prefix && k ? hr_prefixes[k] : "", bare,
                 HR_SCALES_SUFFIX);
        if (hr_stored_find(&c->stored, name))
            return hr_fail(
                c->err, HR_CORRUPT, "%.200s: %.*s already exists, but %.*s is %s: remove it first",
                c->request->source, NAME_SHOWN, name, NAME_SHOWN, from->name, from->dtype->name);
    }
    add_row(c, from, hr_stored_dtype_find("F32"), true);
    return HR_OK;
}

/* A tensor in the requested dtype, with new scales, or without its old ones. */
static hr_status add_rows(conversion *c, const hr_stored_tensor *from)
{
    const hr_stored_kind is = from->dtype->kind;
    const hr_stored_kind wanted = c->dtype ? c->dtype->kind : HR_STORED_OTHER;
    const bool has_scales = c->dtype && hr_block_scales_is(&c->stored, from);
    const bool changes = c->dtype && is != HR_STORED_OTHER && is != wanted &&
                         (wanted != HR_STORED_E4M3 || (becomes_e4m3(from) && !has_scales));
    if (has_scales && wanted != HR_STORED_E4M3) return HR_OK;
    add_row(c, from, changes ? c->dtype : from->dtype, false);
    if (changes && wanted == HR_STORED_E4M3) return add_scales(c, from);
    if (!changes || is != HR_STORED_E4M3) return HR_OK;
    const hr_stored_tensor *scales;
    return hr_block_scales_find(&c->stored, from, &c->rows[c->row_count - 1].old_scales, &scales,
                                c->err);
}

/* Assigns files in the order of the source. Within a file, wider elements come first, so all
 * tensors are aligned to their element size. */
static hr_status assign_offsets(conversion *c)
{
    const int64_t most = c->request->shard_bytes;
    int64_t in_file = 0;
    c->file_count = 1;
    for (int32_t i = 0; i < c->row_count; i++) {
        hr_converted *r = &c->rows[i];
        if (most && in_file && r->bytes > most - in_file) {
            c->file_count++;
            in_file = 0;
        }
        in_file += r->bytes;
        r->file = c->file_count - 1;
        if (c->file_count > HR_STORED_FILES_MAX)
            return hr_fail(c->err, HR_USAGE,
                           "--shard-bytes %lld makes more than %d files; give a larger size",
                           (long long)most, HR_STORED_FILES_MAX);
    }
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (int32_t i = 0; i < c->row_count; i++) {
            hr_converted *r = &c->rows[i];
            if (r->dtype->bits != widths[w]) continue;
            r->begin = c->file_bytes[r->file];
            c->file_bytes[r->file] += r->bytes;
        }
    return HR_OK;
}

static hr_status make_rows(conversion *c)
{
    hr_status status = HR_OK;
    for (int32_t i = 0; i < c->stored.tensor_count && status == HR_OK; i++)
        status = add_rows(c, &c->stored.tensors[c->stored.by_offset[i]]);
    return status == HR_OK ? assign_offsets(c) : status;
}

/* ---- files */

/* Prints the length field and the text of a header. */
static hr_status put_header(const conversion *c, int32_t file, int64_t *bytes)
{
    hr_writer w = { c->text + LENGTH_BYTES, c->text_bytes - LENGTH_BYTES };
    hr_put(&w, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int32_t i = 0; i < c->row_count; i++) {
        const hr_converted *r = &c->rows[i];
        if (r->file != file) continue;
        hr_put(&w, ",");
        put_tensor_name(c, &w, r);
        hr_put(&w, ":{\"dtype\":\"%s\",\"shape\":[", r->dtype->name);
        for (int32_t k = 0; k < r->from->rank; k++)
            hr_put(&w, "%s%lld", k ? "," : "",
                   (long long)(r->scales ? hr_scale_blocks(r->from->dims[k]) : r->from->dims[k]));
        hr_put(&w, "],\"data_offsets\":[%lld,%lld]}", (long long)r->begin,
               (long long)(r->begin + r->bytes));
    }
    hr_put(&w, "}");
    while ((w.used + LENGTH_BYTES) % ALIGN && !w.cut) hr_put(&w, " ");
    if (w.cut || w.used > HR_STORED_HEADER_BYTES_MAX)
        return hr_fail(c->err, HR_FAILURE, "out of memory for the header of file %d", file + 1);
    for (int32_t i = 0; i < LENGTH_BYTES; i++) c->text[i] = (char)((uint64_t)w.used >> (8 * i));
    *bytes = w.used + LENGTH_BYTES;
    return HR_OK;
}

/* Writes what was trained whole beside the adapters. */
static hr_status write_instead(conversion *c, hr_file_out *out, const hr_converted *r,
                               const hr_stored_tensor *instead)
{
    hr_converted whole = *r;
    whole.from = instead;
    whole.old_scales.columns = 0;
    c->tensors.stored = &c->low.stored;
    const hr_status status = hr_convert_tensor(&c->tensors, out, &whole, c->err);
    c->tensors.stored = &c->stored;
    return status;
}

static hr_status write_tensor(conversion *c, hr_file_out *out, const hr_converted *r)
{
    hr_status status = HR_OK;
    const hr_stored_tensor *instead = NULL;
    c->tensors.low = NULL;
    if (c->request->adapter) instead = hr_low_rank_instead(&c->low, r->from);
    if (instead) return write_instead(c, out, r, instead);
    if (c->request->adapter && hr_low_rank_has(&c->low, r->from)) {
        status = hr_low_rank_load(&c->low, r->from, c->err);
        c->tensors.low = &c->low;
    }
    return status == HR_OK ? hr_convert_tensor(&c->tensors, out, r, c->err) : status;
}

static hr_status write_file(conversion *c, int32_t file)
{
    char name[HR_NAME_BYTES];
    hr_file_out out;
    int64_t header_bytes = 0;
    put_file_name(c, file, name);
    hr_status status = put_header(c, file, &header_bytes);
    if (status != HR_OK) return status;
    status = hr_file_begin(&out, c->request->destination, name, c->err);
    if (status != HR_OK) return status;
    status = hr_file_reserve(&out, header_bytes + c->file_bytes[file], c->err);
    if (status == HR_OK) status = hr_file_append(&out, c->text, header_bytes, c->err);
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
        for (int32_t i = 0; i < c->row_count && status == HR_OK; i++)
            if (c->rows[i].file == file && c->rows[i].dtype->bits == widths[w])
                status = write_tensor(c, &out, &c->rows[i]);
    if (status == HR_OK) status = hr_file_commit(&out, c->err);
    if (status == HR_OK) c->files_written++;
    hr_file_abort(&out);
    return status;
}

static hr_status write_text(const conversion *c, const char *name, const char *text, int64_t bytes)
{
    hr_file_out out;
    hr_status status = hr_file_begin(&out, c->request->destination, name, c->err);
    if (status == HR_OK) status = hr_file_append(&out, text, bytes, c->err);
    return status == HR_OK ? hr_file_commit(&out, c->err) : status;
}

static hr_status write_index(const conversion *c)
{
    char name[HR_NAME_BYTES];
    int64_t sum = 0;
    hr_writer w = { c->text, c->text_bytes };
    for (int32_t f = 0; f < c->file_count; f++) sum += c->file_bytes[f];
    hr_put(&w, "{\n  \"metadata\": {\n    \"total_size\": %lld\n  },\n  \"weight_map\": {",
           (long long)sum);
    for (int32_t i = 0; i < c->row_count; i++) {
        put_file_name(c, c->rows[i].file, name);
        hr_put(&w, "%s\n    ", i ? "," : "");
        put_tensor_name(c, &w, &c->rows[i]);
        hr_put(&w, ": \"%s\"", name);
    }
    hr_put(&w, "\n  }\n}\n");
    if (w.cut) return hr_fail(c->err, HR_FAILURE, "out of memory for the index");
    return write_text(c, hr_stored_index_name, c->text, w.used);
}

/* ---- conversion */

hr_status hr_convert_check_destination(const char *path, hr_error *err)
{
    char found[HR_NAME_BYTES] = "";
    DIR *directory = opendir(path);
    if (!directory) return HR_OK; /* hr_directory_make creates it or reports the error */
    for (const struct dirent *entry; !*found && (entry = readdir(directory));)
        if (strstr(entry->d_name, ".safetensors"))
            snprintf(found, sizeof found, "%s", entry->d_name);
    closedir(directory);
    if (!*found) return HR_OK;
    return hr_fail(err, HR_USAGE, "%.200s: already has %.100s; give a folder without weights", path,
                   found);
}

static hr_status check_options(conversion *c)
{
    const char *dtype = c->request->dtype, *prefix = c->request->prefix;
    char name[WORD_BYTES] = "";
    if (!*c->request->source || !*c->request->destination)
        return hr_fail(c->err, HR_USAGE, "the %s path is empty; give a folder",
                       *c->request->source ? "destination" : "source");
    if (c->request->shard_bytes < 0)
        return hr_fail(c->err, HR_USAGE,
                       "files of at most %lld bytes; give a size, or 0 for one file",
                       (long long)c->request->shard_bytes);
    for (size_t i = 0; dtype && i < sizeof name - 1 && dtype[i]; i++)
        name[i] = (char)(dtype[i] >= 'a' && dtype[i] <= 'z' ? dtype[i] - 'a' + 'A' : dtype[i]);
    c->dtype = dtype ? hr_stored_dtype_find(name) : NULL;
    if (dtype && (!c->dtype || c->dtype->kind == HR_STORED_OTHER))
        return hr_fail(c->err, HR_USAGE, "--dtype takes f32, f16, bf16 or f8_e4m3; got \"%.40s\"",
                       dtype);
    bool known = !prefix;
    for (int32_t i = 0; i < HR_PREFIXES && !known; i++)
        known = !strcmp(prefix, i ? hr_prefixes[i] : "none");
    if (known) return HR_OK;
    return hr_fail(c->err, HR_USAGE,
                   "--prefix takes none, model., transformer. or gpt_neox.; got \"%.40s\"", prefix);
}

static bool has_same_shape(const hr_stored_tensor *a, const hr_stored_tensor *b)
{
    return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

/* `whole`: what the folder has in place of the tensor; null: it has an adapter of it. */
static hr_status check_merged(const conversion *c, const hr_stored_tensor *tensor,
                              const hr_stored_tensor *whole)
{
    const char *base = c->request->source, *folder = c->low.folder;
    const bool widens = c->dtype && c->dtype->bits > 8;
    const hr_stored_kind kind = tensor->dtype->kind;
    if (hr_low_rank_is_tied(&c->low, tensor))
        return hr_fail(c->err, HR_USAGE,
                       "%.200s: changes %.*s, which is the output head too: merging would "
                       "change both",
                       folder, NAME_SHOWN, tensor->name);
    if (kind == HR_STORED_E4M3 && !widens)
        return hr_fail(c->err, HR_USAGE,
                       "%.200s: %.*s is F8_E4M3; merge with --dtype bf16, f16 or f32", base,
                       NAME_SHOWN, tensor->name);
    if (kind > HR_STORED_E4M3)
        return hr_fail(c->err, HR_USAGE,
                       "%.200s: %.*s is %s; adapters are merged into F32, F16, BF16 and F8_E4M3",
                       base, NAME_SHOWN, tensor->name, tensor->dtype->name);
    if (whole && !has_same_shape(tensor, whole))
        return hr_fail(c->err, HR_CORRUPT, "%.200s: tensor %.*s has another shape than the base's",
                       folder, NAME_SHOWN, whole->name);
    if (whole && whole->dtype->kind > HR_STORED_BF16)
        return hr_fail(c->err, HR_CORRUPT, "%.200s: tensor %.*s is %s, not F32, F16 or BF16",
                       folder, NAME_SHOWN, whole->name, whole->dtype->name);
    if (whole || tensor->dims[1] <= HR_CONVERT_PIECE) return HR_OK;
    return hr_fail(c->err, HR_USAGE, "%.200s: %.*s has %lld columns, the limit for merging is %d",
                   base, NAME_SHOWN, tensor->name, (long long)tensor->dims[1], HR_CONVERT_PIECE);
}

/* Before anything is written. */
static hr_status check_merge(conversion *c)
{
    hr_status status = HR_OK;
    for (int32_t t = 0; t < c->stored.tensor_count && status == HR_OK; t++) {
        const hr_stored_tensor *tensor = &c->stored.tensors[t];
        const hr_stored_tensor *whole = hr_low_rank_instead(&c->low, tensor);
        if (whole || hr_low_rank_has(&c->low, tensor)) status = check_merged(c, tensor, whole);
    }
    return status;
}

static hr_status take_memory(conversion *c, hr_region *region)
{
    hr_status status = HR_OK;
    hr_tensor_conversion *t = &c->tensors;
    c->rows = hr_region_take(region, 2 * (int64_t)c->stored.tensor_count, sizeof *c->rows);
    c->file_bytes = hr_region_take(region, HR_STORED_FILES_MAX + 1, sizeof *c->file_bytes);
    t->piece = hr_region_take(region, HR_CONVERT_PIECE_BYTES, 1);
    t->wide = hr_region_take(region, HR_CONVERT_PIECE, sizeof *t->wide);
    t->half = hr_region_take(region, HR_CONVERT_PIECE, sizeof *t->half);
    if (c->request->adapter)
        status = hr_low_rank_open(&c->low, c->request->adapter, c->request->source, t->piece,
                                  HR_CONVERT_PIECE_BYTES, region, c->err);
    if (status != HR_OK) return status;
    c->text_bytes = (region->bytes - hr_round_up(region->used, ALIGN)) / ALIGN * ALIGN;
    c->text = hr_region_take(region, hr_max(c->text_bytes, 0), 1);
    if (c->rows && c->file_bytes && t->piece && t->wide && t->half && c->text) return HR_OK;
    return hr_fail(c->err, HR_FAILURE, "%.200s: out of memory for its tensors", c->request->source);
}

static hr_status write_all(conversion *c)
{
    hr_status status = hr_sidecar_files_copy(&c->sidecars, c->err);
    for (int32_t f = 0; f < c->file_count && status == HR_OK; f++) status = write_file(c, f);
    if (status == HR_OK && c->request->adapter) status = hr_low_rank_check(&c->low, c->err);
    return status == HR_OK && c->request->shard_bytes ? write_index(c) : status;
}

/* Removes only files that this conversion has written: hr_convert_check_destination has ensured
 * that none existed before. */
static void remove_written(const conversion *c)
{
    char path[PATH_MAX], name[HR_NAME_BYTES];
    const char *folder = c->request->destination;
    hr_sidecar_files_remove(&c->sidecars);
    for (int32_t f = 0; f < c->files_written; f++) {
        put_file_name(c, f, name);
        if (hr_path_join(folder, name, path, sizeof path, NULL) == HR_OK) unlink(path);
    }
    if (c->made) rmdir(folder);
}

static hr_status convert(conversion *c, hr_region *region)
{
    hr_status status = take_memory(c, region);
    if (status == HR_OK && c->request->adapter) status = check_merge(c);
    if (status == HR_OK) status = check_names(c);
    if (status == HR_OK) status = make_rows(c);
    bool quantizes = false, dequantizes = false;
    for (int32_t i = 0; i < c->row_count && status == HR_OK; i++) {
        quantizes = quantizes || c->rows[i].scales;
        dequantizes = dequantizes || c->rows[i].old_scales.columns;
    }
    c->sidecars = (hr_sidecar_files){ .source = hr_file_is_directory(c->request->source)
                                                    ? c->request->source
                                                    : NULL,
                                      .destination = c->request->destination,
                                      .dtype = c->dtype,
                                      .quantized = quantizes,
                                      .dequantized = dequantizes,
                                      .memory = c->tensors.piece };
    if (status == HR_OK) status = hr_sidecar_files_check(&c->sidecars, c->err);
    if (status != HR_OK) return status;
    c->made = !hr_file_exists(c->request->destination);
    status = hr_directory_make(c->request->destination, c->err);
    if (status != HR_OK) return status;
    status = write_all(c);
    if (status != HR_OK) remove_written(c);
    return status;
}

hr_status hr_convert_in(const hr_convert_request *request, hr_region *region,
                        hr_convert_report *report, hr_error *err)
{
    conversion c = { .request = request, .err = err };
    c.tensors = (hr_tensor_conversion){ .stored = &c.stored,
                                        .destination = request->destination,
                                        .interrupts = request->interrupts,
                                        .cpu_mask = hr_cpu_detect() };
    hr_status status = check_options(&c);
    if (status == HR_OK) status = hr_convert_check_destination(request->destination, err);
    if (status == HR_OK) status = hr_stored_open(&c.stored, request->source, region, err);
    if (status != HR_OK) return status;
    status = convert(&c, region);
    if (status == HR_OK) {
        *report = (hr_convert_report){ .tensors = c.row_count, .files = c.file_count };
        for (int32_t i = 0; i < c.row_count; i++) {
            report->changed += !c.rows[i].scales && c.rows[i].dtype != c.rows[i].from->dtype;
            report->bytes += c.rows[i].bytes;
        }
    }
    hr_stored_close(&c.stored);
    hr_stored_close(&c.low.stored);
    return status;
}
