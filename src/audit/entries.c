/* SPDX-License-Identifier: Apache-2.0 */
/* audit/entries.c - the list of entries, and files of JSON. */
#include "audit/entries.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "config/yaml_events.h"

hr_entry *hr_entries_find(const hr_entries *entries, const char *key)
{
    for (int32_t i = 0; i < entries->count; i++)
        if (!strcmp(entries->list[i].key, key)) return &entries->list[i];
    return NULL;
}

bool hr_entries_has(const hr_entries *entries, const char *key)
{
    const size_t length = strlen(key);
    for (int32_t i = 0; i < entries->count; i++) {
        const char *name = entries->list[i].key;
        if (!strncmp(name, key, length) && strchr(".[", name[length])) return true;
    }
    return false;
}

static const char *copy(hr_region *region, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *to = hr_region_take_raw(region, 1, (int64_t)bytes);
    if (to) memcpy(to, text, bytes);
    return to;
}

hr_status hr_entries_add(hr_entries *entries, const char *path, const hr_entry *entry,
                         hr_error *err)
{
    char sentence[HR_ENTRY_KEY_BYTES + 64];
    hr_entry *old = hr_entries_find(entries, entry->key);
    if (old && entry->merged) return HR_OK;
    if (old && !old->merged) {
        snprintf(sentence, sizeof sentence, "%.100s is given twice, first in line %lld; remove one",
                 entry->key, (long long)old->line);
        return hr_yaml_fail(path, entry->line, sentence, err);
    }
    hr_entry *to = old ? old : &entries->list[entries->count];
    if (!old && entries->count == HR_ENTRIES_MOST) {
        snprintf(sentence, sizeof sentence, "more than %d entries", HR_ENTRIES_MOST);
        return hr_yaml_fail(path, entry->line, sentence, err);
    }
    *to = *entry;
    to->key = copy(entries->region, entry->key);
    to->value = copy(entries->region, entry->value);
    if (!to->key || !to->value)
        return hr_yaml_fail(path, entry->line, "the texts of all entries are too long", err);
    entries->count += !old;
    return HR_OK;
}

/* ---- JSON */

/* An open object or array. */
typedef struct {
    bool list;
    int32_t length; /* of the key up to here */
    int32_t index;  /* of the next value in a list */
} level;

typedef struct {
    const char *path, *text; /* as in the file; the parser works on a copy */
    hr_json json;
    char key[HR_ENTRY_KEY_BYTES];
    level levels[HR_ENTRY_DEPTH_MOST];
    int32_t depth, length; /* length: of the key of the value that comes next */
    int64_t line, counted;
    hr_entries *entries;
    hr_error *err;
} json_reader;

static void count_lines(json_reader *r)
{
    for (; r->counted < r->json.at; r->counted++) r->line += r->text[r->counted] == '\n';
}

/* The key of the next value in a list. */
static hr_status name_element(json_reader *r)
{
    level *l = r->depth ? &r->levels[r->depth - 1] : NULL;
    if (!l || !l->list) return HR_OK;
    const int written = snprintf(r->key + l->length, sizeof r->key - (size_t)l->length, "[%d]",
                                 (int)l->index++);
    r->length = l->length + written;
    return r->length < HR_ENTRY_KEY_BYTES
               ? HR_OK
               : hr_yaml_fail(r->path, r->line, "a name that is too long", r->err);
}

static hr_status take_key(json_reader *r)
{
    const level *l = &r->levels[r->depth - 1];
    const int written = snprintf(r->key + l->length, sizeof r->key - (size_t)l->length, "%s%s",
                                 l->length ? "." : "", r->json.value);
    r->length = l->length + written;
    return r->length < HR_ENTRY_KEY_BYTES
               ? HR_OK
               : hr_yaml_fail(r->path, r->line, "a name that is too long", r->err);
}

static hr_status add_json(json_reader *r, const char *value, bool is_null, bool is_text)
{
    r->key[r->length] = 0;
    const hr_entry entry = { r->key, value, r->line, is_null, is_text, false, false };
    return hr_entries_add(r->entries, r->path, &entry, r->err);
}

static hr_status open_json(json_reader *r, bool list)
{
    if (r->depth == HR_ENTRY_DEPTH_MOST)
        return hr_yaml_fail(r->path, r->line, "more than 16 levels", r->err);
    r->levels[r->depth++] = (level){ list, r->length, 0 };
    return HR_OK;
}

static hr_status take_json(json_reader *r, hr_json_kind kind)
{
    char number[64];
    hr_status status = kind == HR_JSON_KEY || kind == HR_JSON_CLOSE ? HR_OK : name_element(r);
    if (status != HR_OK) return status;
    switch (kind) {
    case HR_JSON_KEY: return take_key(r);
    case HR_JSON_OBJECT: return open_json(r, false);
    case HR_JSON_ARRAY: return open_json(r, true);
    case HR_JSON_CLOSE: {
        const level *l = &r->levels[--r->depth];
        const bool empty = r->length == l->length && !(l->list && l->index);
        r->length = l->length;
        return empty ? add_json(r, l->list ? "[]" : "{}", false, false) : HR_OK;
    }
    case HR_JSON_NULL: return add_json(r, "", true, false);
    case HR_JSON_TRUE: return add_json(r, "true", false, false);
    case HR_JSON_FALSE: return add_json(r, "false", false, false);
    case HR_JSON_STRING: return add_json(r, r->json.value, false, true);
    default: break;
    }
    snprintf(number, sizeof number, "%.*s", (int)r->json.value_bytes, r->json.value);
    return add_json(r, number, false, false);
}

/* What people write that JSON does not have; null: the problem says enough. */
static const char *explain(const char *text, int64_t bytes, int64_t at)
{
    static const char *const words[][2] = {
        { "//", "JSON has no comments" },
        { "/*", "JSON has no comments" },
        { "#", "JSON has no comments" },
        { "'", "a text stands in double quotes" },
        { "True", "JSON writes True as true" },
        { "False", "JSON writes False as false" },
        { "None", "JSON writes None as null" },
        { "NaN", "JSON has no NaN; write null" },
        { "Infinity", "JSON has no Infinity; write null" },
        { "-Infinity", "JSON has no Infinity; write null" },
        { ".", "a number has a digit before its point" },
        { "+", "a number has no sign +" },
    };
    int64_t before = at - 1;
    while (before >= 0 && strchr(" \t\r\n", text[before])) before--;
    if (at < bytes && strchr("}]", text[at]) && before >= 0 && text[before] == ',')
        return "a comma stands before the closing bracket; remove it";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t length = strlen(words[i][0]);
        if ((int64_t)length <= bytes - at && !memcmp(text + at, words[i][0], length))
            return words[i][1];
    }
    return NULL;
}

/* "x.json:3: not JSON at column 14: no colon after a key" */
static hr_status fail_json(json_reader *r, int64_t bytes)
{
    char sentence[160];
    int64_t at = r->json.at < bytes ? r->json.at : bytes, first = at;
    const char *hint = explain(r->text, bytes, at);
    while (first > 0 && r->text[first - 1] != '\n') first--;
    snprintf(sentence, sizeof sentence, "not JSON at column %lld: %s", (long long)(at - first) + 1,
             hint ? hint : r->json.problem);
    return hr_yaml_fail(r->path, r->line, sentence, r->err);
}

static hr_status begin(hr_region *region, hr_entries *out, hr_error *err)
{
    *out = (hr_entries){ .region = region };
    out->list = hr_region_take(region, HR_ENTRIES_MOST, sizeof *out->list);
    return out->list ? HR_OK : hr_fail(err, HR_FAILURE, "too little memory for entries");
}

hr_status hr_entries_read_json(const char *path, const char *text, int64_t bytes, hr_region *region,
                               hr_entries *out, hr_error *err)
{
    hr_status status = begin(region, out, err);
    if (status != HR_OK) return status;
    char *work = hr_region_take_raw(region, 1, bytes + 1);
    if (!work) return hr_fail(err, HR_FAILURE, "%s: too little memory", path);
    memcpy(work, text, (size_t)bytes);
    json_reader r = { .path = path, .text = text, .line = 1, .entries = out, .err = err };
    r.json = hr_json_over_file(work, bytes);
    for (int64_t i = 0; i <= 2 * bytes + 2; i++) {
        const hr_json_kind kind = hr_json_next(&r.json);
        count_lines(&r);
        if (kind == HR_JSON_END) return HR_OK;
        if (kind == HR_JSON_WRONG) return fail_json(&r, bytes);
        status = take_json(&r, kind);
        if (status != HR_OK) return status;
    }
    return hr_fail(err, HR_USAGE, "%s: not JSON", path);
}
