/* SPDX-License-Identifier: Apache-2.0 */
/* config/config_read.c - reads a recipe: YAML events to dotted keys.
 *
 * libyaml gives events with line numbers. The table of keys is the only schema. Of YAML, only
 * mappings of single values are accepted, and lists of them for the few keys that take a list; the
 * error names anything else. */
#include "config/config.h"

#include <stdio.h>
#include <string.h>

#include "config/config_keys.h"
#include "config/yaml_events.h"
#include "headroom/foreign.h"

enum {
    KEY_BYTES = 128,
    DEPTH_MAX = 8, /* known sections have at most three levels; unknown ones are refused first */
    LIST_BYTES = HR_VALUE_BYTES + 1 /* one more than a value may have, so that the key refuses it */
};

typedef struct {
    hr_config config;
    hr_error *err;
    const char *path;
    char key[KEY_BYTES]; /* dotted; [0, length[depth]) is the section */
    int32_t length[DEPTH_MAX];
    int32_t depth;   /* open mappings; 0: before the root */
    bool value_next; /* a key was read, its value is next */
    int32_t documents;
    int64_t list_line;                        /* first line of the open list; 0: none is open */
    char list[LIST_BYTES];                    /* entries so far, joined to one text */
    char entry_key[KEY_BYTES];                /* in a mapping of the list, before its value */
    bool in_entry;                            /* a mapping of the list is open */
    bool whole_entry;                         /* it stands for the whole list */
    int64_t line;                             /* of the current event, or of its key */
    int64_t last_key_line;                    /* of the last key */
    int64_t key_line[HR_CONFIG_ROWS_MAX];     /* line of the key, 0: not set */
    int64_t section_line[HR_CONFIG_ROWS_MAX]; /* the same, by the section's first row */
} reader;

static hr_status fail_at(const reader *r, const char *sentence)
{
    return hr_yaml_fail(r->path, r->line, sentence, r->err);
}

static hr_status fail_form(const reader *r, const char *what)
{
    hr_error inner;
    (void)hr_fail(&inner, HR_USAGE, "%s; a recipe maps keys to single values", what);
    return fail_at(r, inner.message);
}

static hr_status fail_unknown_key(const reader *r, const char *value)
{
    hr_error inner;
    (void)hr_config_fail_unknown(r->key, value, &inner);
    return fail_at(r, inner.message);
}

static hr_status fail_unknown_section(const reader *r)
{
    char nearest[KEY_BYTES] = "", quoted[48], advice[HR_ADVICE_BYTES];
    int32_t least = INT32_MAX;
    for (int32_t i = 0; i < hr_config_row_count(); i++) {
        const char *name = hr_config_rows()[i].key.name;
        for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
            char section[KEY_BYTES];
            snprintf(section, sizeof section, "%.*s", (int)(dot - name), name);
            const int32_t distance = hr_config_distance(r->key, section);
            if (distance >= least) continue;
            least = distance;
            memcpy(nearest, section, sizeof nearest);
        }
    }
    hr_error inner;
    if (!*nearest && hr_config_advise(r->key, NULL, advice)) return fail_unknown_key(r, NULL);
    (void)hr_fail(&inner, HR_USAGE, "%s is not a section%s%s (headroom keys lists all)",
                  hr_config_quote(r->key, quoted), *nearest ? "; the nearest is " : "", nearest);
    return fail_at(r, inner.message);
}

static hr_status fail_repeated(const reader *r, int64_t line_before)
{
    hr_error inner;
    (void)hr_fail(&inner, HR_USAGE, "%s is given twice, first in line %lld; remove one", r->key,
                  (long long)line_before);
    return fail_at(r, inner.message);
}

/* First row whose name starts with "<section>."; -1: there is none. */
static int32_t section_row(const char *section)
{
    const size_t length = strlen(section);
    for (int32_t i = 0; i < hr_config_row_count(); i++) {
        const char *name = hr_config_rows()[i].key.name;
        if (!strncmp(name, section, length) && name[length] == '.') return i;
    }
    return -1;
}

/* Error for a value of another kind than the key or section takes. */
static hr_status fail_kind(const reader *r, const char *given)
{
    const bool section = hr_config_row_find(r->key) < 0;
    hr_error inner;
    (void)hr_fail(&inner, HR_USAGE, "%s %s, not %s", r->key,
                  section ? "is a section and takes a mapping of keys" : "takes a single value",
                  given);
    return fail_at(r, inner.message);
}

static hr_status fail_empty(const reader *r)
{
    hr_error inner;
    (void)hr_fail(&inner, HR_USAGE, "%s has no value: remove the line to use the default", r->key);
    return fail_at(r, inner.message);
}

static hr_status take_key(reader *r, const char *word)
{
    const int32_t base = r->length[r->depth - 1];
    const int room = (int)sizeof r->key - base;
    const int length = snprintf(r->key + base, (size_t)room, "%s%s", base ? "." : "", word);
    if (length >= room) return fail_unknown_key(r, NULL);
    r->value_next = true;
    r->last_key_line = r->line;
    return HR_OK;
}

static void drop_key(reader *r)
{
    r->key[r->length[r->depth - 1]] = 0;
    r->value_next = false;
}

/* Returns whether a value is one of YAML's forms of null. */
static bool is_nothing(const char *value, bool plain)
{
    return plain && (!*value || !strcmp(value, "~") || !strcmp(value, "null"));
}

static hr_status take_value(reader *r, const char *value, bool plain)
{
    const int32_t row = hr_config_row_find(r->key);
    const bool nothing = is_nothing(value, plain);
    if (row < 0) {
        if (section_row(r->key) < 0) return fail_unknown_key(r, nothing ? NULL : value);
        if (!nothing) return fail_kind(r, "a value");
        drop_key(r); /* "data:" without content */
        return HR_OK;
    }
    if (r->key_line[row]) return fail_repeated(r, r->key_line[row]);
    if (nothing) return fail_empty(r);
    hr_error inner;
    if (hr_config_set(&r->config, r->key, value, &inner) != HR_OK) return fail_at(r, inner.message);
    r->key_line[row] = r->line;
    drop_key(r);
    return HR_OK;
}

/* Appends an entry of a list. */
static hr_status take_entry(reader *r, const char *text, bool plain)
{
    const size_t length = strlen(r->list);
    if (is_nothing(text, plain) || !text[strspn(text, " \t\r\n")])
        return fail_at(r, "an empty entry in a list: remove it");
    snprintf(r->list + length, sizeof r->list - length, "%s%s",
             length ? hr_config_rows()[hr_config_row_find(r->key)].between : "", text);
    return HR_OK;
}

static hr_status append(reader *r, const char *before, const char *text, const char *after)
{
    const size_t length = strlen(r->list);
    snprintf(r->list + length, sizeof r->list - length, "%s%s%s", before, text, after);
    return HR_OK;
}

/* Takes a key or a value of a mapping in a list: "key=value", in quotes if it has blanks. */
static hr_status take_pair(reader *r, const char *text, bool plain)
{
    const size_t digits = strspn(text, "0123456789");
    const bool range = digits && !strncmp(text + digits, "..", 2);
    const bool quoted = !range && (!*text || text[strcspn(text, " \t;")]);
    if (is_nothing(text, plain)) return fail_at(r, "an empty key or value in a list: remove it");
    if (strchr(text, '"')) return fail_at(r, "a value in a list with a quotation mark");
    if (*r->entry_key) {
        *r->entry_key = 0;
        return append(r, quoted ? "\"" : "", text, quoted ? "\"" : "");
    }
    if (!*text || strpbrk(text, " \t;=:"))
        return fail_at(r, "a key in a list that is not one word");
    snprintf(r->entry_key, sizeof r->entry_key, "%s", text);
    const bool first = !*r->list || r->list[strlen(r->list) - 1] == ' ';
    return append(r, first ? "" : " ", text, "=");
}

static hr_status take_scalar(reader *r, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    const bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (event->data.scalar.anchor) return fail_form(r, "anchors (&name) are not supported");
    if (event->data.scalar.tag) return fail_form(r, "tags (!name) are not supported");
    if (strlen(text) != event->data.scalar.length) return fail_form(r, "a zero byte in a string");
    if (r->depth == 0)
        return *text ? fail_form(r, "a single value where mappings were expected") : HR_OK;
    if (r->in_entry) return take_pair(r, text, plain);
    if (r->list_line) return take_entry(r, text, plain);
    return r->value_next ? take_value(r, text, plain) : take_key(r, text);
}

/* Whether the list of the present key has mappings as entries. */
static bool takes_mappings(const reader *r)
{
    const int32_t row = hr_config_row_find(r->key);
    return row >= 0 && hr_config_rows()[row].takes_mappings;
}

/* Begins a mapping in a list, or in place of a list of one. */
static hr_status open_entry(reader *r)
{
    if (!takes_mappings(r)) return fail_at(r, "a mapping in a list of single values");
    r->whole_entry = !r->list_line;
    if (r->whole_entry) *r->list = 0;
    if (r->whole_entry) r->list_line = r->line;
    r->in_entry = true;
    *r->entry_key = 0;
    return *r->list ? append(r, hr_config_rows()[hr_config_row_find(r->key)].between, "", "")
                    : HR_OK;
}

static hr_status open_mapping(reader *r, const yaml_event_t *event)
{
    if (event->data.mapping_start.anchor) return fail_form(r, "anchors (&name) are not supported");
    if (event->data.mapping_start.tag) return fail_form(r, "tags (!name) are not supported");
    if (r->in_entry) return fail_at(r, "a mapping in a mapping of a list");
    if (r->list_line || (r->value_next && takes_mappings(r))) return open_entry(r);
    if (r->depth > 0) {
        if (!r->value_next) return fail_form(r, "a mapping as a key is not supported");
        const int32_t row = section_row(r->key);
        if (hr_config_row_find(r->key) >= 0) return fail_kind(r, "a mapping");
        if (row < 0) return fail_unknown_section(r);
        if (r->section_line[row]) return fail_repeated(r, r->section_line[row]);
        r->section_line[row] = r->line;
    }
    if (r->depth == DEPTH_MAX) return fail_form(r, "mappings nested more than 8 deep");
    r->length[r->depth++] = (int32_t)strlen(r->key);
    r->value_next = false;
    return HR_OK;
}

static hr_status open_list(reader *r, const yaml_event_t *event)
{
    const int32_t row = r->value_next ? hr_config_row_find(r->key) : -1;
    if (event->data.sequence_start.anchor) return fail_form(r, "anchors (&name) are not supported");
    if (event->data.sequence_start.tag) return fail_form(r, "tags (!name) are not supported");
    if (r->in_entry) return fail_at(r, "a list in a mapping of a list: give one text, with blanks");
    if (r->list_line) return fail_at(r, "a list in a list of single values");
    if (!r->value_next) return fail_form(r, "lists are not supported here");
    if (row < 0 && section_row(r->key) < 0) return fail_unknown_key(r, NULL);
    if (row < 0 || !hr_config_rows()[row].between) return fail_kind(r, "a list");
    r->list_line = r->line;
    *r->list = 0;
    return HR_OK;
}

/* Errors about a whole list have the line where it starts. */
static hr_status close_list(reader *r)
{
    r->line = r->list_line;
    r->list_line = 0;
    return take_value(r, r->list, false);
}

static hr_status close_mapping(reader *r)
{
    if (r->in_entry) {
        const size_t length = strlen(r->list);
        r->in_entry = false;
        if (!length || r->list[length - 1] == ' ')
            return fail_at(r, "an empty mapping in a list: remove it");
        return r->whole_entry ? close_list(r) : HR_OK;
    }
    r->depth--;
    if (r->depth > 0) drop_key(r);
    return HR_OK;
}

/* Whether an event begins after its line: libyaml places an empty value, a mapping and a list at
 * what comes next. */
static bool begins_late(const yaml_event_t *event)
{
    return event->type == YAML_MAPPING_START_EVENT || event->type == YAML_SEQUENCE_START_EVENT ||
           (event->type == YAML_SCALAR_EVENT && !event->data.scalar.length);
}

static hr_status take_event(void *context, const yaml_event_t *event, int64_t line)
{
    reader *r = context;
    r->line = r->value_next && !r->list_line && begins_late(event) ? r->last_key_line : line;
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (++r->documents > 1) return fail_form(r, "a second document (---) is not supported");
        return HR_OK;
    case YAML_ALIAS_EVENT: return fail_form(r, "aliases (*name) are not supported");
    case YAML_SEQUENCE_START_EVENT: return open_list(r, event);
    case YAML_SEQUENCE_END_EVENT: return close_list(r);
    case YAML_SCALAR_EVENT: return take_scalar(r, event);
    case YAML_MAPPING_START_EVENT: return open_mapping(r, event);
    case YAML_MAPPING_END_EVENT: return close_mapping(r);
    default: return HR_OK;
    }
}

/* Copies the parsed config, with a bit for each key that the recipe set. */
static void take_config(const reader *r, hr_config *config)
{
    *config = r->config;
    for (int32_t i = 0; i < hr_config_row_count(); i++)
        if (r->key_line[i]) config->from_recipe[i / 64] |= UINT64_C(1) << i % 64;
}

hr_status hr_config_read_open(hr_config *config, int file, const char *path, hr_error *err)
{
    reader r = { .config = *config, .err = err, .path = path };
    const hr_status status = hr_yaml_read_open(file, path, "recipe", take_event, &r, err);
    if (status == HR_OK) take_config(&r, config);
    return status;
}

hr_status hr_config_read(hr_config *config, const char *path, hr_error *err)
{
    reader r = { .config = *config, .err = err, .path = path };
    const hr_status status = hr_yaml_read(path, "recipe", take_event, &r, err);
    if (status == HR_OK) take_config(&r, config);
    return status;
}

hr_status hr_config_read_text(hr_config *config, const char *text, const char *name, hr_error *err)
{
    reader r = { .config = *config, .err = err, .path = name };
    const hr_status status = hr_yaml_read_text(text, name, "recipe", take_event, &r, err);
    if (status == HR_OK) take_config(&r, config);
    return status;
}
