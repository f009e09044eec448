/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/component.c - reads the members of a component. */
#include "tokenizer/component.h"

#include <string.h>

#include "base/checked.h"

static void copy_text(const hr_json *json, char *out, int64_t room)
{
    const int64_t bytes = hr_min(json->value_bytes, room - 1);
    memcpy(out, json->value, (size_t)bytes);
    out[bytes] = 0;
}

/* {"Regex": "..."} or {"String": "..."}; the opening brace is already read. */
static bool read_pattern(hr_json *json, hr_component *c)
{
    if (hr_json_next(json) != HR_JSON_KEY) return false;
    c->is_string = hr_json_is(json, "String");
    if (!c->is_string && !hr_json_is(json, "Regex")) return false;
    if (hr_json_next(json) != HR_JSON_STRING) return false;
    c->pattern = json->value;
    c->pattern_bytes = json->value_bytes;
    return hr_json_next(json) == HR_JSON_CLOSE;
}

static void read_behavior(const hr_json *json, hr_component *c)
{
    static const char *const names[] = { "Isolated", "Removed", "Contiguous", "MergedWithPrevious",
                                         "MergedWithNext" };
    copy_text(json, c->unknown_behavior, sizeof c->unknown_behavior);
    for (int32_t i = 0; i < 5; i++) {
        if (strcmp(names[i], c->unknown_behavior)) continue;
        c->behavior = (hr_pretokenizer_behavior)i;
        c->has_behavior = true;
    }
}

/* Returns the id of ["</s>", 2] in BertProcessing and RobertaProcessing. */
static int64_t read_pair(hr_json *json)
{
    int64_t id = -1;
    if (hr_json_next(json) != HR_JSON_STRING || hr_json_next(json) != HR_JSON_NUMBER ||
        !hr_json_integer(json, &id) || hr_json_next(json) != HR_JSON_CLOSE)
        return -1;
    return id;
}

/* [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, ...] */
static bool read_single(hr_json *json, hr_component *c)
{
    hr_json_kind kind;
    while ((kind = hr_json_next(json)) == HR_JSON_OBJECT) {
        if (c->item_count == HR_COMPONENT_ITEMS_MAX || hr_json_next(json) != HR_JSON_KEY)
            return false;
        const bool special = hr_json_is(json, "SpecialToken");
        if (!special && !hr_json_is(json, "Sequence")) return false;
        if (hr_json_next(json) != HR_JSON_OBJECT) return false;
        const int32_t item = c->item_count++;
        while ((kind = hr_json_next(json)) == HR_JSON_KEY) {
            const bool is_id = hr_json_is(json, "id");
            kind = hr_json_next(json);
            if (is_id && kind == HR_JSON_STRING) {
                c->items[item] = special ? json->value : NULL;
                c->item_bytes[item] = json->value_bytes;
                if (!special && !hr_json_is(json, "A")) c->item_wrong = true;
            } else if (!hr_json_skip(json, kind)) {
                return false;
            }
        }
        if (kind != HR_JSON_CLOSE || hr_json_next(json) != HR_JSON_CLOSE) return false;
    }
    return kind == HR_JSON_CLOSE;
}

/* {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}, ...} */
static bool read_special(hr_json *json, hr_component *c)
{
    hr_json_kind kind;
    while ((kind = hr_json_next(json)) == HR_JSON_KEY) {
        if (c->name_count == HR_COMPONENT_ITEMS_MAX) return false;
        const int32_t at = c->name_count++;
        c->names[at] = json->value;
        c->name_bytes[at] = json->value_bytes;
        if (hr_json_next(json) != HR_JSON_OBJECT) return false;
        while ((kind = hr_json_next(json)) == HR_JSON_KEY) {
            const bool ids = hr_json_is(json, "ids");
            kind = hr_json_next(json);
            if (!ids || kind != HR_JSON_ARRAY) {
                if (!hr_json_skip(json, kind)) return false;
                continue;
            }
            while ((kind = hr_json_next(json)) == HR_JSON_NUMBER) {
                if (c->id_counts[at] == HR_COMPONENT_IDS_MAX ||
                    !hr_json_integer(json, &c->ids[at][c->id_counts[at]]))
                    return false;
                c->id_counts[at]++;
            }
            if (kind != HR_JSON_CLOSE) return false;
        }
        if (kind != HR_JSON_CLOSE) return false;
    }
    return kind == HR_JSON_CLOSE;
}

static void keep_text(const hr_json *json, const char **text, int64_t *bytes)
{
    *text = json->value;
    *bytes = json->value_bytes;
}

bool hr_component_read_member(hr_json *json, hr_component *c, bool *children)
{
    char key[32];
    copy_text(json, key, sizeof key);
    hr_json_kind kind = hr_json_next(json);
    const bool on = kind == HR_JSON_TRUE;
    if (!strcmp(key, "type") && kind == HR_JSON_STRING)
        copy_text(json, c->type, HR_COMPONENT_TYPE_BYTES);
    else if (!strcmp(key, "pattern") && kind == HR_JSON_OBJECT) return read_pattern(json, c);
    else if (!strcmp(key, "behavior") && kind == HR_JSON_STRING) read_behavior(json, c);
    else if (!strcmp(key, "invert")) c->inverts = on;
    else if (!strcmp(key, "individual_digits")) c->individual = on;
    else if (!strcmp(key, "add_prefix_space")) c->adds_space = on, c->unprefixed = !on;
    else if (!strcmp(key, "content") && kind == HR_JSON_STRING)
        keep_text(json, &c->content, &c->content_bytes);
    else if (!strcmp(key, "prepend") && kind == HR_JSON_STRING)
        keep_text(json, &c->prepend, &c->prepend_bytes);
    else if (!strcmp(key, "replacement") && kind == HR_JSON_STRING)
        keep_text(json, &c->replacement, &c->replacement_bytes);
    else if (!strcmp(key, "precompiled_charsmap") && kind == HR_JSON_STRING)
        keep_text(json, &c->map, &c->map_bytes);
    else if (!strcmp(key, "prepend_scheme") && kind == HR_JSON_STRING)
        copy_text(json, c->scheme, sizeof c->scheme);
    else if (!strcmp(key, "split")) c->whole = kind == HR_JSON_FALSE;
    else if (!strcmp(key, "strip_left")) c->strip_left = on;
    else if (!strcmp(key, "strip_right")) c->strip_right = on;
    else if (!strcmp(key, "start") && kind == HR_JSON_NUMBER)
        return hr_json_integer(json, &c->start);
    else if (!strcmp(key, "stop") && kind == HR_JSON_NUMBER) return hr_json_integer(json, &c->stop);
    else if (!strcmp(key, "use_regex")) c->uses_regex = on;
    else if (!strcmp(key, "single") && kind == HR_JSON_ARRAY) return read_single(json, c);
    else if (!strcmp(key, "special_tokens") && kind == HR_JSON_OBJECT) return read_special(json, c);
    else if (!strcmp(key, "sep") && kind == HR_JSON_ARRAY) return (c->sep = read_pair(json)) >= 0;
    else if (!strcmp(key, "cls") && kind == HR_JSON_ARRAY) return (c->cls = read_pair(json)) >= 0;
    else if (kind == HR_JSON_ARRAY &&
             (!strcmp(key, "pretokenizers") || !strcmp(key, "normalizers") ||
              !strcmp(key, "decoders") || !strcmp(key, "processors")))
        c->has_children = *children = true;
    else return hr_json_skip(json, kind);
    return true;
}
