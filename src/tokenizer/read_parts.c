/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/read_parts.c - reads normalizer, pre-tokenizer, post-processor and decoder.
 *
 * Each is a tree of components: objects with a type, or a Sequence of objects. A component is
 * processed when its object closes, so the components of a sequence are processed in their
 * order. */
#include <string.h>

#include "base/checked.h"
#include "tokenizer/component.h"
#include "tokenizer/reading.h"
#include "tokenizer/unicode.h"

enum { NESTED_MAX = 8 };

typedef struct {
    hr_tokenizer *tokenizer;
    const hr_tokenizer_source *source;
    hr_pretokenizer_desc *desc;
    hr_region *tables;
    const char *part; /* "normalizer", ... */
    bool bytes_seen;
    bool fused; /* decoder: from here on the text of all tokens is joined */
    int32_t decoders;
    char *text; /* contents of the file */
} parts;

typedef hr_status closes(parts *p, const hr_component *c, hr_error *err);

static hr_status refuse(const parts *p, const char *what, const char *type, hr_error *err)
{
    return hr_fail(err, HR_CORRUPT, HR_OF_FILE "%s of type %s%s is not supported", p->source->path,
                   p->part, type, what);
}

static hr_status wrong(const parts *p, const hr_json *json, hr_error *err)
{
    return hr_fail(err, HR_CORRUPT, HR_OF_FILE "%s is invalid (%s)", p->source->path, p->part,
                   json->problem ? json->problem : "unexpected type of value");
}

/* Reads a part and calls `close` for each component except Sequence. */
static hr_status read_part(parts *p, const char *name, closes *close, hr_error *err)
{
    const hr_json_index_member *member = hr_json_index_top(&p->source->outline, name);
    p->part = name;
    if (!member) return HR_OK;
    hr_json json = hr_json_over(p->text + member->at, member->bytes);
    hr_component open[NESTED_MAX];
    int32_t depth = 0; /* open components; an array of children may be open in the last */
    hr_json_kind kind = hr_json_next(&json);
    if (kind == HR_JSON_NULL) return HR_OK;
    for (;; kind = hr_json_next(&json)) {
        if (kind == HR_JSON_OBJECT && depth < NESTED_MAX) {
            open[depth++] = (hr_component){ .uses_regex = true, .sep = -1, .cls = -1 };
        } else if (kind == HR_JSON_KEY && depth) {
            bool children = false;
            if (!hr_component_read_member(&json, &open[depth - 1], &children))
                return wrong(p, &json, err);
        } else if (kind == HR_JSON_CLOSE && depth) {
            if (json.depth && json.open[json.depth - 1] == '{' && open[depth - 1].has_children &&
                json.depth == 2 * depth - 1)
                continue; /* end of the array of children */
            const hr_component *c = &open[--depth];
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

/* ---- the four parts */

/* Decodes a text to characters. Returns -1 if it is too long or missing. */
static int32_t points_of(const char *text, int64_t bytes, uint32_t *points)
{
    int32_t count = 0;
    if (!text) return -1;
    for (int64_t at = 0; at < bytes;) {
        if (count == HR_NORMALIZER_TEXT_MAX) return -1;
        at += hr_utf8_take((const uint8_t *)text + at, bytes - at, &points[count++]);
    }
    return count;
}

static bool is_text(const char *text, int64_t bytes, const char *other)
{
    return text && bytes == (int64_t)strlen(other) && !memcmp(text, other, (size_t)bytes);
}

static hr_status close_replace(parts *p, const hr_component *c, hr_normalize_op *op, hr_error *err)
{
    op->kind = HR_NORMALIZE_REPLACE;
    op->content_count = points_of(c->content, c->content_bytes, op->content);
    if (!c->is_string) {
        op->kind = HR_NORMALIZE_SPACES;
        if (op->content_count >= 0 && is_text(c->pattern, c->pattern_bytes, " {2,}")) return HR_OK;
        return refuse(p, " with a regular expression other than \" {2,}\"", c->type, err);
    }
    op->pattern_count = points_of(c->pattern, c->pattern_bytes, op->pattern);
    if (op->pattern_count > 0 && op->content_count >= 0) return HR_OK;
    return refuse(p, " with an empty text or more than 64 characters", c->type, err);
}

static hr_status close_precompiled(parts *p, const hr_component *c, hr_normalize_op *op,
                                   hr_error *err)
{
    hr_charsmap *map = &p->tokenizer->charsmap;
    char *text = p->text + (c->map ? c->map - p->text : 0);
    op->kind = HR_NORMALIZE_CHARSMAP;
    op->map = map;
    if (!c->map || map->count) return refuse(p, " without a map or more than once", c->type, err);
    const int64_t bytes = hr_read_base64(text, c->map_bytes);
    const char *why = bytes < 0 ? "it is not base64"
                                : hr_charsmap_place(map, p->tables, (uint8_t *)text, bytes);
    if (!why) return HR_OK;
    return hr_fail(err, HR_CORRUPT, HR_OF_FILE "precompiled_charsmap of the normalizer: %s",
                   p->source->path, why);
}

static hr_status close_normalizer(parts *p, const hr_component *c, hr_error *err)
{
    hr_normalizer *normalizer = &p->tokenizer->normalizer;
    hr_normalize_op *op = &normalizer->ops[normalizer->count];
    if (normalizer->count + 2 > HR_NORMALIZER_OPS_MAX)
        return refuse(p, " after ten others", c->type, err);
    normalizer->count++;
    *op = (hr_normalize_op){ .kind = HR_NORMALIZE_NFC };
    if (!strcmp(c->type, "NFC")) return HR_OK;
    if (!strcmp(c->type, "NFKC")) {
        op->kind = HR_NORMALIZE_COMPATIBLE;
        normalizer->ops[normalizer->count++] = (hr_normalize_op){ .kind = HR_NORMALIZE_NFC };
        return HR_OK;
    }
    if (!strcmp(c->type, "Prepend")) {
        op->kind = HR_NORMALIZE_PREPEND;
        op->content_count = points_of(c->prepend, c->prepend_bytes, op->content);
        return op->content_count >= 0
                   ? HR_OK
                   : refuse(p, " with an empty text or more than 64 characters", c->type, err);
    }
    if (!strcmp(c->type, "Strip")) {
        op->kind = HR_NORMALIZE_STRIP;
        if (++normalizer->strips > HR_NORMALIZER_STRIPS_MAX)
            return refuse(p, " after two others", c->type, err);
        op->left = c->strip_left;
        op->right = c->strip_right;
        return HR_OK;
    }
    if (!strcmp(c->type, "Replace")) return close_replace(p, c, op, err);
    if (!strcmp(c->type, "Precompiled")) return close_precompiled(p, c, op, err);
    return refuse(p, "", c->type, err);
}

static hr_status add_stage(parts *p, hr_pretokenizer_stage stage, hr_error *err)
{
    if (p->desc->stage_count == HR_PRETOKENIZER_STAGES_MAX)
        return hr_fail(err, HR_CORRUPT, HR_OF_FILE "pre_tokenizer has more than %d stages",
                       p->source->path, HR_PRETOKENIZER_STAGES_MAX);
    p->desc->stages[p->desc->stage_count++] = stage;
    return HR_OK;
}

/* {"replacement": "\u2581", "prepend_scheme": ..., "split": ...}. Older files have add_prefix_space
 * instead of prepend_scheme. */
static hr_status close_metaspace(parts *p, const hr_component *c, hr_error *err)
{
    static const char *const schemes[] = { "never", "first", "always" };
    hr_tokenizer *t = p->tokenizer;
    int32_t scheme = c->scheme[0] ? -1 : c->unprefixed ? HR_METASPACE_NEVER : HR_METASPACE_ALWAYS;
    for (int32_t i = 0; i < 3 && c->scheme[0]; i++)
        if (!strcmp(c->scheme, schemes[i])) scheme = i;
    if (scheme < 0) return refuse(p, " with an unknown prepend_scheme", c->type, err);
    if (c->unprefixed && scheme != HR_METASPACE_NEVER)
        return refuse(p, " with contradictory add_prefix_space and prepend_scheme", c->type, err);
    if (!is_text(c->replacement, c->replacement_bytes, "\xe2\x96\x81"))
        return refuse(p, " with a replacement other than U+2581", c->type, err);
    t->metaspace = true;
    t->splits = !c->whole;
    t->scheme = (hr_metaspace_scheme)scheme;
    return HR_OK;
}

static hr_status close_pre_tokenizer(parts *p, const hr_component *c, hr_error *err)
{
    if (p->bytes_seen) return refuse(p, " after ByteLevel", c->type, err);
    if (p->tokenizer->metaspace) return refuse(p, " after Metaspace", c->type, err);
    if (!strcmp(c->type, "Metaspace")) return close_metaspace(p, c, err);
    if (!strcmp(c->type, "WhitespaceSplit"))
        return add_stage(p,
                         (hr_pretokenizer_stage){ .kind = HR_PRETOKENIZER_SPACES,
                                                  .behavior = HR_PRETOKENIZER_REMOVED },
                         err);
    if (!strcmp(c->type, "ByteLevel")) {
        if (c->adds_space && p->desc->stage_count)
            return refuse(p, " with add_prefix_space after another", c->type, err);
        p->tokenizer->prefix_space = c->adds_space;
        p->bytes_seen = true;
        if (!c->uses_regex) return HR_OK;
        return add_stage(
            p,
            (hr_pretokenizer_stage){ .kind = HR_PRETOKENIZER_SPLIT,
                                     .pattern = hr_pattern_gpt2,
                                     .pattern_bytes = (int64_t)strlen(hr_pattern_gpt2) },
            err);
    }
    if (!strcmp(c->type, "Digits"))
        return add_stage(p,
                         (hr_pretokenizer_stage){ .kind = HR_PRETOKENIZER_DIGITS,
                                                  .behavior = c->individual
                                                                  ? HR_PRETOKENIZER_ISOLATED
                                                                  : HR_PRETOKENIZER_CONTIGUOUS },
                         err);
    if (strcmp(c->type, "Split")) return refuse(p, "", c->type, err);
    if (!c->has_behavior)
        return hr_fail(err, HR_CORRUPT, HR_OF_FILE "pre_tokenizer Split: unknown behavior \"%s\"",
                       p->source->path, c->unknown_behavior);
    if (!c->pattern)
        return hr_fail(err, HR_CORRUPT, HR_OF_FILE "pre_tokenizer Split has no pattern",
                       p->source->path);
    return add_stage(p,
                     (hr_pretokenizer_stage){ .kind = c->is_string ? HR_PRETOKENIZER_STRING
                                                                   : HR_PRETOKENIZER_SPLIT,
                                              .behavior = c->behavior,
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
        return hr_fail(
            err, HR_CORRUPT,
            HR_OF_FILE
            "post_processor adds more than %d ids to one end of a text, or an id without a token",
            p->source->path, HR_TOKENIZER_AROUND_MAX);
    (in_front ? tokenizer->first : tokenizer->last)[(*count)++] = id;
    return HR_OK;
}

/* Index of the special token that a template item names; -1: none. */
static int32_t named(const hr_component *c, int32_t item)
{
    for (int32_t i = 0; i < c->name_count; i++)
        if (c->name_bytes[i] == c->item_bytes[item] &&
            !memcmp(c->names[i], c->items[item], (size_t)c->item_bytes[item]))
            return i;
    return -1;
}

/* Ids outside the range become ones that no vocabulary has. */
static uint32_t id_of(int64_t id)
{
    return id < 0 || id > UINT32_MAX ? UINT32_MAX : (uint32_t)id;
}

static hr_status close_post_processor(parts *p, const hr_component *c, hr_error *err)
{
    if (!strcmp(c->type, "ByteLevel")) return HR_OK; /* changes offsets only */
    if (p->tokenizer->first_count || p->tokenizer->last_count)
        return refuse(p, " after another that adds tokens", c->type, err);
    if (!strcmp(c->type, "RobertaProcessing") || !strcmp(c->type, "BertProcessing")) {
        if (c->sep < 0 || c->cls < 0) return refuse(p, " without sep and cls", c->type, err);
        const hr_status status = around(p, true, id_of(c->cls), err);
        return status == HR_OK ? around(p, false, id_of(c->sep), err) : status;
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
                           HR_OF_FILE
                           "post_processor uses \"%.*s\", which is not one of its special_tokens",
                           p->source->path, (int)hr_min(c->item_bytes[i], 80), c->items[i]);
        for (int32_t k = 0; k < c->id_counts[at]; k++) {
            const hr_status status = around(p, texts == 0, id_of(c->ids[at][k]), err);
            if (status != HR_OK) return status;
        }
    }
    if (texts != 1 || c->item_wrong)
        return refuse(p, " whose single template does not contain exactly one text", c->type, err);
    return HR_OK;
}

/* Accepts the sequences that files contain: Replace, ByteFallback, Fuse, Strip; or ByteFallback,
 * Metaspace. */
static hr_status close_decoder(parts *p, const hr_component *c, hr_error *err)
{
    hr_decoding *d = &p->tokenizer->decoding;
    const bool first = p->decoders++ == 0;
    const bool bytes = d->kind == HR_DECODING_BYTES && !first;
    if (!strcmp(c->type, "ByteLevel") && first) {
        d->kind = HR_DECODING_BYTES;
        return HR_OK;
    }
    if (bytes && !strcmp(c->type, "Fuse")) return HR_OK;
    if (bytes) return refuse(p, " after ByteLevel", c->type, err);
    d->kind = HR_DECODING_PIECES;
    if (!strcmp(c->type, "Replace")) {
        if (!first || !c->is_string || !is_text(c->pattern, c->pattern_bytes, "\xe2\x96\x81") ||
            !is_text(c->content, c->content_bytes, " "))
            return refuse(p, " that is not first or does not replace U+2581 with a space", c->type,
                          err);
        d->spaces = true;
    } else if (!strcmp(c->type, "ByteFallback")) {
        if (d->falls_back || d->drops || p->fused || d->strips)
            return refuse(p, " at this position", c->type, err);
        d->falls_back = true;
    } else if (!strcmp(c->type, "Fuse")) {
        p->fused = true;
    } else if (!strcmp(c->type, "Strip")) {
        if (!p->fused || c->stop || c->start < 0 || c->start > 64 ||
            !is_text(c->content, c->content_bytes, " "))
            return refuse(p, " of anything but spaces at the start of the text", c->type, err);
        d->strips = (int32_t)c->start;
    } else if (!strcmp(c->type, "Metaspace")) {
        if (p->fused || d->spaces || !is_text(c->replacement, c->replacement_bytes, "\xe2\x96\x81"))
            return refuse(p, " at this position or with a replacement other than U+2581", c->type,
                          err);
        d->spaces = true;
        d->drops = c->scheme[0] ? strcmp(c->scheme, "never") != 0 : !c->unprefixed;
    } else {
        return refuse(p, "", c->type, err);
    }
    return HR_OK;
}

static hr_status check_absent(parts *p, const char *key, hr_error *err)
{
    const hr_json_index_member *member = hr_json_index_top(&p->source->outline, key);
    if (!member) return HR_OK;
    hr_json json = hr_json_over(p->text + member->at, member->bytes);
    if (hr_json_next(&json) == HR_JSON_NULL) return HR_OK;
    return hr_fail(err, HR_CORRUPT,
                   HR_OF_FILE "%s is set, which is not supported: it truncates or pads encodings",
                   p->source->path, key);
}

hr_status hr_read_normalizer(hr_tokenizer *tokenizer, const hr_tokenizer_source *source, char *text,
                             hr_region *tables, hr_error *err)
{
    parts p = { .tokenizer = tokenizer, .source = source, .text = text, .tables = tables };
    if (source->form != HR_TOKENIZER_JSON) return HR_OK;
    return read_part(&p, "normalizer", close_normalizer, err);
}

/* ByteLevel means byte-level BPE. Other tokenizers are supported only if they replace spaces with
 * U+2581. */
static hr_status decide_kind(parts *p, hr_error *err)
{
    static const char *const names[] = { "Prepend",     "Replace", "Replace", "Strip",
                                         "Precompiled", "NFKC",    "NFC" };
    hr_tokenizer *t = p->tokenizer;
    hr_normalizer *n = &t->normalizer;
    if (p->bytes_seen) {
        for (int32_t i = 0; i < n->count; i++)
            if (n->ops[i].kind != HR_NORMALIZE_NFC)
                return hr_fail(err, HR_CORRUPT,
                               HR_OF_FILE "normalizer of type %s is not supported with ByteLevel "
                                          "(only NFC is)",
                               p->source->path, names[n->ops[i].kind]);
        t->nfc = n->count > 0;
        n->count = 0;
        return HR_OK;
    }
    hr_normalizer_finish(n);
    for (int32_t i = 0; i + 1 < n->count; i++)
        if (hr_normalizer_replaces_spaces(&n->ops[i]))
            return hr_fail(
                err, HR_CORRUPT,
                HR_OF_FILE
                "a normalizer after one that replaces spaces with U+2581 is not supported",
                p->source->path);
    if (!n->spaces_back && !t->metaspace)
        return hr_fail(err, HR_CORRUPT,
                       HR_OF_FILE "pre_tokenizer has neither ByteLevel nor Metaspace and no "
                                  "normalizer replaces spaces with U+2581, which is not supported",
                       p->source->path);
    /* The reference applies scheme `first` to the split at offset 0. These operations change
     * offsets. */
    bool shifts = n->count && p->desc->stage_count;
    for (int32_t i = 0; i < n->count; i++)
        shifts |= (n->ops[i].kind == HR_NORMALIZE_STRIP && n->ops[i].left) ||
                  (n->ops[i].kind == HR_NORMALIZE_REPLACE && !n->ops[i].content_count);
    if (t->metaspace && t->scheme == HR_METASPACE_FIRST && shifts)
        return hr_fail(err, HR_CORRUPT,
                       HR_OF_FILE
                       "Metaspace with prepend_scheme first is not supported after a normalizer "
                       "that removes text, or after a normalizer and another pre_tokenizer",
                       p->source->path);
    t->kind = p->source->outline.listed ? HR_UNIGRAM : HR_CHARACTER_BPE;
    t->spaced = true;
    /* Splits at spaces have no effect, because no spaces are left. Gemma's files have such a
     * stage. */
    if (n->spaces_back && p->desc->stage_count == 1 &&
        p->desc->stages[0].kind == HR_PRETOKENIZER_STRING && !p->desc->stages[0].invert &&
        p->desc->stages[0].pattern_bytes == 1 && p->desc->stages[0].pattern[0] == ' ')
        p->desc->stage_count = 0;
    if (n->spaces_back && p->desc->stage_count)
        return hr_fail(
            err, HR_CORRUPT,
            HR_OF_FILE
            "a pre_tokenizer after a normalizer that replaces spaces with U+2581 is not supported",
            p->source->path);
    return HR_OK;
}

hr_status hr_read_parts(hr_tokenizer *tokenizer, const hr_tokenizer_source *source, char *text,
                        hr_pretokenizer_desc *desc, hr_error *err)
{
    parts p = { .tokenizer = tokenizer, .source = source, .desc = desc, .text = text };
    if (source->form == HR_TOKENIZER_MODEL) return HR_OK;
    if (source->form != HR_TOKENIZER_JSON) {
        const char *pattern = source->pattern ? source->pattern : hr_pattern_gpt2;
        desc->stages[0] = (hr_pretokenizer_stage){ .kind = HR_PRETOKENIZER_SPLIT,
                                                   .pattern = pattern,
                                                   .pattern_bytes = (int64_t)strlen(pattern) };
        desc->stage_count = 1;
        return HR_OK;
    }
    hr_status status = check_absent(&p, "truncation", err);
    if (status == HR_OK) status = check_absent(&p, "padding", err);
    if (status == HR_OK) status = read_part(&p, "pre_tokenizer", close_pre_tokenizer, err);
    if (status == HR_OK) status = decide_kind(&p, err);
    if (status == HR_OK) status = read_part(&p, "post_processor", close_post_processor, err);
    tokenizer->decoding.kind = HR_DECODING_JOINED;
    if (status == HR_OK) status = read_part(&p, "decoder", close_decoder, err);
    return status;
}
