/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/index.c - the index of shards: maps each tensor to its file. */
#include <string.h>

#include "base/path.h"
#include "base/sort.h"
#include "checkpoint/opening.h"

const char hr_stored_index_name[] = "model.safetensors.index.json";

static bool named_before(const void *table, int32_t a, int32_t b)
{
    const hr_opening_name *rows = table;
    return strcmp(rows[a].name, rows[b].name) < 0;
}

static hr_status wrong_index(const hr_opening *o, const hr_json *json)
{
    return hr_opening_not_json(o, json, "the index", 0);
}

/* Finds a shard or adds it. Its name must be a plain file name in the folder. */
static hr_status find_shard(hr_opening *o, const char *name, int32_t *file)
{
    hr_stored *stored = o->stored;
    for (int32_t i = stored->file_count - 1; i >= 0; i--)
        if (!strcmp(stored->files[i].name, name)) {
            *file = i;
            return HR_OK;
        }
    if (!*name || strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, "..") ||
        !hr_opening_is_plain(name) || strlen(name) >= HR_NAME_BYTES)
        return hr_fail(o->err, HR_CORRUPT, "%s: names a shard that is not a file name",
                       hr_path_shown(o->place));
    if (stored->file_count == HR_STORED_FILES_MAX)
        return hr_fail(o->err, HR_CORRUPT, "%s: names more than %d shards", hr_path_shown(o->place),
                       HR_STORED_FILES_MAX);
    *file = stored->file_count++;
    stored->files[*file] = (hr_stored_file){ .name = name, .file = -1 };
    return HR_OK;
}

static hr_status read_weight_map(hr_opening *o, hr_json *json)
{
    hr_json_kind kind = hr_json_next(json);
    if (kind != HR_JSON_OBJECT) return wrong_index(o, json);
    while ((kind = hr_json_next(json)) == HR_JSON_KEY) {
        hr_opening_name *row = hr_opening_add_row(o->region, (void **)&o->named, o->named_count,
                                                  sizeof *row);
        if (!row) return hr_opening_no_room(o);
        if (!hr_opening_is_plain(json->value))
            return hr_fail(o->err, HR_CORRUPT,
                           "%s: the index, byte %lld: a control character in a tensor's name",
                           hr_path_shown(o->place), (long long)json->at);
        o->named_count++;
        row->name = json->value;
        if (hr_json_next(json) != HR_JSON_STRING) return wrong_index(o, json);
        const hr_status status = find_shard(o, json->value, &row->file);
        if (status != HR_OK) return status;
    }
    return kind == HR_JSON_CLOSE ? HR_OK : wrong_index(o, json);
}

static hr_status read_index(hr_opening *o, char *text, int64_t bytes)
{
    hr_json json = hr_json_over_file(text, bytes);
    hr_json_kind kind;
    bool seen = false;
    if (hr_json_next(&json) != HR_JSON_OBJECT) return wrong_index(o, &json);
    while ((kind = hr_json_next(&json)) == HR_JSON_KEY) {
        if (!hr_json_is(&json, "weight_map")) {
            if (!hr_json_skip(&json, kind)) return wrong_index(o, &json);
            continue;
        }
        if (seen)
            return hr_fail(o->err, HR_CORRUPT, "%s: has \"weight_map\" twice",
                           hr_path_shown(o->place));
        seen = true;
        const hr_status status = read_weight_map(o, &json);
        if (status != HR_OK) return status;
    }
    if (kind != HR_JSON_CLOSE || hr_json_next(&json) != HR_JSON_END) return wrong_index(o, &json);
    if (o->named_count) return HR_OK;
    return hr_fail(o->err, HR_CORRUPT, seen ? "%s: names no tensor" : "%s: has no \"weight_map\"",
                   hr_path_shown(o->place));
}

static hr_status sort_index(hr_opening *o)
{
    int32_t *rows = hr_region_take(o->region, o->named_count, sizeof *rows);
    hr_opening_name *sorted = hr_region_take(o->region, o->named_count, sizeof *sorted);
    if (!rows || !sorted) return hr_opening_no_room(o);
    for (int32_t i = 0; i < o->named_count; i++) rows[i] = i;
    hr_sort(o->named, named_before, rows, o->named_count);
    for (int32_t i = 0; i < o->named_count; i++) sorted[i] = o->named[rows[i]];
    o->named = sorted;
    for (int32_t i = 1; i < o->named_count; i++)
        if (!strcmp(sorted[i - 1].name, sorted[i].name))
            return hr_fail(o->err, HR_CORRUPT, "%s: names tensor %.*s twice",
                           hr_path_shown(o->place), HR_STORED_NAME_SHOWN, sorted[i].name);
    return HR_OK;
}

hr_status hr_opening_open_index(hr_opening *o)
{
    int file;
    int64_t bytes;
    hr_status status = hr_path_join(o->folder, hr_stored_index_name, o->place, sizeof o->place,
                                    o->err);
    if (status == HR_OK) status = hr_file_open(o->place, &file, &bytes, o->err);
    if (status != HR_OK) return status;
    char *text = NULL;
    if (bytes > HR_STORED_HEADER_BYTES_MAX)
        status = hr_fail(o->err, HR_CORRUPT, "%s: has %lld bytes, the limit is %d",
                         hr_path_shown(o->place), (long long)bytes, HR_STORED_HEADER_BYTES_MAX);
    else if (!(text = hr_region_take(o->region, bytes + 1, 1))) status = hr_opening_no_room(o);
    else status = hr_file_read(file, o->place, 0, text, bytes, o->err);
    hr_file_close(&file);
    o->stored->sharded = true;
    if (status == HR_OK) status = read_index(o, text, bytes);
    return status == HR_OK ? sort_index(o) : status;
}

static hr_opening_name *find_named(const hr_opening *o, const char *name)
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

/* The message begins with the path of the shard. */
static hr_status wrong_shard(hr_opening *o, int32_t file, const char *what, const char *tensor,
                             const char *where, const char *shard)
{
    const hr_status status = hr_opening_place(o, file);
    if (status != HR_OK) return status;
    return hr_fail(o->err, HR_CORRUPT, "%s: %s tensor %.*s, which %s puts %s%s",
                   hr_path_shown(o->place), what, HR_STORED_NAME_SHOWN, tensor,
                   hr_stored_index_name, where, shard);
}

/* Every tensor is in the shard that the index names, and every entry has a tensor. */
hr_status hr_opening_check_index(hr_opening *o)
{
    const hr_stored *stored = o->stored;
    for (int32_t i = 0; i < stored->tensor_count; i++) {
        const hr_stored_tensor *tensor = &stored->tensors[i];
        hr_opening_name *row = find_named(o, tensor->name);
        if (!row) return wrong_shard(o, tensor->file, "holds", tensor->name, "nowhere", "");
        if (row->file != tensor->file)
            return wrong_shard(o, tensor->file, "holds", tensor->name, "in ",
                               hr_path_shown(stored->files[row->file].name));
        row->found = true;
    }
    for (int32_t i = 0; i < o->named_count; i++)
        if (!o->named[i].found)
            return wrong_shard(o, o->named[i].file, "has no", o->named[i].name, "there", "");
    return HR_OK;
}
