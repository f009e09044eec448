/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/read.c - loads a tokenizer: vocabulary, merges, added tokens, and the tables. */
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/file.h"
#include "tokenizer/nfc.h"
#include "tokenizer/reading.h"
#include "tokenizer/sentencepiece.h"
#include "tokenizer/unicode.h"

typedef struct {
    hr_tokenizer *tokenizer;
    const hr_tokenizer_source *source;
    hr_region *tables;
    char *text; /* the contents of the file */
    hr_keys keys;
    hr_added_token *added;
    int32_t added_count;
    int64_t vocabulary, added_most; /* its tokens, and the largest id of an added one; -1: none */
    hr_added_token *normal; /* [added_count] their normalized texts, if there is a normalizer */
    bool ignores_merges;
    hr_read_unknown_desc unknown;
} reading;

static hr_json over(const reading *r, const hr_json_index_member *member)
{
    hr_json json = hr_json_over(r->text + member->at, member->bytes);
    json.zeros = true;
    return json;
}

static hr_status read_file(reading *r, const char *path, int64_t bytes, char *text, hr_error *err)
{
    int file = -1;
    int64_t now = 0;
    hr_status status = hr_file_open(path, &file, &now, err);
    if (status == HR_OK && now != bytes)
        status = hr_fail(err, HR_CORRUPT, HR_OF_FILE "the file changed while it was read", path);
    if (status == HR_OK) status = hr_file_read(file, path, 0, text, bytes, err);
    hr_file_close(&file);
    (void)r;
    return status;
}

static hr_status no_room(hr_error *err)
{
    return hr_fail(err, HR_NO_FIT, "tokenizer tables: the region is too small");
}

static hr_status wrong(const reading *r, const hr_json *json, const char *what, hr_error *err)
{
    return hr_fail(err, HR_CORRUPT, HR_OF_FILE "%s is invalid (%s)", r->source->path, what,
                   json->problem ? json->problem : "unexpected type of value");
}

/* Checks that nothing follows a value. */
static hr_status ends(const reading *r, hr_json *json, const char *what, hr_error *err)
{
    return hr_json_next(json) == HR_JSON_END ? HR_OK : wrong(r, json, what, err);
}

/* ---- the vocabulary */

static hr_status read_vocab(reading *r, hr_json json, hr_error *err)
{
    if (hr_json_next(&json) != HR_JSON_OBJECT) return wrong(r, &json, "the vocabulary", err);
    for (;;) {
        const hr_json_kind kind = hr_json_next(&json);
        if (kind == HR_JSON_CLOSE) return ends(r, &json, "the vocabulary", err);
        if (kind != HR_JSON_KEY) return wrong(r, &json, "the vocabulary", err);
        const char *key = json.value;
        const int64_t bytes = json.value_bytes;
        int64_t id;
        if (hr_json_next(&json) != HR_JSON_NUMBER || !hr_json_integer(&json, &id))
            return wrong(r, &json, "an id of the vocabulary", err);
        const char *why = hr_keys_add(&r->keys, key, bytes, id);
        if (why)
            return hr_fail(err, HR_CORRUPT, HR_OF_FILE "token \"%.*s\" with id %lld: %s",
                           r->source->path, (int)hr_min(bytes, 80), key, (long long)id, why);
    }
}

/* Converts a byte-level text to its bytes. Returns false and copies the text unchanged if a
 * character stands for no byte. */
static bool as_bytes(const char *text, int64_t bytes, uint8_t *out, int64_t *count)
{
    const uint8_t *at = (const uint8_t *)text;
    *count = 0;
    for (int64_t p = 0; p < bytes;) {
        uint32_t point;
        p += hr_utf8_take(at + p, bytes - p, &point);
        const int32_t byte = hr_character_byte(point);
        if (byte < 0) {
            memcpy(out, text, (size_t)bytes);
            *count = bytes;
            return false;
        }
        out[(*count)++] = (uint8_t)byte;
    }
    return bytes > 0;
}

/* Normalizes the added tokens that match in normalized text. */
static hr_status normalize_added(reading *r, hr_region scratch, hr_error *err)
{
    hr_bpe *bpe = &r->tokenizer->bpe;
    hr_nfc_scratch *form = hr_region_take_raw(&scratch, 1, sizeof *form);
    if (!form) return no_room(err);
    if (hr_normalizer_acts(&r->tokenizer->normalizer))
        return hr_read_normalized(r->tokenizer, r->source, r->added, r->added_count, r->normal,
                                  r->tables, scratch, err);
    for (int32_t i = 0; i < r->added_count && r->tokenizer->nfc; i++) {
        hr_added_token *token = &r->added[i];
        int64_t taken, written;
        if (!token->normalized || hr_nfc_stable(token->text, token->bytes)) continue;
        if (!hr_nfc_compose(token->text, token->bytes, true, bpe->text, bpe->size.text_bytes, form,
                            &taken, &written) ||
            taken < token->bytes || written > token->bytes)
            return hr_fail(err, HR_CORRUPT,
                           HR_OF_FILE
                           "added token \"%.*s\": NFC makes it longer, which is not supported",
                           r->source->path, token->bytes, (const char *)token->text);
        if (written == token->bytes && !memcmp(token->text, bpe->text, (size_t)written)) continue;
        uint8_t *copy = hr_region_take_raw(r->tables, written, 1);
        if (!copy) return no_room(err);
        r->tokenizer->marks[token->id] |= HR_TOKENIZER_RENAMED;
        r->normal[i] = (hr_added_token){ .text = memcpy(copy, bpe->text, (size_t)written),
                                         .bytes = (int32_t)written };
    }
    return HR_OK;
}

static bool is_outside(const reading *r, int64_t id)
{
    return r->tokenizer->marks[id] & HR_TOKENIZER_OUTSIDE;
}

/* Writes the text of a token of characters as the tables store it, with a space for each U+2581.
 * Returns false and copies the text unchanged if the model cannot output the token. */
static bool as_characters(const reading *r, int64_t id, uint8_t *out, int64_t *count)
{
    const uint8_t *text = (const uint8_t *)r->keys.text + r->keys.at[id];
    const int64_t bytes = r->keys.bytes[id];
    const bool made = !is_outside(r, id) && !memchr(text, ' ', (size_t)bytes);
    if (made) *count = hr_read_internal_text(text, bytes, out);
    else memcpy(out, text, (size_t)(*count = bytes));
    return made;
}

/* Writes the texts of all ids in id order: vocabulary and added tokens. */
static void fill_texts(reading *r)
{
    hr_bpe *bpe = &r->tokenizer->bpe;
    uint32_t used = 0;
    for (int64_t id = 0; id < bpe->size.ids; id++) {
        bpe->text_at[id] = used;
        int64_t count = 0;
        if (r->keys.bytes[id] >= 0) {
            const char *text = r->keys.text + r->keys.at[id];
            const int32_t bytes = r->keys.bytes[id];
            bool plain = true;
            if (r->source->form == HR_TOKENIZER_RANKS)
                memcpy(bpe->text + used, text, (size_t)(count = bytes));
            else if (r->tokenizer->kind != HR_BYTE_LEVEL_BPE)
                plain = as_characters(r, id, bpe->text + used, &count);
            else plain = as_bytes(text, bytes, bpe->text + used, &count) && !is_outside(r, id);
            bpe->present[id] = plain ? HR_BPE_PLAIN : HR_BPE_OTHER;
            r->tokenizer->tokens++;
        }
        used += (uint32_t)count;
    }
    bpe->text_at[bpe->size.ids] = used;
}

/* ---- merges */

static hr_status read_merges(reading *r, hr_json json, hr_error *err)
{
    if (hr_json_next(&json) != HR_JSON_ARRAY) return wrong(r, &json, "the list of merges", err);
    for (;;) {
        hr_json_kind kind = hr_json_next(&json);
        if (kind == HR_JSON_CLOSE) return ends(r, &json, "the list of merges", err);
        const char *left = json.value, *right = NULL;
        int64_t left_bytes = json.value_bytes, right_bytes = 0;
        if (kind == HR_JSON_STRING) {
            const char *space = memchr(left, ' ', (size_t)left_bytes);
            if (!space || memchr(space + 1, ' ', (size_t)(left + left_bytes - space - 1)))
                return hr_fail(err, HR_CORRUPT,
                               HR_OF_FILE
                               "merge %lld, \"%.*s\", is not two tokens separated by a space",
                               r->source->path, (long long)r->tokenizer->merges + 1,
                               (int)hr_min(left_bytes, 80), left);
            right = space + 1;
            right_bytes = left + left_bytes - right;
            left_bytes = space - left;
        } else if (kind == HR_JSON_ARRAY && hr_json_next(&json) == HR_JSON_STRING) {
            left = json.value;
            left_bytes = json.value_bytes;
            if (hr_json_next(&json) != HR_JSON_STRING) return wrong(r, &json, "a merge", err);
            right = json.value;
            right_bytes = json.value_bytes;
            if (hr_json_next(&json) != HR_JSON_CLOSE) return wrong(r, &json, "a merge", err);
        } else {
            return wrong(r, &json, "a merge", err);
        }
        const hr_status status = hr_read_merge(r->tokenizer, r->source, &r->keys, left, left_bytes,
                                               right, right_bytes, err);
        if (status != HR_OK) return status;
    }
}

/* ---- other members of the model */

static hr_status refuse(const reading *r, const char *key, const char *what, hr_error *err)
{
    return hr_fail(err, HR_CORRUPT, HR_OF_FILE "model.%s is %s, which is not supported",
                   r->source->path, key, what);
}

static hr_status read_model(reading *r, hr_error *err)
{
    const hr_json_index *outline = &r->source->outline;
    bool typed = false;
    for (int32_t i = 0; i < outline->model_count; i++) {
        const hr_json_index_member *member = &outline->model[i];
        if (!strcmp(member->key, "vocab") || !strcmp(member->key, "merges")) continue;
        hr_json json = over(r, member);
        const hr_json_kind kind = hr_json_next(&json);
        char value[64] = "set";
        if (kind == HR_JSON_STRING && json.value_bytes < 60) {
            memcpy(value, json.value, (size_t)json.value_bytes);
            value[json.value_bytes] = 0;
        }
        const bool off = kind == HR_JSON_NULL || kind == HR_JSON_FALSE ||
                         (kind == HR_JSON_STRING && !json.value_bytes);
        double number = 1;
        if (!strcmp(member->key, "type")) {
            const bool unigram = !strcmp(value, "Unigram");
            if (kind != HR_JSON_STRING || (strcmp(value, "BPE") && !unigram))
                return hr_fail(err, HR_CORRUPT,
                               HR_OF_FILE "model type %s is not supported; BPE and Unigram are",
                               r->source->path, value);
            if (unigram != outline->listed)
                return hr_fail(err, HR_CORRUPT,
                               HR_OF_FILE "model type %s, but the vocabulary is %s list of scores",
                               r->source->path, value, outline->listed ? "a" : "not a");
            typed = true;
        } else if (!strcmp(member->key, "ignore_merges")) {
            r->ignores_merges = kind == HR_JSON_TRUE;
        } else if (!strcmp(member->key, "byte_fallback")) {
            r->unknown.falls_back = kind == HR_JSON_TRUE;
        } else if (!strcmp(member->key, "unk_token")) {
            if (kind == HR_JSON_STRING) memcpy(r->unknown.name, value, sizeof value);
        } else if (!strcmp(member->key, "unk_id")) {
            if (kind == HR_JSON_NUMBER && !hr_json_integer(&json, &r->unknown.id))
                return wrong(r, &json, "model.unk_id", err);
        } else if (!strcmp(member->key, "fuse_unk")) {
            r->tokenizer->fuses = kind == HR_JSON_TRUE;
        } else if (!strcmp(member->key, "alpha") || !strcmp(member->key, "nbest_size")) {
            if (kind == HR_JSON_NUMBER && hr_json_real(&json, &number) && number == 0) continue;
            if (!off) return refuse(r, member->key, "set", err);
        } else if (!strcmp(member->key, "dropout")) {
            if (kind == HR_JSON_NUMBER && hr_json_real(&json, &number) && number == 0) continue;
            if (!off) return refuse(r, member->key, "set", err);
        } else if (!strcmp(member->key, "continuing_subword_prefix") ||
                   !strcmp(member->key, "end_of_word_suffix")) {
            if (!off) return refuse(r, member->key, kind == HR_JSON_TRUE ? "true" : value, err);
        }
    }
    const hr_json_index_member *vocab = hr_json_index_model(outline, "vocab");
    const hr_json_index_member *merges = hr_json_index_model(outline, "merges");
    if (vocab && outline->listed) {
        if (r->tokenizer->kind != HR_UNIGRAM)
            return hr_fail(err, HR_CORRUPT, HR_OF_FILE "Unigram with ByteLevel is not supported",
                           r->source->path);
        r->tokenizer->fuses = true;
        return hr_read_listed(r->tokenizer, r->source, &r->keys, r->tables, over(r, vocab), err);
    }
    if (!vocab || !merges)
        return hr_fail(err, HR_CORRUPT, HR_OF_FILE "the model has no %s%s", r->source->path,
                       vocab ? "merges" : "vocab", typed ? "" : " and no type");
    return read_vocab(r, over(r, vocab), err);
}

/* unk_token and byte_fallback matter to byte-level BPE only if some byte has no token. Then they
 * are refused. */
static hr_status check_unknown(reading *r, const char *key, hr_error *err)
{
    const hr_json_index_member *member = hr_json_index_model(&r->source->outline, key);
    if (!member || !r->tokenizer->bpe.bytes_missing || r->tokenizer->kind != HR_BYTE_LEVEL_BPE)
        return HR_OK;
    hr_json json = over(r, member);
    const hr_json_kind kind = hr_json_next(&json);
    if (kind == HR_JSON_NULL || kind == HR_JSON_FALSE) return HR_OK;
    for (int32_t byte = 0; byte < 256; byte++) {
        const bool in_utf8 = byte != 0xc0 && byte != 0xc1 && byte < 0xf5;
        if (r->tokenizer->bpe.byte_id[byte] < 0 && in_utf8)
            return hr_fail(err, HR_CORRUPT,
                           HR_OF_FILE
                           "model.%s is set but byte %d has no token, which is not supported",
                           r->source->path, key, byte);
    }
    return HR_OK;
}

/* ---- added tokens */

static hr_status read_added_one(reading *r, hr_json *json, hr_error *err)
{
    hr_added_token token = { .normalized = true };
    int64_t id = -1;
    hr_json_kind kind;
    while ((kind = hr_json_next(json)) == HR_JSON_KEY) {
        char key[16] = "";
        if (json->value_bytes < 16) memcpy(key, json->value, (size_t)json->value_bytes);
        kind = hr_json_next(json);
        const bool on = kind == HR_JSON_TRUE;
        if (!strcmp(key, "content") && kind == HR_JSON_STRING) {
            token.text = (const uint8_t *)json->value;
            token.bytes = (int32_t)json->value_bytes;
        } else if (!strcmp(key, "id") && kind == HR_JSON_NUMBER) {
            if (!hr_json_integer(json, &id)) id = -1;
        } else if (!strcmp(key, "single_word")) token.single_word = on;
        else if (!strcmp(key, "lstrip")) token.lstrip = on;
        else if (!strcmp(key, "rstrip")) token.rstrip = on;
        else if (!strcmp(key, "normalized")) token.normalized = on;
        else if (!strcmp(key, "special")) token.special = on;
        else if (!hr_json_skip(json, kind)) return wrong(r, json, "an added token", err);
    }
    if (kind != HR_JSON_CLOSE || !token.text || id < 0)
        return wrong(r, json, "an added token", err);
    if (!token.bytes) return HR_OK; /* never matches, as in the reference */
    if (token.bytes > HR_BPE_TOKEN_BYTES_MAX)
        return hr_fail(err, HR_CORRUPT, HR_OF_FILE "added token %lld has %d bytes; the limit is %d",
                       r->source->path, (long long)id, token.bytes, HR_BPE_TOKEN_BYTES_MAX);
    token.id = (uint32_t)id;
    const int32_t there = hr_keys_find(&r->keys, (const char *)token.text, token.bytes, "", 0);
    const char *why = NULL;
    if (there >= 0 && there != id) why = "the vocabulary has it under another id";
    else if (there < 0) why = hr_keys_add(&r->keys, (const char *)token.text, token.bytes, id);
    if (!why && there < 0) r->tokenizer->marks[id] |= HR_TOKENIZER_OUTSIDE;
    const int64_t next = hr_max(r->added_most + 1, r->vocabulary);
    if (!why && there < 0 && id != next)
        return hr_fail(err, HR_CORRUPT,
                       HR_OF_FILE "added token \"%.*s\" has id %lld, and the Python package "
                                  "tokenizers would give it %lld: set \"id\" to that, with "
                                  "added_tokens in the order of their ids",
                       r->source->path, (int)hr_min(token.bytes, 80), (const char *)token.text,
                       (long long)id, (long long)next);
    r->added_most = hr_max(r->added_most, id);
    if (why)
        return hr_fail(err, HR_CORRUPT, HR_OF_FILE "added token \"%.*s\" with id %lld: %s",
                       r->source->path, (int)hr_min(token.bytes, 80), (const char *)token.text,
                       (long long)id, why);
    r->added[r->added_count++] = token;
    if (!token.normalized) r->tokenizer->marks[id] |= HR_TOKENIZER_ADDED;
    return HR_OK;
}

static hr_status read_added(reading *r, hr_error *err)
{
    const hr_json_index_member *member = hr_json_index_top(&r->source->outline, "added_tokens");
    if (!member) return HR_OK;
    hr_json json = over(r, member);
    hr_json_kind kind = hr_json_next(&json);
    if (kind == HR_JSON_NULL) return HR_OK;
    if (kind != HR_JSON_ARRAY) return wrong(r, &json, "the list of added tokens", err);
    r->vocabulary = r->keys.count;
    r->added_most = -1;
    while ((kind = hr_json_next(&json)) == HR_JSON_OBJECT) {
        if (r->added_count > r->source->outline.added_count)
            return wrong(r, &json, "the list of added tokens", err);
        const hr_status status = read_added_one(r, &json, err);
        if (status != HR_OK) return status;
    }
    return kind == HR_JSON_CLOSE ? HR_OK : wrong(r, &json, "an added token", err);
}

/* The text that a renamed token is decoded to; null: no room. */
static const uint8_t *decoded(reading *r, const hr_added_token *normal, int64_t *bytes)
{
    *bytes = normal->bytes;
    if (r->tokenizer->decoding.kind != HR_DECODING_BYTES) return normal->text;
    uint8_t *text = hr_region_take_raw(r->tables, normal->bytes, 1);
    if (text) (void)as_bytes((const char *)normal->text, normal->bytes, text, bytes);
    return text;
}

/* Builds the tables for raw and for normalized text. */
static hr_status place_added(reading *r, hr_error *err)
{
    hr_tokenizer *tokenizer = r->tokenizer;
    hr_added_token *raw = hr_region_take_raw(r->tables, r->added_count + 1, sizeof *raw);
    hr_added_token *normal = hr_region_take_raw(r->tables, r->added_count + 1, sizeof *normal);
    hr_added_token *symbols = hr_region_take_raw(r->tables, r->added_count + 1, sizeof *symbols);
    int32_t raw_count = 0, normal_count = 0, symbol_count = 0;
    if (!raw || !normal || !symbols) return no_room(err);
    for (int32_t i = 0; i < r->added_count; i++) {
        hr_added_token *token = &r->added[i];
        uint8_t *copy = hr_region_take_raw(r->tables, token->bytes, 1);
        if (!copy) return no_room(err);
        token->text = memcpy(copy, token->text, (size_t)token->bytes);
        tokenizer->marks[token->id] |= HR_TOKENIZER_ADDED |
                                       (token->special ? HR_TOKENIZER_SPECIAL : 0);
        hr_added_token found = *token;
        if (token->normalized && r->normal[i].text) {
            int64_t bytes;
            found.text = r->normal[i].text;
            found.bytes = r->normal[i].bytes;
            r->normal[i].text = decoded(r, &found, &bytes);
            r->normal[i].bytes = (int32_t)bytes;
            if (!r->normal[i].text) return no_room(err);
        }
        if (r->source->form == HR_TOKENIZER_MODEL) symbols[symbol_count++] = *token;
        if (r->source->form == HR_TOKENIZER_MODEL && tokenizer->kind == HR_UNIGRAM)
            continue; /* only the normalizer matches them */
        if (token->normalized && found.bytes) normal[normal_count++] = found;
        else if (!token->normalized) raw[raw_count++] = found;
    }
    tokenizer->added = r->added;
    tokenizer->renamed = r->normal;
    tokenizer->added_count = r->added_count;
    hr_added_over(&tokenizer->raw, raw, raw_count);
    hr_added_over(&tokenizer->normalized, normal, normal_count);
    tokenizer->normalized.spaces_stay = tokenizer->normalizer.spaces_back;
    hr_added_over(&tokenizer->symbols, symbols, symbol_count);
    return HR_OK;
}

int32_t hr_tokenizer_id_of(const hr_tokenizer *tokenizer, const char *text)
{
    const int64_t bytes = (int64_t)strlen(text);
    const hr_bpe *bpe = &tokenizer->bpe;
    for (int32_t i = 0; i < tokenizer->added_count; i++)
        if (tokenizer->added[i].bytes == bytes &&
            !memcmp(tokenizer->added[i].text, text, (size_t)bytes))
            return (int32_t)tokenizer->added[i].id;
    for (int32_t id = 0; id < bpe->size.ids; id++)
        if (bpe->present[id] != HR_BPE_ABSENT && hr_bpe_token_bytes(bpe, (uint32_t)id) == bytes &&
            !memcmp(bpe->text + bpe->text_at[id], text, (size_t)bytes))
            return id;
    return HR_BPE_NONE;
}

int32_t hr_tokenizer_document_end(const hr_tokenizer *tokenizer)
{
    static const char *const names[] = { "<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>",
                                         "<|im_end|>" };
    int32_t id = HR_BPE_NONE;
    for (size_t i = 0; i < sizeof names / sizeof *names && id == HR_BPE_NONE; i++)
        id = hr_tokenizer_id_of(tokenizer, names[i]);
    return id;
}

/* ---- loading */

static hr_status read_tokens(reading *r, hr_region *scratch, hr_error *err)
{
    const hr_tokenizer_source *source = r->source;
    hr_tokenizer *tokenizer = r->tokenizer;
    hr_status status;
    if (!hr_keys_place(&r->keys, scratch, source->size.ids, r->text)) return no_room(err);
    r->added = hr_region_take_raw(r->tables, source->outline.added_count + 1, sizeof *r->added);
    tokenizer->marks = hr_region_take(r->tables, source->size.ids + 1, 1);
    r->normal = hr_region_take(r->tables, source->outline.added_count + 1, sizeof *r->normal);
    if (!r->added || !tokenizer->marks || !r->normal) return no_room(err);
    if (source->form == HR_TOKENIZER_MODEL) {
        tokenizer->spaced = tokenizer->fuses = true;
        status = hr_sentencepiece_read(tokenizer, source, r->text, &r->keys, r->added,
                                       &r->added_count, r->tables, scratch, err);
        if (status == HR_OK) hr_normalizer_finish(&tokenizer->normalizer);
    } else if (source->form == HR_TOKENIZER_RANKS) {
        r->ignores_merges = true;
        status = hr_read_ranks(source, scratch, &r->keys, r->text, err);
    } else if (source->form == HR_TOKENIZER_PAIR) {
        hr_json_index_member whole = { .at = 0, .bytes = source->outline.bytes };
        status = read_vocab(r, over(r, &whole), err);
        const int32_t end = hr_keys_find(&r->keys, "<|endoftext|>", 13, "", 0);
        if (status == HR_OK && end >= 0)
            r->added[r->added_count++] = (hr_added_token){ .text = (const uint8_t *)r->keys.text +
                                                                   r->keys.at[end],
                                                           .bytes = 13,
                                                           .id = (uint32_t)end,
                                                           .special = true };
    } else {
        status = read_model(r, err);
        if (status == HR_OK) status = read_added(r, err);
        if (status == HR_OK && tokenizer->kind != HR_BYTE_LEVEL_BPE)
            status = hr_read_unknown(tokenizer, source, &r->keys, &r->unknown, err);
    }
    if (status == HR_OK) status = normalize_added(r, *scratch, err);
    if (status != HR_OK) return status;
    fill_texts(r);
    if (source->form == HR_TOKENIZER_RANKS || source->form == HR_TOKENIZER_MODEL ||
        tokenizer->kind == HR_UNIGRAM)
        return HR_OK;
    if (source->form == HR_TOKENIZER_PAIR)
        return hr_read_merge_lines(tokenizer, source, &r->keys, r->text, err);
    return read_merges(r, over(r, hr_json_index_model(&source->outline, "merges")), err);
}

static hr_status make(reading *r, hr_region scratch, const hr_pretokenizer_desc *desc, uint32_t cpu,
                      hr_error *err)
{
    hr_tokenizer *tokenizer = r->tokenizer;
    hr_status status = hr_pretokenizer_place(&tokenizer->pretokenizer, r->tables, desc, cpu, err);
    const hr_bpe_kind kind = r->source->form == HR_TOKENIZER_RANKS   ? HR_BPE_RANKS
                             : tokenizer->kind == HR_BYTE_LEVEL_BPE  ? HR_BPE_BYTES
                             : tokenizer->kind == HR_UNIGRAM         ? HR_BPE_TREE
                             : r->source->form == HR_TOKENIZER_MODEL ? HR_BPE_SCORES
                                                                     : HR_BPE_CHARACTERS;
    if (status == HR_OK && kind >= HR_BPE_CHARACTERS && r->ignores_merges && !tokenizer->splits)
        status = refuse(r, "ignore_merges", "true without a Metaspace with split", err);
    hr_error own;
    const hr_status finished = status == HR_OK ? hr_bpe_finish(&tokenizer->bpe, kind, scratch, &own)
                                               : HR_OK;
    if (finished != HR_OK)
        status = hr_fail(err, finished, HR_OF_FILE "%s", r->source->path, own.message);
    if (status == HR_OK && kind == HR_BPE_RANKS && tokenizer->bpe.bytes_missing)
        status = hr_fail(err, HR_CORRUPT, HR_OF_FILE "a byte has no token: text would be lost",
                         r->source->path);
    if (status == HR_OK) status = check_unknown(r, "unk_token", err);
    if (status == HR_OK) status = check_unknown(r, "byte_fallback", err);
    tokenizer->bpe.whole_first = r->ignores_merges;
    if (kind >= HR_BPE_CHARACTERS) hr_read_joins(tokenizer);
    if (status == HR_OK) status = place_added(r, err);
    tokenizer->pattern_count = desc->stage_count;
    tokenizer->ids = r->source->size.ids;
    return status;
}

static hr_status place(hr_tokenizer **tokenizer, hr_region *tables, hr_region scratch,
                       const hr_tokenizer_source *source, uint32_t cpu, hr_error *err)
{
    static const char *const forms[] = { "tokenizer.json", "vocab.json and merges.txt", ".tiktoken",
                                         "tokenizer.model" };
    if (source->words)
        return hr_fail(err, HR_CORRUPT, HR_OF_FILE "model type WordLevel is not supported here",
                       source->path);
    hr_tokenizer *made = hr_region_take(tables, 1, sizeof *made);
    const int64_t text_bytes = source->outline.bytes + source->merges_bytes + 2;
    char *text = hr_region_take_raw(&scratch, text_bytes, 1);
    if (!made || !text) return no_room(err);
    reading r = { .tokenizer = made, .source = source, .tables = tables, .text = text };
    hr_status status = hr_bpe_place(&made->bpe, tables, source->size, err);
    if (status != HR_OK) return status;
    status = read_file(&r, source->path, source->outline.bytes, text, err);
    if (status == HR_OK && source->form == HR_TOKENIZER_JSON)
        status = hr_read_check_json(source, text, scratch, err);
    if (status == HR_OK && source->form == HR_TOKENIZER_PAIR)
        status = read_file(&r, source->merges, source->merges_bytes, text + source->outline.bytes,
                           err);
    hr_pretokenizer_desc desc = { .stage_count = 0 };
    made->form = forms[source->form];
    r.unknown.id = HR_BPE_NONE;
    if (status == HR_OK) status = hr_read_normalizer(made, source, text, tables, err);
    if (status == HR_OK) status = hr_read_parts(made, source, text, &desc, err);
    if (status == HR_OK) status = read_tokens(&r, &scratch, err);
    if (status == HR_OK) status = make(&r, scratch, &desc, cpu, err);
    if (status == HR_OK) *tokenizer = made;
    return status;
}

hr_status hr_tokenizer_place(hr_tokenizer **tokenizer, hr_region *tables, hr_region scratch,
                             const hr_tokenizer_source *source, uint32_t cpu, hr_error *err)
{
    return hr_one_line(place(tokenizer, tables, scratch, source, cpu, err), err);
}
