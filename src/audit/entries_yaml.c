/* SPDX-License-Identifier: Apache-2.0 */
/* audit/entries_yaml.c - YAML events to entries. An anchor remembers its range of entries; an alias
 * copies them under its own name. */
#include <stdio.h>
#include <string.h>

#include "audit/entries.h"
#include "config/yaml_events.h"

enum { ANCHORS_MOST = 64 };

typedef struct {
    bool list, value_next;
    int32_t length; /* of the key up to here */
    int32_t index;
    int32_t anchor; /* that this level ends; -1: none */
    int32_t first;  /* entries before it */
} level;

typedef struct {
    char name[64];
    char key[HR_ENTRY_KEY_BYTES]; /* of the value that it names */
    int32_t first, last;          /* entries; last -1: still open */
} anchor;

typedef struct {
    const char *path;
    char key[HR_ENTRY_KEY_BYTES];
    int32_t length; /* of the key of the next value */
    level levels[HR_ENTRY_DEPTH_MOST];
    int32_t depth, documents;
    anchor anchors[ANCHORS_MOST];
    int32_t anchor_count;
    int64_t line;
    hr_entries *entries;
    hr_error *err;
} reader;

static hr_status fail(const reader *r, const char *what)
{
    return hr_yaml_fail(r->path, r->line, what, r->err);
}

/* A key without the parts "<<": its entries belong to the map around it. Returns whether there were
 * any. */
static bool without_merges(const char *key, char out[HR_ENTRY_KEY_BYTES])
{
    bool merged = false;
    int32_t n = 0;
    for (const char *at = key; *at;) {
        const bool begins = at == key || at[-1] == '.';
        if (begins && !strncmp(at, "<<", 2) && strchr(".[", at[2])) {
            at += 2;
            if (*at == '[') at += strcspn(at, "]");
            at += *at == ']';
            at += *at == '.';
            merged = true;
            if (!*at && n && out[n - 1] == '.') n--;
        } else out[n++] = *at++;
    }
    out[n] = 0;
    return merged;
}

static hr_status add(reader *r, const char *value, bool is_null, bool is_text)
{
    char key[HR_ENTRY_KEY_BYTES];
    r->key[r->length] = 0;
    hr_entry entry = { key, value, r->line, is_null, is_text, false, false };
    entry.merged = without_merges(r->key, key);
    if (entry.merged && !strcmp(value, "{}")) return HR_OK;
    return hr_entries_add(r->entries, r->path, &entry, r->err);
}

/* Gives the next value of a list its name; marks the value of a map as taken. */
static hr_status begin_value(reader *r)
{
    level *l = r->depth ? &r->levels[r->depth - 1] : NULL;
    if (!l) r->length = 0;
    if (l && !l->list) l->value_next = false;
    if (!l || !l->list) return HR_OK;
    const int written = snprintf(r->key + l->length, sizeof r->key - (size_t)l->length, "[%d]",
                                 (int)l->index++);
    r->length = l->length + written;
    return r->length < HR_ENTRY_KEY_BYTES ? HR_OK : fail(r, "a name that is too long");
}

static hr_status begin_anchor(reader *r, const yaml_char_t *name, int32_t *index)
{
    *index = -1;
    if (!name) return HR_OK;
    if (r->anchor_count == ANCHORS_MOST) return fail(r, "more than 64 anchors");
    anchor *a = &r->anchors[ *index = r->anchor_count++];
    snprintf(a->name, sizeof a->name, "%s", (const char *)name);
    snprintf(a->key, sizeof a->key, "%.*s", (int)r->length, r->key);
    a->first = r->entries->count;
    a->last = -1;
    return HR_OK;
}

static void end_anchor(reader *r, int32_t index)
{
    if (index >= 0) r->anchors[index].last = r->entries->count;
}

static hr_status take_name(reader *r, const char *name)
{
    level *l = &r->levels[r->depth - 1];
    const int written = snprintf(r->key + l->length, sizeof r->key - (size_t)l->length, "%s%s",
                                 l->length ? "." : "", name);
    r->length = l->length + written;
    l->value_next = true;
    return r->length < HR_ENTRY_KEY_BYTES ? HR_OK : fail(r, "a name that is too long");
}

static bool names_next(const reader *r)
{
    const level *l = r->depth ? &r->levels[r->depth - 1] : NULL;
    return l && !l->list && !l->value_next;
}

static hr_status take_scalar(reader *r, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    int32_t named;
    if (strlen(text) != event->data.scalar.length) return fail(r, "a zero byte in a text");
    if (names_next(r)) return take_name(r, text);
    hr_status status = begin_value(r);
    if (status == HR_OK) status = begin_anchor(r, event->data.scalar.anchor, &named);
    if (status != HR_OK) return status;
    const bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    const bool is_null = plain && (!*text || !strcmp(text, "~") || !strcmp(text, "null") ||
                                   !strcmp(text, "Null") || !strcmp(text, "NULL"));
    status = add(r, is_null ? "" : text, is_null, !plain);
    end_anchor(r, named);
    return status;
}

static hr_status open_level(reader *r, bool list, const yaml_char_t *name)
{
    int32_t named;
    if (names_next(r)) return fail(r, "a key that is a list or a map");
    hr_status status = begin_value(r);
    if (status == HR_OK) status = begin_anchor(r, name, &named);
    if (status != HR_OK) return status;
    if (r->depth == HR_ENTRY_DEPTH_MOST) return fail(r, "more than 16 levels");
    r->levels[r->depth++] = (level){ list, false, r->length, 0, named, r->entries->count };
    return HR_OK;
}

static hr_status close_level(reader *r)
{
    hr_status status = HR_OK;
    const level l = r->levels[--r->depth];
    r->length = l.length;
    if (l.first == r->entries->count && r->depth)
        status = add(r, l.list ? "[]" : "{}", false, false);
    end_anchor(r, l.anchor);
    return status;
}

/* Copies the entries of an anchor under the current name. */
static hr_status take_alias(reader *r, const char *name)
{
    char key[2 * HR_ENTRY_KEY_BYTES], clean[HR_ENTRY_KEY_BYTES];
    int32_t found = -1;
    if (names_next(r)) return fail(r, "a key that is an alias");
    for (int32_t i = 0; i < r->anchor_count; i++)
        if (!strcmp(r->anchors[i].name, name)) found = i;
    if (found < 0) return fail(r, "an alias without an anchor");
    const anchor *a = &r->anchors[found];
    if (a->last < 0) return fail(r, "an alias inside of what it stands for");
    hr_status status = begin_value(r);
    (void)without_merges(a->key, clean);
    const size_t from = strlen(clean);
    for (int32_t i = a->first; status == HR_OK && i < a->last; i++) {
        hr_entry entry = r->entries->list[i];
        r->key[r->length] = 0;
        if (snprintf(key, sizeof key, "%s%s", r->key, entry.key + from) >= HR_ENTRY_KEY_BYTES)
            return fail(r, "a name that is too long");
        entry.merged = without_merges(key, clean);
        entry.key = clean;
        entry.line = r->line;
        status = hr_entries_add(r->entries, r->path, &entry, r->err);
    }
    return status;
}

static hr_status take(void *context, const yaml_event_t *event, int64_t line)
{
    reader *r = context;
    r->line = line;
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return r->documents++ ? fail(r, "a second document; an audit reads one") : HR_OK;
    case YAML_SCALAR_EVENT: return take_scalar(r, event);
    case YAML_MAPPING_START_EVENT: return open_level(r, false, event->data.mapping_start.anchor);
    case YAML_SEQUENCE_START_EVENT: return open_level(r, true, event->data.sequence_start.anchor);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT: return close_level(r);
    case YAML_ALIAS_EVENT: return take_alias(r, (const char *)event->data.alias.anchor);
    default: return HR_OK;
    }
}

hr_status hr_entries_read_yaml(const char *path, hr_region *region, hr_entries *out, hr_error *err)
{
    *out = (hr_entries){ .region = region };
    out->list = hr_region_take(region, HR_ENTRIES_MOST, sizeof *out->list);
    reader *r = hr_region_take(region, 1, sizeof *r);
    if (!r || !out->list) return hr_fail(err, HR_FAILURE, "%s: too little memory", path);
    r->path = path;
    r->entries = out;
    r->err = err;
    return hr_yaml_read(path, "file to audit", take, r, err);
}
