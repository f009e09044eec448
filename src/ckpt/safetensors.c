/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt/safetensors.c - headers into a table, and the table held against the files.
 *
 * All texts are read first, so that the rows that are found in them lie one behind the other. */
#include "ckpt/safetensors.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/json.h"

enum { LENGTH_BYTES = 8, NAME_SHOWN = 120, PATH_SHOWN = 200 };

const char hr_stored_single_name[] = "model.safetensors";
const char hr_stored_index_name[] = "model.safetensors.index.json";

static const hr_stored_dtype dtypes[] = {
    { "F32", 32, HR_STORED_F32 },      { "F16", 16, HR_STORED_F16 },
    { "BF16", 16, HR_STORED_BF16 },    { "F64", 64, HR_STORED_OTHER },
    { "I64", 64, HR_STORED_OTHER },    { "U64", 64, HR_STORED_OTHER },
    { "C64", 64, HR_STORED_OTHER },    { "I32", 32, HR_STORED_OTHER },
    { "U32", 32, HR_STORED_OTHER },    { "I16", 16, HR_STORED_OTHER },
    { "U16", 16, HR_STORED_OTHER },    { "I8", 8, HR_STORED_OTHER },
    { "U8", 8, HR_STORED_OTHER },      { "BOOL", 8, HR_STORED_OTHER },
    { "F8_E5M2", 8, HR_STORED_OTHER }, { "F8_E4M3", 8, HR_STORED_OTHER },
    { "F8_E8M0", 8, HR_STORED_OTHER }, { "F8_E4M3FNUZ", 8, HR_STORED_OTHER },
    { "F6_E2M3", 6, HR_STORED_OTHER }, { "F6_E3M2", 6, HR_STORED_OTHER },
    { "F4", 4, HR_STORED_OTHER },      { "F8_E5M2FNUZ", 8, HR_STORED_OTHER },
};

const hr_stored_dtype *hr_stored_dtype_find(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(dtypes[i].name, name)) return &dtypes[i];
    return NULL;
}

/* What the index says of one tensor. */
typedef struct {
    const char *name;
    int32_t file;
    bool found;
} named;

/* One opening, while it lasts. */
typedef struct {
    hr_stored *stored;
    hr_region *region;
    hr_error *err;
    const char *folder; /* null: a single file */
    char *texts[HR_STORED_FILES_MAX];
    int64_t text_bytes[HR_STORED_FILES_MAX];
    named *named; /* [named_count] in the order of names; null without an index */
    int32_t named_count;
    char place[PATH_MAX]; /* of the file at hand, for sentences */
} opening;

/* The end of a path says more than its beginning. */
static const char *shown(const char *path)
{
    const size_t length = strlen(path);
    return length > PATH_SHOWN ? path + length - PATH_SHOWN : path;
}

static hr_status out_of_room(const opening *o)
{
    return hr_fail(o->err, HR_FAILURE, "%s: the table of its tensors finds no room",
                   shown(o->stored->path));
}

/* A row more behind those of a table that nothing was taken behind; null without room. */
static void *add_row(hr_region *region, void **table, int32_t count, int64_t bytes)
{
    if (!count) return *table = hr_region_take(region, 1, bytes);
    if (bytes > region->bytes - region->used) return NULL;
    region->used += bytes;
    region->used_most = hr_max(region->used_most, region->used);
    return memset(region->base + region->used - bytes, 0, (size_t)bytes);
}

static bool is_plain(const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name < ' ' || *name == 127) return false;
    return true;
}

/* ---- sorting, in place and without recursion: heapsort */

typedef bool before_fn(const void *table, int32_t a, int32_t b);

static void sift(const void *table, before_fn *before, int32_t *rows, int32_t at, int32_t count)
{
    for (int32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && before(table, rows[child], rows[child + 1])) child++;
        if (!before(table, rows[at], rows[child])) return;
        const int32_t kept = rows[at];
        rows[at] = rows[child];
        rows[child] = kept;
    }
}

static void sort(const void *table, before_fn *before, int32_t *rows, int32_t count)
{
    for (int32_t at = count / 2 - 1; at >= 0; at--) sift(table, before, rows, at, count);
    for (int32_t last = count - 1; last > 0; last--) {
        const int32_t greatest = rows[0];
        rows[0] = rows[last];
        rows[last] = greatest;
        sift(table, before, rows, 0, last);
    }
}

static bool named_before(const void *table, int32_t a, int32_t b)
{
    const named *rows = table;
    return strcmp(rows[a].name, rows[b].name) < 0;
}

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

/* ---- one tensor of a header */

static hr_status not_json(const opening *o, const hr_json *json, const char *what, int64_t at)
{
    if (json->problem)
        return hr_fail(o->err, HR_CORRUPT, "%s: %s, byte %lld: not JSON: %s", shown(o->place), what,
                       (long long)(at + json->at), json->problem);
    return hr_fail(o->err, HR_CORRUPT, "%s: %s, byte %lld: another kind of value is needed there",
                   shown(o->place), what, (long long)(at + json->at));
}

static hr_status wrong_header(const opening *o, const hr_json *json)
{
    return not_json(o, json, "header", LENGTH_BYTES);
}

static hr_status wrong_tensor(const opening *o, const hr_stored_tensor *tensor, const char *what)
{
    return hr_fail(o->err, HR_CORRUPT, "%s: tensor %.*s: %s", shown(o->place), NAME_SHOWN,
                   tensor->name, what);
}

static hr_status read_dtype(const opening *o, hr_json *json, hr_stored_tensor *tensor)
{
    char what[96];
    if (hr_json_next(json) != HR_JSON_STRING) return wrong_header(o, json);
    tensor->dtype = hr_stored_dtype_find(json->value);
    if (tensor->dtype) return HR_OK;
    if (!is_plain(json->value)) return wrong_tensor(o, tensor, "its dtype is no word");
    snprintf(what, sizeof what, "\"%.40s\" is no dtype that is known", json->value);
    return wrong_tensor(o, tensor, what);
}

/* `most` numbers, none below 0. */
static hr_status read_numbers(const opening *o, hr_json *json, hr_stored_tensor *tensor,
                              const char *key, int64_t *numbers, int32_t most, int32_t *count)
{
    char what[96];
    *count = 0;
    if (hr_json_next(json) != HR_JSON_ARRAY) return wrong_header(o, json);
    for (hr_json_kind kind; (kind = hr_json_next(json)) != HR_JSON_CLOSE; (*count)++) {
        if (kind == HR_JSON_WRONG) return wrong_header(o, json);
        if (*count == most) {
            snprintf(what, sizeof what, "its %s has more than %d numbers", key, most);
            return wrong_tensor(o, tensor, what);
        }
        if (kind == HR_JSON_NUMBER && hr_json_integer(json, &numbers[*count]) &&
            numbers[*count] >= 0)
            continue;
        snprintf(what, sizeof what, "its %s needs whole numbers that are not negative", key);
        return wrong_tensor(o, tensor, what);
    }
    return HR_OK;
}

static hr_status check_size(const opening *o, const hr_stored_tensor *tensor, int64_t begin,
                            int64_t end)
{
    char shape[128], what[320];
    int64_t bits = tensor->dtype->bits;
    hr_stored_shape(tensor, shape, sizeof shape);
    bool fits = true;
    for (int32_t i = 0; i < tensor->rank; i++) /* a zero anywhere makes none */
        if (tensor->dims[i] == 0) bits = 0;
    for (int32_t i = 0; i < tensor->rank && fits; i++)
        fits = hr_checked_mul(bits, tensor->dims[i], &bits);
    if (!fits || bits % 8) {
        snprintf(what, sizeof what, "its shape %s of %s %s", shape, tensor->dtype->name,
                 fits ? "does not come to whole bytes" : "has more bytes than can be counted");
        return wrong_tensor(o, tensor, what);
    }
    if (begin <= end && end - begin == bits / 8) return HR_OK;
    snprintf(what, sizeof what,
             "its shape %s of %s needs %lld bytes, its data_offsets are [%lld, "
             "%lld]",
             shape, tensor->dtype->name, (long long)(bits / 8), (long long)begin, (long long)end);
    return wrong_tensor(o, tensor, what);
}

static hr_status read_tensor(opening *o, hr_json *json, hr_stored_tensor *tensor)
{
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL = 7 };
    int64_t offsets[2] = { 0 };
    int32_t seen = 0, count = 0;
    char what[96];
    hr_json_kind kind = hr_json_next(json);
    if (kind != HR_JSON_OBJECT) return wrong_header(o, json);
    while ((kind = hr_json_next(json)) == HR_JSON_KEY) {
        hr_status status;
        const int32_t key = hr_json_is(json, "dtype")          ? DTYPE
                            : hr_json_is(json, "shape")        ? SHAPE
                            : hr_json_is(json, "data_offsets") ? OFFSETS
                                                               : 0;
        if (!key || (seen & key)) {
            snprintf(what, sizeof what, "the key \"%.40s\" %s",
                     is_plain(json->value) ? json->value : "?",
                     key ? "is there twice" : "is not the format's");
            return wrong_tensor(o, tensor, what);
        }
        seen |= key;
        if (key == DTYPE) status = read_dtype(o, json, tensor);
        else if (key == SHAPE)
            status = read_numbers(o, json, tensor, "shape", tensor->dims, HR_STORED_RANK_MAX,
                                  &tensor->rank);
        else status = read_numbers(o, json, tensor, "data_offsets", offsets, 2, &count);
        if (status != HR_OK) return status;
    }
    if (kind != HR_JSON_CLOSE) return wrong_header(o, json);
    if (seen != ALL || count != 2)
        return wrong_tensor(o, tensor, "it needs dtype, shape and two data_offsets");
    tensor->offset = offsets[0];
    tensor->bytes = offsets[1] - offsets[0];
    return check_size(o, tensor, offsets[0], offsets[1]);
}

/* ---- a header */

static hr_status read_metadata(const opening *o, hr_json *json)
{
    hr_json_kind kind = hr_json_next(json);
    if (kind != HR_JSON_OBJECT) return wrong_header(o, json);
    while ((kind = hr_json_next(json)) == HR_JSON_KEY)
        if (hr_json_next(json) != HR_JSON_STRING) return wrong_header(o, json);
    return kind == HR_JSON_CLOSE ? HR_OK : wrong_header(o, json);
}

static hr_status read_header(opening *o, int32_t file)
{
    hr_stored *stored = o->stored;
    hr_json json = hr_json_over(o->texts[file], o->text_bytes[file]);
    hr_json_kind kind;
    if (hr_json_next(&json) != HR_JSON_OBJECT) return wrong_header(o, &json);
    while ((kind = hr_json_next(&json)) == HR_JSON_KEY) {
        hr_status status;
        if (hr_json_is(&json, "__metadata__")) {
            status = read_metadata(o, &json);
            if (status != HR_OK) return status;
            continue;
        }
        hr_stored_tensor *tensor = add_row(o->region, (void **)&stored->tensors,
                                           stored->tensor_count, sizeof *tensor);
        if (!tensor) return out_of_room(o);
        tensor->name = json.value;
        tensor->file = file;
        if (!is_plain(tensor->name))
            return hr_fail(o->err, HR_CORRUPT,
                           "%s: header, byte %lld: a control character in a tensor's name",
                           shown(o->place), (long long)(json.at + LENGTH_BYTES));
        stored->tensor_count++;
        status = read_tensor(o, &json, tensor);
        if (status != HR_OK) return status;
    }
    if (kind != HR_JSON_CLOSE || hr_json_next(&json) != HR_JSON_END) return wrong_header(o, &json);
    return HR_OK;
}
/* Length and text of a header. */
static hr_status check_length(const opening *o, const hr_stored_file *file,
                              const uint8_t length[LENGTH_BYTES], int64_t *text_bytes)
{
    uint64_t bytes = 0;
    for (int32_t i = LENGTH_BYTES - 1; i >= 0; i--) bytes = bytes << 8 | length[i];
    if (bytes > HR_STORED_HEADER_BYTES_MAX)
        return hr_fail(o->err, HR_CORRUPT,
                       "%s: says that its header has %llu bytes; %d is the most", shown(o->place),
                       (unsigned long long)bytes, HR_STORED_HEADER_BYTES_MAX);
    if ((int64_t)bytes > file->bytes - LENGTH_BYTES)
        return hr_fail(o->err, HR_CORRUPT,
                       "%s: its header ends at byte %lld, the file at %lld: it is cut short",
                       shown(o->place), (long long)bytes + LENGTH_BYTES, (long long)file->bytes);
    *text_bytes = (int64_t)bytes;
    return HR_OK;
}

static hr_status load_header(opening *o, int32_t index)
{
    hr_stored_file *file = &o->stored->files[index];
    uint8_t length[LENGTH_BYTES];
    if (file->bytes < LENGTH_BYTES)
        return hr_fail(o->err, HR_CORRUPT,
                       "%s: has %lld bytes, and a safetensors file begins with the %d of its "
                       "header's length",
                       shown(o->place), (long long)file->bytes, LENGTH_BYTES);
    hr_status status = hr_file_read(file->file, o->place, 0, length, LENGTH_BYTES, o->err);
    if (status == HR_OK) status = check_length(o, file, length, &o->text_bytes[index]);
    if (status != HR_OK) return status;
    o->texts[index] = hr_region_take(o->region, o->text_bytes[index] + 1, 1);
    if (!o->texts[index]) return out_of_room(o);
    file->data_offset = LENGTH_BYTES + o->text_bytes[index];
    return hr_file_read(file->file, o->place, LENGTH_BYTES, o->texts[index], o->text_bytes[index],
                        o->err);
}

/* ---- the index */

static hr_status wrong_index(const opening *o, const hr_json *json)
{
    return not_json(o, json, "the index", 0);
}

/* A shard lies in the folder, under a name of its own. */
static hr_status find_shard(opening *o, const char *name, int32_t *file)
{
    hr_stored *stored = o->stored;
    for (int32_t i = stored->file_count - 1; i >= 0; i--)
        if (!strcmp(stored->files[i].name, name)) {
            *file = i;
            return HR_OK;
        }
    if (!*name || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, "..") ||
        !is_plain(name) || strlen(name) >= HR_NAME_BYTES)
        return hr_fail(o->err, HR_CORRUPT, "%s: names a shard that is no file's name in its folder",
                       shown(o->place));
    if (stored->file_count == HR_STORED_FILES_MAX)
        return hr_fail(o->err, HR_CORRUPT, "%s: names more than %d shards", shown(o->place),
                       HR_STORED_FILES_MAX);
    *file = stored->file_count++;
    stored->files[*file] = (hr_stored_file){ .name = name, .file = -1 };
    return HR_OK;
}

static hr_status read_weight_map(opening *o, hr_json *json)
{
    hr_json_kind kind = hr_json_next(json);
    if (kind != HR_JSON_OBJECT) return wrong_index(o, json);
    while ((kind = hr_json_next(json)) == HR_JSON_KEY) {
        named *row = add_row(o->region, (void **)&o->named, o->named_count, sizeof *row);
        if (!row) return out_of_room(o);
        if (!is_plain(json->value))
            return hr_fail(o->err, HR_CORRUPT,
                           "%s: the index, byte %lld: a control character in a tensor's name",
                           shown(o->place), (long long)json->at);
        o->named_count++;
        row->name = json->value;
        if (hr_json_next(json) != HR_JSON_STRING) return wrong_index(o, json);
        const hr_status status = find_shard(o, json->value, &row->file);
        if (status != HR_OK) return status;
    }
    return kind == HR_JSON_CLOSE ? HR_OK : wrong_index(o, json);
}

static hr_status read_index(opening *o, char *text, int64_t bytes)
{
    hr_json json = hr_json_over(text, bytes);
    hr_json_kind kind;
    bool seen = false;
    if (hr_json_next(&json) != HR_JSON_OBJECT) return wrong_index(o, &json);
    while ((kind = hr_json_next(&json)) == HR_JSON_KEY) {
        if (!hr_json_is(&json, "weight_map")) {
            if (!hr_json_skip(&json, kind)) return wrong_index(o, &json);
            continue;
        }
        if (seen)
            return hr_fail(o->err, HR_CORRUPT, "%s: has \"weight_map\" twice", shown(o->place));
        seen = true;
        const hr_status status = read_weight_map(o, &json);
        if (status != HR_OK) return status;
    }
    if (kind != HR_JSON_CLOSE || hr_json_next(&json) != HR_JSON_END) return wrong_index(o, &json);
    if (seen) return HR_OK;
    return hr_fail(o->err, HR_CORRUPT, "%s: has no \"weight_map\"", shown(o->place));
}

static hr_status sort_index(opening *o)
{
    int32_t *rows = hr_region_take(o->region, o->named_count, sizeof *rows);
    named *sorted = hr_region_take(o->region, o->named_count, sizeof *sorted);
    if (!rows || !sorted) return out_of_room(o);
    for (int32_t i = 0; i < o->named_count; i++) rows[i] = i;
    sort(o->named, named_before, rows, o->named_count);
    for (int32_t i = 0; i < o->named_count; i++) sorted[i] = o->named[rows[i]];
    o->named = sorted;
    for (int32_t i = 1; i < o->named_count; i++)
        if (!strcmp(sorted[i - 1].name, sorted[i].name))
            return hr_fail(o->err, HR_CORRUPT, "%s: names tensor %.*s twice", shown(o->place),
                           NAME_SHOWN, sorted[i].name);
    return HR_OK;
}

/* ---- what all headers together say */

static hr_status check_layout(const opening *o, const int32_t *by_offset)
{
    const hr_stored *stored = o->stored;
    int32_t row = 0;
    for (int32_t f = 0; f < stored->file_count; f++) {
        const hr_stored_file *file = &stored->files[f];
        const char *before = "the header";
        int64_t at = 0;
        for (; row < stored->tensor_count && stored->tensors[by_offset[row]].file == f; row++) {
            const hr_stored_tensor *tensor = &stored->tensors[by_offset[row]];
            if (tensor->offset != at)
                return hr_fail(o->err, HR_CORRUPT,
                               "%s: tensor %.*s begins at data byte %lld, and %.*s ends at %lld: "
                               "%s",
                               shown(file->name), NAME_SHOWN, tensor->name,
                               (long long)tensor->offset, NAME_SHOWN, before, (long long)at,
                               tensor->offset < at ? "they overlap" : "there is a hole");
            at += tensor->bytes;
            before = tensor->name;
        }
        if (at != file->bytes - file->data_offset)
            return hr_fail(
                o->err, HR_CORRUPT, "%s: its tensors end at data byte %lld, the file at %lld: %s",
                shown(file->name), (long long)at, (long long)(file->bytes - file->data_offset),
                at < file->bytes - file->data_offset ? "bytes are left over" : "it is cut short");
    }
    return HR_OK;
}

static named *find_named(const opening *o, const char *name)
{
    int32_t low = 0, high = o->named_count;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        const int order = strcmp(o->named[middle].name, name);
        if (order == 0) return &o->named[middle];
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return NULL;
}

/* Index and shards say the same. */
static hr_status check_index(const opening *o)
{
    const hr_stored *stored = o->stored;
    for (int32_t i = 0; i < stored->tensor_count; i++) {
        const hr_stored_tensor *tensor = &stored->tensors[i];
        named *row = find_named(o, tensor->name);
        if (!row || row->file != tensor->file)
            return hr_fail(o->err, HR_CORRUPT, "%s: holds tensor %.*s, which %s puts %s%s",
                           shown(stored->files[tensor->file].name), NAME_SHOWN, tensor->name,
                           hr_stored_index_name, row ? "in " : "nowhere",
                           row ? shown(stored->files[row->file].name) : "");
        row->found = true;
    }
    for (int32_t i = 0; i < o->named_count; i++)
        if (!o->named[i].found)
            return hr_fail(o->err, HR_CORRUPT, "%s: has no tensor %.*s, which %s puts there",
                           shown(stored->files[o->named[i].file].name), NAME_SHOWN,
                           o->named[i].name, hr_stored_index_name);
    return HR_OK;
}

static hr_status check_all(opening *o)
{
    hr_stored *stored = o->stored;
    const int32_t count = stored->tensor_count;
    stored->by_name = hr_region_take(o->region, count, sizeof *stored->by_name);
    stored->by_offset = hr_region_take(o->region, count, sizeof *stored->by_offset);
    if (!stored->by_name || !stored->by_offset) return out_of_room(o);
    for (int32_t i = 0; i < count; i++) stored->by_name[i] = stored->by_offset[i] = i;
    sort(stored->tensors, name_before, stored->by_name, count);
    sort(stored->tensors, offset_before, stored->by_offset, count);
    for (int32_t i = 1; i < count; i++) {
        const hr_stored_tensor *a = &stored->tensors[stored->by_name[i - 1]];
        const hr_stored_tensor *b = &stored->tensors[stored->by_name[i]];
        if (strcmp(a->name, b->name)) continue;
        const char *file = shown(stored->files[a->file].name);
        if (a->file == b->file)
            return hr_fail(o->err, HR_CORRUPT, "%s: has tensor %.*s twice", file, NAME_SHOWN,
                           a->name);
        return hr_fail(o->err, HR_CORRUPT, "%s: has tensor %.*s, and %s has it too", file,
                       NAME_SHOWN, a->name, shown(stored->files[b->file].name));
    }
    hr_status status = check_layout(o, stored->by_offset);
    if (status == HR_OK && stored->sharded) status = check_index(o);
    for (int32_t i = 0; i < count; i++)
        stored->tensors[i].offset += stored->files[stored->tensors[i].file].data_offset;
    return status;
}

/* ---- opening */

static bool is_folder(const char *path)
{
    struct stat what;
    return stat(path, &what) == 0 && S_ISDIR(what.st_mode);
}

static hr_status open_index(opening *o)
{
    int file;
    int64_t bytes;
    hr_status status = hr_path_join(o->folder, hr_stored_index_name, o->place, sizeof o->place,
                                    o->err);
    if (status == HR_OK) status = hr_file_open(o->place, &file, &bytes, o->err);
    if (status != HR_OK) return status;
    char *text = NULL;
    if (bytes > HR_STORED_HEADER_BYTES_MAX)
        status = hr_fail(o->err, HR_CORRUPT, "%s: has %lld bytes; %d is the most", shown(o->place),
                         (long long)bytes, HR_STORED_HEADER_BYTES_MAX);
    else if (!(text = hr_region_take(o->region, bytes + 1, 1))) status = out_of_room(o);
    else status = hr_file_read(file, o->place, 0, text, bytes, o->err);
    hr_file_close(&file);
    o->stored->sharded = true;
    if (status == HR_OK) status = read_index(o, text, bytes);
    return status == HR_OK ? sort_index(o) : status;
}

/* Sets `place` for a file of the table. */
static hr_status find_place(opening *o, int32_t index)
{
    const char *name = o->stored->files[index].name;
    if (o->folder) return hr_path_join(o->folder, name, o->place, sizeof o->place, o->err);
    snprintf(o->place, sizeof o->place, "%s", name); /* not longer: it was copied into as much */
    return HR_OK;
}

static hr_status open_shards(opening *o)
{
    hr_stored *stored = o->stored;
    hr_status status = HR_OK;
    for (int32_t i = 0; i < stored->file_count && status == HR_OK; i++) {
        hr_stored_file *file = &stored->files[i];
        status = find_place(o, i);
        if (status == HR_OK && stored->sharded && !hr_file_exists(o->place))
            return hr_fail(o->err, HR_USAGE, "%s: there is no such file, and %s names it",
                           shown(o->place), hr_stored_index_name);
        if (status == HR_OK) status = hr_file_open(o->place, &file->file, &file->bytes, o->err);
        if (status == HR_OK) status = load_header(o, i);
    }
    for (int32_t i = 0; i < stored->file_count && status == HR_OK; i++) {
        status = find_place(o, i);
        if (status == HR_OK) status = read_header(o, i);
    }
    return status;
}

static hr_status open_all(opening *o, const char *path)
{
    hr_stored *stored = o->stored;
    char *kept = hr_region_take(o->region, (int64_t)strlen(path) + 1, 1);
    stored->files = hr_region_take(o->region, HR_STORED_FILES_MAX, sizeof *stored->files);
    if (!kept || !stored->files)
        return hr_fail(o->err, HR_FAILURE, "%s: the table of its files finds no room", shown(path));
    stored->path = strcpy(kept, path);
    hr_status status = HR_OK;
    if (is_folder(path)) {
        o->folder = kept;
        status = hr_path_join(path, hr_stored_single_name, o->place, sizeof o->place, o->err);
        const bool single = status == HR_OK && hr_file_exists(o->place);
        if (status == HR_OK)
            status = hr_path_join(path, hr_stored_index_name, o->place, sizeof o->place, o->err);
        if (status != HR_OK) return status;
        if (!single && !hr_file_exists(o->place))
            return hr_fail(o->err, HR_USAGE, "%s: has neither %s nor %s", shown(path),
                           hr_stored_single_name, hr_stored_index_name);
        if (!single) status = open_index(o);
        else stored->files[stored->file_count++] = (hr_stored_file){ hr_stored_single_name, -1 };
    } else {
        if (strlen(path) >= sizeof o->place)
            return hr_fail(o->err, HR_USAGE, "%s: the path is too long", shown(path));
        stored->files[stored->file_count++] = (hr_stored_file){ kept, -1 };
    }
    if (status == HR_OK) status = open_shards(o);
    return status == HR_OK ? check_all(o) : status;
}

hr_status hr_stored_open(hr_stored *stored, const char *path, hr_region *region, hr_error *err)
{
    opening o = { .stored = stored, .region = region, .err = err };
    *stored = (hr_stored){ 0 };
    const hr_status status = open_all(&o, path);
    if (status != HR_OK) hr_stored_close(stored);
    return status;
}

void hr_stored_close(hr_stored *stored)
{
    for (int32_t i = 0; i < stored->file_count; i++) hr_file_close(&stored->files[i].file);
    *stored = (hr_stored){ 0 };
}

/* ---- how much room that takes */

/* A text and its rows: a tensor takes 50 bytes of text at least and 104 + 2 x 4 of tables, a row of
 * an index 7 and 2 x 16 + 4. */
static int64_t bytes_of_text(int64_t text_bytes)
{
    return 7 * text_bytes + 1024;
}

static int64_t bytes_of_file(const char *path)
{
    uint8_t length[LENGTH_BYTES];
    uint64_t text_bytes = 0;
    int file;
    int64_t bytes;
    if (hr_file_open(path, &file, &bytes, NULL) != HR_OK) return 0;
    if (hr_file_read(file, path, 0, length, LENGTH_BYTES, NULL) == HR_OK)
        for (int32_t i = LENGTH_BYTES - 1; i >= 0; i--) text_bytes = text_bytes << 8 | length[i];
    hr_file_close(&file);
    if (text_bytes > HR_STORED_HEADER_BYTES_MAX || (int64_t)text_bytes > bytes) text_bytes = 0;
    return bytes_of_text((int64_t)text_bytes);
}

/* Every shard that an index may name lies in the folder. */
static int64_t bytes_of_shards(const char *folder)
{
    static const char suffix[] = ".safetensors";
    const size_t suffix_bytes = sizeof suffix - 1;
    char path[PATH_MAX];
    int64_t sum = 0;
    DIR *directory = opendir(folder);
    if (!directory) return 0;
    for (const struct dirent *entry; (entry = readdir(directory));) {
        const size_t bytes = strlen(entry->d_name);
        if (bytes < suffix_bytes || strcmp(entry->d_name + bytes - suffix_bytes, suffix)) continue;
        if (hr_path_join(folder, entry->d_name, path, sizeof path, NULL) == HR_OK)
            sum += bytes_of_file(path);
    }
    closedir(directory);
    return sum;
}

int64_t hr_stored_bytes(const char *path)
{
    char inside[PATH_MAX];
    int file;
    int64_t bytes;
    const int64_t fixed = (int64_t)strlen(path) + 4096 +
                          HR_STORED_FILES_MAX * (int64_t)sizeof(hr_stored_file);
    if (!is_folder(path)) {
        bytes = bytes_of_file(path);
        return bytes ? fixed + bytes : 0;
    }
    if (hr_path_join(path, hr_stored_single_name, inside, sizeof inside, NULL) != HR_OK) return 0;
    if (hr_file_exists(inside)) return fixed + bytes_of_file(inside);
    if (hr_path_join(path, hr_stored_index_name, inside, sizeof inside, NULL) != HR_OK ||
        hr_file_open(inside, &file, &bytes, NULL) != HR_OK)
        return 0;
    hr_file_close(&file);
    return fixed + bytes_of_text(hr_min(bytes, HR_STORED_HEADER_BYTES_MAX)) + bytes_of_shards(path);
}

/* ---- looking things up */

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

const char *hr_stored_shape(const hr_stored_tensor *tensor, char *text, int64_t bytes)
{
    int64_t used = snprintf(text, (size_t)bytes, "[");
    for (int32_t i = 0; i < tensor->rank && used < bytes; i++)
        used += snprintf(text + used, (size_t)(bytes - used), "%s%lld", i ? ", " : "",
                         (long long)tensor->dims[i]);
    if (used < bytes) snprintf(text + used, (size_t)(bytes - used), "]");
    return text;
}
