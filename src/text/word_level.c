/* SPDX-License-Identifier: Apache-2.0 */
/* text/word_level.c - reads a file: it is accepted only if all but its vocabulary is equal to the
 * template as JSON. */
#include "text/word_level.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/json.h"
#include "text/scan.h"
#include "text/text.h"
#include "text/word_level_file.h"
#include "text/word_table.h"

struct hr_word_level {
    hr_word_table table; /* the index of a word is its id; each text begins with a space */
    int64_t unknown;     /* id of <unk> */
    hr_scan scan;
    hr_piece piece; /* input of the scanner */
};

const char *const hr_word_level_specials[HR_WORDS_SPECIAL] = { [HR_WORD_PAD] = "<PAD>",
                                                               [HR_WORD_UNKNOWN] = "<UNK>",
                                                               [HR_WORD_START] = "<SOS>",
                                                               [HR_WORD_END] = "<EOS>" };

/* ---- memory */

hr_status hr_word_level_check(const hr_word_level_source *source, hr_error *err)
{
    if (source->words < 1)
        return hr_fail(err, HR_CORRUPT, "%s: is a WordLevel tokenizer without a vocabulary",
                       source->path);
    if (source->words <= HR_WORDS_MAX && source->file_bytes <= INT32_MAX) return HR_OK;
    return hr_fail(err, HR_CORRUPT,
                   "%s: has %lld words in %lld bytes; the limits are %d words and %d bytes",
                   source->path, (long long)source->words, (long long)source->file_bytes,
                   HR_WORDS_MAX, INT32_MAX);
}

static int64_t text_bytes(const hr_word_level_source *source)
{
    return source->file_bytes +
           source->words; /* decoded texts are not longer; a space before each */
}

int64_t hr_word_level_kept_bytes(const hr_word_level_source *source)
{
    return hr_round_up(sizeof(hr_word_level), 64) +
           hr_words_bytes_for(source->words, text_bytes(source)) + HR_WORD_BYTES;
}

int64_t hr_word_level_bytes(const hr_word_level_source *source)
{
    return hr_word_level_kept_bytes(source) + hr_round_up(source->file_bytes + 1, 64);
}

/* ---- reading */

typedef struct {
    hr_json json;
    hr_word_level *level;
    const hr_word_level_source *source;
    char unknown[64];
    bool has_model;
    hr_error *err;
} reading;

static hr_status no_json(const reading *r)
{
    return hr_fail(r->err, HR_CORRUPT, "%s: no JSON at byte %lld: %s", r->source->path,
                   (long long)r->json.at,
                   r->json.problem ? r->json.problem : "another kind of value is needed");
}

static hr_status wrong_form(const reading *r, const char *what)
{
    return hr_fail(r->err, HR_CORRUPT,
                   "%s: is a WordLevel tokenizer with %s; only those that data.tokenizer=words "
                   "writes are supported",
                   r->source->path, what);
}

/* Checks that the next value equals `wanted`. */
static hr_status read_same(reading *r, const char *wanted, const char *what)
{
    char copy[512];
    const int64_t bytes = (int64_t)strlen(wanted);
    HR_ASSERT(bytes < (int64_t)sizeof copy);
    memcpy(copy, wanted, (size_t)bytes + 1);
    hr_json own = hr_json_over(copy, bytes);
    for (hr_json_kind kind = hr_json_next(&own); kind != HR_JSON_END; kind = hr_json_next(&own)) {
        const hr_json_kind there = hr_json_next(&r->json);
        if (there == HR_JSON_WRONG) return no_json(r);
        const bool text = kind == HR_JSON_KEY || kind == HR_JSON_STRING;
        if (there != kind || (text && (own.value_bytes != r->json.value_bytes ||
                                       memcmp(own.value, r->json.value, (size_t)own.value_bytes))))
            return wrong_form(r, what);
    }
    return HR_OK;
}

static hr_status read_vocab(reading *r)
{
    hr_word_table *table = &r->level->table;
    hr_json_kind kind = hr_json_next(&r->json);
    int64_t id;
    if (kind != HR_JSON_OBJECT) return no_json(r);
    while ((kind = hr_json_next(&r->json)) == HR_JSON_KEY) {
        const uint8_t *word = (const uint8_t *)r->json.value;
        const int64_t bytes = r->json.value_bytes, next = table->word_count;
        if (next == table->words_max || bytes == 0) return wrong_form(r, "an empty word");
        table->text[table->text_bytes++] = ' ';
        if (hr_words_add(table, word, bytes, hr_words_hash(word, bytes)) != next)
            return wrong_form(r, "a duplicate word");
        if (hr_json_next(&r->json) != HR_JSON_NUMBER) return no_json(r);
        if (!hr_json_integer(&r->json, &id) || id != next)
            return wrong_form(r, "ids that are not consecutive from 0");
    }
    return kind == HR_JSON_CLOSE ? HR_OK : no_json(r);
}

static hr_status read_model(reading *r)
{
    hr_json_kind kind = hr_json_next(&r->json);
    if (kind != HR_JSON_OBJECT) return no_json(r);
    r->has_model = true;
    while ((kind = hr_json_next(&r->json)) == HR_JSON_KEY) {
        hr_status status = HR_OK;
        if (hr_json_is(&r->json, "type")) status = read_same(r, "\"WordLevel\"", "another model");
        else if (hr_json_is(&r->json, "vocab")) status = read_vocab(r);
        else if (hr_json_is(&r->json, "unk_token")) {
            if (hr_json_next(&r->json) != HR_JSON_STRING) return no_json(r);
            snprintf(r->unknown, sizeof r->unknown, "%s", r->json.value);
        } else if (!hr_json_skip(&r->json, hr_json_next(&r->json))) {
            return no_json(r);
        }
        if (status != HR_OK) return status;
    }
    return kind == HR_JSON_CLOSE ? HR_OK : no_json(r);
}

static hr_status read_member(reading *r)
{
    static const struct {
        const char *key, *value, *what;
    } fixed[] = { { "normalizer", HR_WORD_LEVEL_NORMALIZER, "another normalizer" },
                  { "pre_tokenizer", HR_WORD_LEVEL_PRE_TOKENIZER, "another pre-tokenizer" },
                  { "added_tokens", "[]", "added tokens" },
                  { "post_processor", "null", "a post-processor" } };
    if (hr_json_is(&r->json, "model")) return read_model(r);
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (hr_json_is(&r->json, fixed[i].key)) return read_same(r, fixed[i].value, fixed[i].what);
    return hr_json_skip(&r->json, hr_json_next(&r->json)) ? HR_OK : no_json(r);
}

static hr_status read_all(reading *r)
{
    hr_json_kind kind = hr_json_next(&r->json);
    if (kind != HR_JSON_OBJECT) return no_json(r);
    while ((kind = hr_json_next(&r->json)) == HR_JSON_KEY) {
        const hr_status status = read_member(r);
        if (status != HR_OK) return status;
    }
    if (kind != HR_JSON_CLOSE || hr_json_next(&r->json) != HR_JSON_END) return no_json(r);
    if (!r->has_model || r->level->table.word_count != r->source->words)
        return wrong_form(r, "no vocabulary");
    const uint8_t *unknown = (const uint8_t *)r->unknown;
    const int64_t bytes = (int64_t)strlen(r->unknown);
    r->level->unknown = hr_words_find(&r->level->table, unknown, bytes,
                                      hr_words_hash(unknown, bytes));
    return r->level->unknown >= 0 ? HR_OK : wrong_form(r, "no unknown word in its vocabulary");
}

hr_status hr_word_level_open(hr_word_level **level, hr_region *region,
                             const hr_word_level_source *source, hr_error *err)
{
    hr_word_level *opened = hr_region_take(region, 1, sizeof *opened);
    reading r = { .level = opened, .source = source, .err = err };
    const int64_t table_bytes = hr_words_bytes_for(source->words, text_bytes(source));
    void *table = hr_region_take_raw(region, 1, table_bytes);
    uint8_t *word = hr_region_take_raw(region, 1, HR_WORD_BYTES);
    hr_region scratch = *region;
    char *text = hr_region_take_raw(&scratch, source->file_bytes + 1, 1);
    if (!opened || !table || !word || !text)
        return hr_fail(err, HR_NO_FIT, "%s: needs %lld bytes", source->path,
                       (long long)hr_word_level_bytes(source));
    *opened = (hr_word_level){ .table = hr_words_place_for(table, source->words,
                                                           text_bytes(source)),
                               .scan = hr_scan_over(word) };
    int file = -1;
    int64_t bytes;
    hr_status status = hr_file_open(source->path, &file, &bytes, err);
    if (status == HR_OK && bytes != source->file_bytes)
        status = hr_fail(err, HR_FAILURE, "%s: changed while it was read", source->path);
    if (status == HR_OK) status = hr_file_read(file, source->path, 0, text, bytes, err);
    hr_file_close(&file);
    if (status != HR_OK) return status;
    r.json = hr_json_over_file(text, bytes);
    r.json.zeros = true;
    status = read_all(&r);
    if (status == HR_OK) *level = opened;
    return status;
}

/* ---- encoding and decoding */

void hr_word_level_take(hr_word_level *level, const uint8_t *text, int64_t bytes, bool ends,
                        const char *name, int64_t offset)
{
    level->piece = (hr_piece){
        .bytes = text, .count = bytes, .segment_ends = ends, .path = name, .offset = offset
    };
    hr_scan_take(&level->scan, &level->piece);
}

void hr_word_level_discard(hr_word_level *level)
{
    level->scan = hr_scan_over(level->scan.word);
}

int64_t hr_word_level_unknown(const hr_word_level *level)
{
    return level->unknown;
}

int64_t hr_word_level_count(const hr_word_level *level)
{
    return level->table.word_count;
}

hr_status hr_word_level_next(hr_word_level *level, uint32_t *ids, int64_t *count, hr_error *err)
{
    *count = 0;
    while (*count < HR_WORD_LEVEL_AT_ONCE) {
        int64_t bytes;
        const hr_status status = hr_scan_next(&level->scan, &bytes, err);
        if (status != HR_OK || bytes == 0) return status;
        const uint8_t *word = level->scan.word;
        const int64_t id = hr_words_find(&level->table, word, bytes, hr_words_hash(word, bytes));
        ids[(*count)++] = (uint32_t)(id < 0 ? level->unknown : id);
    }
    return HR_OK;
}

int64_t hr_word_level_document_end(const hr_word_level *level)
{
    const uint8_t *end = (const uint8_t *)hr_word_level_specials[HR_WORD_END];
    const int64_t bytes = (int64_t)strlen(hr_word_level_specials[HR_WORD_END]);
    return hr_words_find(&level->table, end, bytes, hr_words_hash(end, bytes));
}

const uint8_t *hr_word_level_text(const hr_word_level *level, int64_t id, int64_t *bytes)
{
    const hr_word *word = &level->table.words[id];
    *bytes = word->bytes + 1;
    return level->table.text + word->text - 1;
}
