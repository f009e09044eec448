/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/read_parts.c - normalizer, pre-tokenizer, post-processor, decoder.
 *
 * All are components: objects with a type, or a Sequence of such. They are read from the inside
 * out, each told when it closes, which is also the order in which a sequence works. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "tokenizer/reading.h"

enum { NESTED_MAX = 8, TYPE_BYTES = 48, ITEMS_MAX = HR_TOKENIZER_AROUND_MAX, IDS_MAX = 4 };

typedef struct {
    char type[TYPE_BYTES];
    const char *pattern;
    int64_t pattern_bytes;
    bool is_string, has_behavior, inverts, individual, adds_space, uses_regex, has_children;
    hr_cut_behaviour behaviour;
    char unknown_behaviour[32];
    const char *items[ITEMS_MAX]; /* of a template: names of special tokens, null for the text */
    int64_t item_bytes[ITEMS_MAX];
    int32_t item_count;
    bool item_wrong;
    const char *names[ITEMS_MAX]; /* of its special tokens, and their ids */
    int64_t name_bytes[ITEMS_MAX], ids[ITEMS_MAX][IDS_MAX];
    int32_t id_counts[ITEMS_MAX], name_count;
    int64_t sep, cls; /* of Roberta's and Bert's; -1 */
} component;

typedef struct {
    hr_tokenizer *tokenizer;
    const hr_tokenizer_source *source;
    hr_cut_desc *desc;
    const char *part; /* "normalizer", ... */
    bool bytes_seen;
    char *text; /* the part's own */
} parts;

typedef hr_status closes(parts *p, const component *c, hr_error *err);

static hr_status refuse(const parts *p, const char *what, const char *type, hr_error *err)
{
    return hr_fail(err, HR_CORRUPT, HR_OF_FILE "%s of type %s%s is not supported", p->source->path,
                   p->part, type, what);
}

static void copy_text(const hr_json *json, char *out, int64_t room)
{
    const int64_t bytes = hr_min(json->value_bytes, room - 1);
    memcpy(out, json->value, (size_t)bytes);
    out[bytes] = 0;
}

static hr_status wrong(const parts *p, const hr_json *json, hr_error *err)
{
    return hr_fail(err, HR_CORRUPT, HR_OF_FILE "its %s is not as a tokenizer has it (%s)",
                   p->source->path, p->part,
                   json->problem ? json->problem : "another kind of value");
}

/* {"Regex": "..."} or {"String": "..."}, its bracket read. */
static bool read_pattern(hr_json *json, component *c)
{
    if (hr_json_next(json) != HR_JSON_KEY) return false;
    c->is_string = hr_json_is(json, "String");
    if (!c->is_string && !hr_json_is(json, "Regex")) return false;
    if (hr_json_next(json) != HR_JSON_STRING) return false;
    c->pattern = json->value;
    c->pattern_bytes = json->value_bytes;
    return hr_json_next(json) == HR_JSON_CLOSE;
}

static void read_behaviour(const hr_json *json, component *c)
{
    static const char *const names[] = { "Isolated", "Removed", "Contiguous", "MergedWithPrevious",
                                         "MergedWithNext" };
    copy_text(json, c->unknown_behaviour, sizeof c->unknown_behaviour);
    for (int32_t i = 0; i < 5; i++) {
        if (strcmp(names[i], c->unknown_behaviour)) continue;
        c->behaviour = (hr_cut_behaviour)i;
        c->has_behavior = true;
    }
}

/* ["</s>", 2] of Bert's and Roberta's: the id. */
static int64_t read_pair(hr_json *json)
{
    int64_t id = -1;
    if (hr_json_next(json) != HR_JSON_STRING || hr_json_next(json) != HR_JSON_NUMBER ||
        !hr_json_integer(json, &id) || hr_json_next(json) != HR_JSON_CLOSE)
        return -1;
    return id;
}

/* [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, ...] */
static bool read_single(hr_json *json, component *c)
{
    hr_json_kind kind;
    while ((kind = hr_json_next(json)) == HR_JSON_OBJECT) {
        if (c->item_count == ITEMS_MAX || hr_json_next(json) != HR_JSON_KEY) return false;
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
static bool read_special(hr_json *json, component *c)
{
    hr_json_kind kind;
    while ((kind = hr_json_next(json)) == HR_JSON_KEY) {
        if (c->name_count == ITEMS_MAX) return false;
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
                if (c->id_counts[at] == IDS_MAX ||
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

static bool read_member(hr_json *json, component *c, bool *children)
{
    char key[32];
    copy_text(json, key, sizeof key);
    hr_json_kind kind = hr_json_next(json);
    const bool on = kind == HR_JSON_TRUE;
    if (!strcmp(key, "type") && kind == HR_JSON_STRING) copy_text(json, c->type, TYPE_BYTES);
    else if (!strcmp(key, "pattern") && kind == HR_JSON_OBJECT) return read_pattern(json, c);
    else if (!strcmp(key, "behavior") && kind == HR_JSON_STRING) read_behaviour(json, c);
    else if (!strcmp(key, "invert")) c->inverts = on;
    else if (!strcmp(key, "individual_digits")) c->individual = on;
    else if (!strcmp(key, "add_prefix_space")) c->adds_space = on;
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

/* Reads a part; tells `close` each component but sequences. */
static hr_status read_part(parts *p, const char *name, closes *close, hr_error *err)
{
    const hr_outline_member *member = hr_outline_top(&p->source->outline, name);
    p->part = name;
    if (!member) return HR_OK;
    hr_json json = hr_json_over(p->text + member->at, member->bytes);
    component open[NESTED_MAX];
    int32_t depth = 0; /* components open; an array of children is open below the last */
    hr_json_kind kind = hr_json_next(&json);
    if (kind == HR_JSON_NULL) return HR_OK;
    for (;; kind = hr_json_next(&json)) {
        if (kind == HR_JSON_OBJECT && depth < NESTED_MAX) {
            open[depth++] = (component){ .uses_regex = true, .sep = -1, .cls = -1 };
        } else if (kind == HR_JSON_KEY && depth) {
            bool children = false;
            if (!read_member(&json, &open[depth - 1], &children)) return wrong(p, &json, err);
        } else if (kind == HR_JSON_CLOSE && depth) {
            if (json.depth && json.open[json.depth - 1] == '{' && open[depth - 1].has_children &&
                json.depth == 2 * depth - 1)
                continue; /* the array of children */
            const component *c = &open[--depth];
            const bool sequence = !strcmp(c->type, "Sequence");
            if (sequence != c->has_children) return wrong(p, &json, err);
            if (!sequence) {
                const hr_status status = close(p, c, err);
                if (status != HR_OK) return status;
            }
        } else if (kind == HR_JSON_END && !depth) {
            return HR_OK;
        } else {
            return wrong(p, &json, err);
        }
    }
}

/* ---- the four */

static hr_status close_normalizer(parts *p, const component *c, hr_error *err)
{
    if (strcmp(c->type, "NFC")) return refuse(p, " (only NFC is)", c->type, err);
    p->tokenizer->nfc = true;
    return HR_OK;
}

static hr_status add_stage(parts *p, hr_cut_stage stage, hr_error *err)
{
    if (p->desc->stage_count == HR_CUT_STAGES_MAX)
        return hr_fail(err, HR_CORRUPT, HR_OF_FILE "its pre_tokenizer has more than %d stages",
                       p->source->path, HR_CUT_STAGES_MAX);
    p->desc->stages[p->desc->stage_count++] = stage;
    return HR_OK;
}

static hr_status close_pre_tokenizer(parts *p, const component *c, hr_error *err)
{
    if (p->bytes_seen) return refuse(p, " behind ByteLevel", c->type, err);
    if (!strcmp(c->type, "ByteLevel")) {
        if (c->adds_space && p->desc->stage_count)
            return refuse(p, " with add_prefix_space behind another", c->type, err);
        p->tokenizer->prefix_space = c->adds_space;
        p->bytes_seen = true;
        if (!c->uses_regex) return HR_OK;
        return add_stage(p,
                         (hr_cut_stage){ .kind = HR_CUT_SPLIT,
                                         .pattern = hr_pattern_gpt2,
                                         .pattern_bytes = (int64_t)strlen(hr_pattern_gpt2) },
                         err);
    }
    if (!strcmp(c->type, "Digits"))
        return add_stage(
            p,
            (hr_cut_stage){ .kind = HR_CUT_DIGITS,
                            .behaviour = c->individual ? HR_CUT_ISOLATED : HR_CUT_CONTIGUOUS },
            err);
    if (strcmp(c->type, "Split")) return refuse(p, "", c->type, err);
    if (!c->has_behavior)
        return hr_fail(err, HR_CORRUPT,
                       HR_OF_FILE "pre_tokenizer Split: the behavior \"%s\" is unknown",
                       p->source->path, c->unknown_behaviour);
    if (!c->pattern)
        return hr_fail(err, HR_CORRUPT, HR_OF_FILE "pre_tokenizer Split: it has no pattern",
                       p->source->path);
    return add_stage(p,
                     (hr_cut_stage){ .kind = c->is_string ? HR_CUT_STRING : HR_CUT_SPLIT,
                                     .behaviour = c->behaviour,
                                     .invert = c->inverts,
                                     .pattern = c->pattern,
                                     .pattern_bytes = c->pattern_bytes },
                     err);
}

static hr_status around(parts *p, bool in_front, uint32_t id, hr_error *err)
{
    hr_tokenizer *tokenizer = p->tokenizer;
    int32_t *count = in_front ? &tokenizer->first_count : &tokenizer->last_count;
    if (*count == HR_TOKENIZER_AROUND_MAX || id >= (uint64_t)p->source->size.ids)
        return hr_fail(err, HR_CORRUPT,
                       HR_OF_FILE "its post_processor puts too much around a text, or an id that "
                                  "no token has",
                       p->source->path);
    (in_front ? tokenizer->first : tokenizer->last)[(*count)++] = id;
    return HR_OK;
}

/* Which of the special tokens of a template an item names; -1: none. */
static int32_t named(const component *c, int32_t item)
{
    for (int32_t i = 0; i < c->name_count; i++)
        if (c->name_bytes[i] == c->item_bytes[item] &&
            !memcmp(c->names[i], c->items[item], (size_t)c->item_bytes[item]))
            return i;
    return -1;
}

static hr_status close_post_processor(parts *p, const component *c, hr_error *err)
{
    if (!strcmp(c->type, "ByteLevel")) return HR_OK; /* moves offsets only */
    if (p->tokenizer->first_count || p->tokenizer->last_count)
        return refuse(p, " behind another that adds tokens", c->type, err);
    if (!strcmp(c->type, "RobertaProcessing") || !strcmp(c->type, "BertProcessing")) {
        if (c->sep < 0 || c->cls < 0) return refuse(p, " without sep and cls", c->type, err);
        const hr_status status = around(p, true, (uint32_t)c->cls, err);
        return status == HR_OK ? around(p, false, (uint32_t)c->sep, err) : status;
    }
    if (strcmp(c->type, "TemplateProcessing")) return refuse(p, "", c->type, err);
    int32_t texts = 0;
    for (int32_t i = 0; i < c->item_count; i++) {
        if (!c->items[i]) {
            texts++;
            continue;
        }
        const int32_t at = named(c, i);
        if (at < 0)
            return hr_fail(err, HR_CORRUPT,
                           HR_OF_FILE "its post_processor names the token \"%.*s\", which is none",
                           p->source->path, (int)hr_min(c->item_bytes[i], 80), c->items[i]);
        for (int32_t k = 0; k < c->id_counts[at]; k++) {
            const uint32_t id = (uint32_t)hr_max(0, hr_min(c->ids[at][k], UINT32_MAX));
            const hr_status status = around(p, texts == 0, id, err);
            if (status != HR_OK) return status;
        }
    }
    if (texts != 1 || c->item_wrong)
        return refuse(p, " whose single is not one text", c->type, err);
    return HR_OK;
}

static hr_status close_decoder(parts *p, const component *c, hr_error *err)
{
    if (!strcmp(c->type, "ByteLevel")) p->tokenizer->joins = false;
    else if (strcmp(c->type, "Fuse") || p->tokenizer->joins)
        return refuse(p, " (ByteLevel is, and Fuse behind it)", c->type, err);
    return HR_OK;
}

static hr_status check_absent(parts *p, const char *key, hr_error *err)
{
    const hr_outline_member *member = hr_outline_top(&p->source->outline, key);
    if (!member) return HR_OK;
    hr_json json = hr_json_over(p->text + member->at, member->bytes);
    if (hr_json_next(&json) == HR_JSON_NULL) return HR_OK;
    return hr_fail(err, HR_CORRUPT,
                   HR_OF_FILE
                   "its %s is set, which is not supported: encodings would be cut or filled",
                   p->source->path, key);
}

hr_status hr_read_normalizer(hr_tokenizer *tokenizer, const hr_tokenizer_source *source, char *text,
                             hr_error *err)
{
    parts p = { .tokenizer = tokenizer, .source = source, .text = text };
    if (source->form != HR_TOKENIZER_JSON) return HR_OK;
    return read_part(&p, "normalizer", close_normalizer, err);
}

hr_status hr_read_parts(hr_tokenizer *tokenizer, const hr_tokenizer_source *source, char *text,
                        hr_cut_desc *desc, hr_error *err)
{
    parts p = { .tokenizer = tokenizer, .source = source, .desc = desc, .text = text };
    if (source->form != HR_TOKENIZER_JSON) {
        const char *pattern = source->pattern ? source->pattern : hr_pattern_gpt2;
        desc->stages[0] = (hr_cut_stage){ .kind = HR_CUT_SPLIT,
                                          .pattern = pattern,
                                          .pattern_bytes = (int64_t)strlen(pattern) };
        desc->stage_count = 1;
        return HR_OK;
    }
    hr_status status = check_absent(&p, "truncation", err);
    if (status == HR_OK) status = check_absent(&p, "padding", err);
    if (status == HR_OK) status = read_part(&p, "pre_tokenizer", close_pre_tokenizer, err);
    if (status == HR_OK && !p.bytes_seen)
        status = hr_fail(err, HR_CORRUPT,
                         HR_OF_FILE "no ByteLevel in its pre_tokenizer: only byte-level BPE is "
                                    "supported",
                         source->path);
    if (status == HR_OK) status = read_part(&p, "post_processor", close_post_processor, err);
    tokenizer->joins = true;
    if (status == HR_OK) status = read_part(&p, "decoder", close_decoder, err);
    return status;
}
