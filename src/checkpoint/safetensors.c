/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/safetensors.c - builds the table of tensors from headers and validates it against the
 * files.
 *
 * All texts are loaded before parsing, so the table's rows are contiguous in the region. */
#define _GNU_SOURCE
#include "checkpoint/safetensors.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/directory.h"
#include "base/path.h"
#include "base/sort.h"
#include "base/words.h"
#include "checkpoint/opening.h"

const char hr_stored_single_name[] = "model.safetensors";

static bool name_before(const void *table, int32_t a, int32_t b)
{
    const hr_stored_tensor *rows = table;
    const int order = strcmp(rows[a].name, rows[b].name);
    return order ? order < 0 : a < b;
}

static bool offset_before(const void *table, int32_t a, int32_t b)
{
    const hr_stored_tensor *x = (const hr_stored_tensor *)table + a;
    const hr_stored_tensor *y = (const hr_stored_tensor *)table + b;
    if (x->file != y->file) return x->file < y->file;
    if (x->offset != y->offset) return x->offset < y->offset;
    if (x->bytes != y->bytes) return x->bytes < y->bytes;
    return strcmp(x->name, y->name) < 0;
}

/* ---- checks over all headers */

static hr_status check_layout(hr_opening *o, const int32_t *by_offset)
{
    const hr_stored *stored = o->stored;
    int32_t row = 0;
    for (int32_t f = 0; f < stored->file_count; f++) {
        const hr_stored_file *file = &stored->files[f];
        const char *before = "the header";
        int64_t at = 0;
        const hr_status status = hr_opening_place(o, f);
        if (status != HR_OK) return status;
        for (; row < stored->tensor_count && stored->tensors[by_offset[row]].file == f; row++) {
            const hr_stored_tensor *tensor = &stored->tensors[by_offset[row]];
            if (tensor->offset != at)
                return hr_fail(
                    o->err, HR_CORRUPT,
                    "%s: tensor %.*s begins at data byte %lld, and %.*s ends at %lld: "
                    "%s",
                    hr_path_shown(o->place), HR_STORED_NAME_SHOWN, tensor->name,
                    (long long)tensor->offset, HR_STORED_NAME_SHOWN, before, (long long)at,
                    tensor->offset < at ? "they overlap" : "there is a gap between them");
            at += tensor->bytes;
            before = tensor->name;
        }
        if (at != file->bytes - file->data_offset)
            return hr_fail(o->err, HR_CORRUPT,
                           "%s: its tensors end at data byte %lld, the file at %lld: %s",
                           hr_path_shown(o->place), (long long)at,
                           (long long)(file->bytes - file->data_offset),
                           at < file->bytes - file->data_offset ? "there are bytes after them"
                                                                : "the file is truncated");
    }
    return HR_OK;
}

/* Finds duplicates, which are adjacent in the sorted order. */
static hr_status check_names(hr_opening *o)
{
    const hr_stored *stored = o->stored;
    for (int32_t i = 1; i < stored->tensor_count; i++) {
        const hr_stored_tensor *a = &stored->tensors[stored->by_name[i - 1]];
        const hr_stored_tensor *b = &stored->tensors[stored->by_name[i]];
        if (strcmp(a->name, b->name)) continue;
        const hr_status status = hr_opening_place(o, a->file);
        if (status != HR_OK) return status;
        if (a->file == b->file)
            return hr_fail(o->err, HR_CORRUPT, "%s: has tensor %.*s twice", hr_path_shown(o->place),
                           HR_STORED_NAME_SHOWN, a->name);
        return hr_fail(o->err, HR_CORRUPT, "%s: has tensor %.*s, which %s has too",
                       hr_path_shown(o->place), HR_STORED_NAME_SHOWN, a->name,
                       hr_path_shown(stored->files[b->file].name));
    }
    return HR_OK;
}

static hr_status check_all(hr_opening *o)
{
    hr_stored *stored = o->stored;
    const int32_t count = stored->tensor_count;
    stored->by_name = hr_region_take(o->region, count, sizeof *stored->by_name);
    stored->by_offset = hr_region_take(o->region, count, sizeof *stored->by_offset);
    if (!stored->by_name || !stored->by_offset) return hr_opening_no_room(o);
    for (int32_t i = 0; i < count; i++) stored->by_name[i] = stored->by_offset[i] = i;
    hr_sort(stored->tensors, name_before, stored->by_name, count);
    hr_sort(stored->tensors, offset_before, stored->by_offset, count);
    hr_status status = check_names(o);
    if (status == HR_OK) status = check_layout(o, stored->by_offset);
    if (status == HR_OK && stored->sharded) status = hr_opening_check_index(o);
    for (int32_t i = 0; i < count; i++)
        stored->tensors[i].offset += stored->files[stored->tensors[i].file].data_offset;
    return status;
}

/* ---- checks of the path */

/* Files in a folder that are, or may be, weights in another format. */
typedef struct {
    char pickle[HR_NAME_BYTES], other[HR_NAME_BYTES]; /* empty: none */
} found_names;

static bool note_name(void *context, const char *name)
{
    found_names *found = context;
    const bool pickle = hr_ends_with(name, ".bin") || hr_ends_with(name, ".pt") ||
                        hr_ends_with(name, ".pth") || hr_ends_with(name, ".ckpt");
    const bool known = !strcmp(name, "pytorch_model.bin");
    if (pickle && (known || !*found->pickle))
        snprintf(found->pickle, sizeof found->pickle, "%s", name);
    if (hr_ends_with(name, ".safetensors")) snprintf(found->other, sizeof found->other, "%s", name);
    return true;
}

/* Reports a folder without model.safetensors and index, and which weights it has instead. */
static hr_status fail_missing(const char *path, hr_error *err)
{
    found_names found = { .pickle = "" };
    const hr_status status = hr_directory_list(path, note_name, &found, err);
    if (status != HR_OK) return status;
    if (*found.pickle)
        return hr_fail(err, HR_USAGE,
                       "%s: has no %s. It has %.80s, a pickle. A pickle can run code when it is "
                       "loaded, so headroom does not read it: save the model with "
                       "save_pretrained(..., safe_serialization=True)",
                       hr_path_shown(path), hr_stored_single_name, found.pickle);
    if (!strncmp(found.other, "adapter_model.", 14) || !strncmp(found.other, "npt_model.", 10))
        return hr_fail(err, HR_USAGE,
                       "%s: has adapters and no model; name the folder of their base",
                       hr_path_shown(path));
    if (*found.other)
        return hr_fail(
            err, HR_USAGE, "%s: has neither %s nor %s. It has %.80s: give it one of these names",
            hr_path_shown(path), hr_stored_single_name, hr_stored_index_name, found.other);
    return hr_fail(err, HR_USAGE, "%s: has neither %s nor %s", hr_path_shown(path),
                   hr_stored_single_name, hr_stored_index_name);
}

static bool is_link(const char *path)
{
    struct stat what;
    return lstat(path, &what) == 0 && S_ISLNK(what.st_mode);
}

/* Reports a broken link with its target. */
static hr_status check_file(const char *path, hr_error *err)
{
    int file;
    int64_t bytes;
    char target[160];
    if (!hr_file_exists(path) && is_link(path)) {
        const ssize_t length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = 0;
        return hr_fail(err, HR_USAGE, "%s: is a link to %s, which does not exist",
                       hr_path_shown(path), target);
    }
    const hr_status status = hr_file_open(path, &file, &bytes, err);
    if (status == HR_OK) hr_file_close(&file);
    return status;
}

hr_status hr_stored_check(const char *path, hr_error *err)
{
    const char *const names[] = { hr_stored_single_name, hr_stored_index_name };
    char inside[PATH_MAX];
    if (!hr_file_is_directory(path)) return check_file(path, err);
    for (int32_t i = 0; i < 2; i++) {
        const hr_status status = hr_path_join(path, names[i], inside, sizeof inside, err);
        if (status != HR_OK) return status;
        if (hr_file_exists(inside) || is_link(inside)) return check_file(inside, err);
    }
    return fail_missing(path, err);
}

/* ---- opening */

static hr_status open_shards(hr_opening *o)
{
    hr_stored *stored = o->stored;
    hr_status status = HR_OK;
    for (int32_t i = 0; i < stored->file_count && status == HR_OK; i++) {
        hr_stored_file *file = &stored->files[i];
        status = hr_opening_place(o, i);
        if (status == HR_OK && stored->sharded && !hr_file_exists(o->place))
            return hr_fail(o->err, HR_USAGE, "%s: no such file, but %s names it",
                           hr_path_shown(o->place), hr_stored_index_name);
        if (status == HR_OK) status = hr_file_open(o->place, &file->file, &file->bytes, o->err);
        if (status == HR_OK) status = hr_opening_load_header(o, i);
    }
    for (int32_t i = 0; i < stored->file_count && status == HR_OK; i++) {
        status = hr_opening_place(o, i);
        if (status == HR_OK) status = hr_opening_read_header(o, i);
    }
    return status;
}

static hr_status open_all(hr_opening *o, const char *path)
{
    hr_stored *stored = o->stored;
    char *kept = hr_region_take(o->region, (int64_t)strlen(path) + 1, 1);
    stored->files = hr_region_take(o->region, HR_STORED_FILES_MAX, sizeof *stored->files);
    if (!kept || !stored->files)
        return hr_fail(o->err, HR_FAILURE, "%s: out of memory for its files", hr_path_shown(path));
    stored->path = strcpy(kept, path);
    hr_status status = HR_OK;
    if (hr_file_is_directory(path)) {
        o->folder = kept;
        status = hr_path_join(path, hr_stored_single_name, o->place, sizeof o->place, o->err);
        if (status != HR_OK) return status;
        const bool single = hr_file_exists(o->place);
        if (!single) status = hr_opening_open_index(o);
        else stored->files[stored->file_count++] = (hr_stored_file){ hr_stored_single_name, -1 };
    } else {
        if (strlen(path) >= sizeof o->place)
            return hr_fail(o->err, HR_USAGE, "%s: the path is too long", hr_path_shown(path));
        stored->files[stored->file_count++] = (hr_stored_file){ kept, -1 };
    }
    if (status == HR_OK) status = open_shards(o);
    return status == HR_OK ? check_all(o) : status;
}

hr_status hr_stored_open(hr_stored *stored, const char *path, hr_region *region, hr_error *err)
{
    hr_opening o = { .stored = stored, .region = region, .err = err };
    *stored = (hr_stored){ 0 };
    hr_status status = hr_stored_check(path, err);
    if (status == HR_OK) status = open_all(&o, path);
    if (status != HR_OK) hr_stored_close(stored);
    return status;
}

void hr_stored_close(hr_stored *stored)
{
    for (int32_t i = 0; i < stored->file_count; i++) hr_file_close(&stored->files[i].file);
    *stored = (hr_stored){ 0 };
}

/* ---- memory estimate */

/* Counts over a text without parsing it: white space and structural characters outside of strings.
 */
typedef struct {
    int64_t bytes, blanks, braces, colons;
    bool in_string, escaped;
} text_counts;

static void count_character(text_counts *o, char c)
{
    const bool ends = c == '"' && !o->escaped;
    o->escaped = o->in_string && c == '\\' && !o->escaped;
    if (ends) o->in_string = !o->in_string;
    if (o->in_string) return;
    o->blanks += c == ' ' || c == '\n' || c == '\t' || c == '\r';
    o->braces += c == '{';
    o->colons += c == ':';
}

/* Scans a text from `offset` on. An unreadable text counts as empty; opening it reports the error.
 */
static text_counts count_text(int file, const char *path, int64_t offset, int64_t bytes)
{
    char piece[4096];
    text_counts o = { .bytes = bytes };
    for (int64_t at = 0; at < bytes; at += (int64_t)sizeof piece) {
        const int64_t some = hr_min((int64_t)sizeof piece, bytes - at);
        if (hr_file_read(file, path, offset + at, piece, some, NULL) != HR_OK)
            return (text_counts){ 0 };
        for (int64_t i = 0; i < some; i++) count_character(&o, piece[i]);
    }
    return o;
}

/* Sizes of the texts and of their tables. */
typedef struct {
    int64_t text_bytes, blanks, table_bytes;
} needs;

/* A tensor entry of a header has a brace and at least 50 bytes of text; an entry of an index has a
 * colon and at least 7 bytes. */
static void add_text(needs *n, const text_counts *o, bool is_index)
{
    const int64_t tensor_bytes = sizeof(hr_stored_tensor) + 2 * sizeof(int32_t);
    const int64_t name_bytes = 2 * sizeof(hr_opening_name) + sizeof(int32_t);
    n->text_bytes += o->bytes;
    n->blanks += o->blanks;
    n->table_bytes += 1024;
    if (is_index) n->table_bytes += hr_min(o->colons, o->bytes / 7 + 1) * name_bytes;
    else n->table_bytes += hr_min(o->braces, o->bytes / 50 + 1) * tensor_bytes;
}

/* Returns false if the file cannot be opened. */
static bool add_file(needs *n, const char *path)
{
    uint8_t length[HR_STORED_LENGTH_BYTES];
    uint64_t text_bytes = 0;
    int file;
    int64_t bytes;
    if (hr_file_open(path, &file, &bytes, NULL) != HR_OK) return false;
    if (hr_file_read(file, path, 0, length, HR_STORED_LENGTH_BYTES, NULL) == HR_OK)
        for (int32_t i = HR_STORED_LENGTH_BYTES - 1; i >= 0; i--)
            text_bytes = text_bytes << 8 | length[i];
    if (text_bytes > HR_STORED_HEADER_BYTES_MAX || (int64_t)text_bytes > bytes) text_bytes = 0;
    const text_counts o = count_text(file, path, HR_STORED_LENGTH_BYTES, (int64_t)text_bytes);
    hr_file_close(&file);
    add_text(n, &o, false);
    return true;
}

/* Adds all safetensors files of the folder: the index can name no others. */
static void add_shards(needs *n, const char *folder)
{
    static const char suffix[] = ".safetensors";
    const size_t suffix_bytes = sizeof suffix - 1;
    char path[PATH_MAX];
    DIR *directory = opendir(folder);
    if (!directory) return;
    for (const struct dirent *entry; (entry = readdir(directory));) {
        const size_t bytes = strlen(entry->d_name);
        if (bytes < suffix_bytes || strcmp(entry->d_name + bytes - suffix_bytes, suffix)) continue;
        if (hr_path_join(folder, entry->d_name, path, sizeof path, NULL) == HR_OK)
            (void)add_file(n, path);
    }
    closedir(directory);
}

static bool add_index(needs *n, const char *path)
{
    int file;
    int64_t bytes;
    if (hr_file_open(path, &file, &bytes, NULL) != HR_OK) return false;
    const text_counts o = count_text(file, path, 0, hr_min(bytes, HR_STORED_HEADER_BYTES_MAX));
    hr_file_close(&file);
    add_text(n, &o, true);
    return true;
}

static bool add_path(needs *n, const char *path)
{
    char inside[PATH_MAX];
    if (!hr_file_is_directory(path)) return add_file(n, path);
    if (hr_path_join(path, hr_stored_single_name, inside, sizeof inside, NULL) != HR_OK)
        return false;
    if (hr_file_exists(inside)) return add_file(n, inside);
    if (hr_path_join(path, hr_stored_index_name, inside, sizeof inside, NULL) != HR_OK ||
        !add_index(n, inside))
        return false;
    add_shards(n, path);
    return true;
}

static const int64_t files_bytes = HR_STORED_FILES_MAX * (int64_t)sizeof(hr_stored_file) + 4096;

int64_t hr_stored_bytes(const char *path)
{
    needs n = { 0 };
    if (!add_path(&n, path)) return 0;
    return (int64_t)strlen(path) + files_bytes + n.text_bytes + n.table_bytes;
}

int64_t hr_stored_text_bytes(const char *path)
{
    needs n = { 0 };
    return add_path(&n, path) ? n.text_bytes : 0;
}

int64_t hr_stored_compact_bytes(const char *path)
{
    needs n = { 0 };
    if (!add_path(&n, path)) return 0;
    return n.text_bytes - n.blanks + n.table_bytes;
}

/* ---- lookup */

const hr_stored_tensor *hr_stored_find(const hr_stored *stored, const char *name)
{
    int32_t low = 0, high = stored->tensor_count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        const hr_stored_tensor *tensor = &stored->tensors[stored->by_name[middle]];
        const int order = strcmp(tensor->name, name);
        if (order == 0) return tensor;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return NULL;
}
