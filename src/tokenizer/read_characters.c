/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/read_characters.c - reading specific to tokenizers of characters: scores, byte tokens,
 * the unknown token, normalized added tokens. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "tokenizer/reading.h"

enum { ADDED_BYTES_MAX = 1 << 15 /* limit of an added token's normalized text */ };

static hr_status no_room(hr_error *err)
{
    return hr_fail(err, HR_NO_FIT, "tokenizer tables: the region is too small");
}

static hr_status wrong(const hr_tokenizer_source *source, const hr_json *json, const char *what,
                       hr_error *err)
{
    return hr_fail(err, HR_CORRUPT, HR_OF_FILE "%s is invalid (%s)", source->path, what,
                   json->problem ? json->problem : "unexpected type of value");
}

int64_t hr_read_internal_text(const uint8_t *text, int64_t bytes, uint8_t *out)
{
    int64_t count = 0;
    for (int64_t i = 0; i < bytes;) {
        const bool meta = i + 3 <= bytes && hr_is_metaspace(text + i);
        out[count++] = meta ? ' ' : text[i];
        i += meta ? 3 : 1;
    }
    return count;
}

/* Unigram: [["<unk>", 0.0], ["\u2581the", -3.2], ...]; ids are positions. */
hr_status hr_read_listed(hr_tokenizer *tokenizer, const hr_tokenizer_source *source, hr_keys *keys,
                         hr_region *tables, hr_json json, hr_error *err)
{
    double *scores = hr_region_take_raw(tables, source->size.ids + 1, 8), least = INFINITY;
    if (!scores) return no_room(err);
    if (hr_json_next(&json) != HR_JSON_ARRAY) return wrong(source, &json, "the vocabulary", err);
    for (int64_t id = 0;; id++) {
        hr_json_kind kind = hr_json_next(&json);
        if (kind == HR_JSON_CLOSE) break;
        if (kind != HR_JSON_ARRAY || hr_json_next(&json) != HR_JSON_STRING)
            return wrong(source, &json, "the vocabulary", err);
        const char *key = json.value;
        const int64_t bytes = json.value_bytes;
        double score;
        if (hr_json_next(&json) != HR_JSON_NUMBER || !hr_json_real(&json, &score) ||
            hr_json_next(&json) != HR_JSON_CLOSE)
            return wrong(source, &json, "a score of the vocabulary", err);
        const char *why = bytes ? hr_keys_add(keys, key, bytes, id) : "it is empty";
        if (why)
            return hr_fail(err, HR_CORRUPT, HR_OF_FILE "token %lld, \"%.*s\": %s", source->path,
                           (long long)id, (int)hr_min(bytes, 80), key, why);
        scores[id] = score;
        least = fmin(least, score);
    }
    tokenizer->unigram = (hr_unigram){ &tokenizer->bpe, scores, least - 10, false };
    return hr_json_next(&json) == HR_JSON_END ? HR_OK : wrong(source, &json, "the vocabulary", err);
}

/* ---- characters without a token */

/* Finds the byte tokens. `some`: out, some byte has one. `missing`: out, the first byte that needs
 * one and has none; -1: none. A byte needs one if UTF-8 contains it and it is no single-byte
 * token. */
static bool find_fallback(hr_tokenizer *tokenizer, const hr_keys *keys, bool *some,
                          int32_t *missing)
{
    hr_bpe *bpe = &tokenizer->bpe;
    *some = false;
    *missing = -1;
    for (int32_t byte = 0; byte < 256; byte++) {
        char name[8];
        const char one = (char)(byte == ' ' ? 0 : byte);
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)byte);
        const int32_t id = hr_keys_find(keys, name, 6, "", 0);
        bpe->fallback[byte] = id;
        *some |= id >= 0;
        if (id >= 0) tokenizer->marks[id] |= HR_TOKENIZER_FALLBACK;
        const bool needed = byte < 0x80 ? byte != ' ' && hr_keys_find(keys, &one, 1, "", 0) < 0
                                        : byte != 0xc0 && byte != 0xc1 && byte < 0xf5;
        if (id < 0 && needed && *missing < 0) *missing = byte;
    }
    return *missing < 0;
}

hr_status hr_read_unknown(hr_tokenizer *t, const hr_tokenizer_source *source, const hr_keys *keys,
                          const hr_read_unknown_desc *desc, hr_error *err)
{
    bool some;
    int32_t missing;
    t->bpe.unknown = desc->name[0]
                         ? hr_keys_find(keys, desc->name, (int64_t)strlen(desc->name), "", 0)
                         : HR_BPE_NONE;
    if (t->kind == HR_UNIGRAM) t->bpe.unknown = (int32_t)desc->id;
    const bool all = find_fallback(t, keys, &some, &missing);
    t->bpe.falls_back = desc->falls_back && all;
    if (desc->falls_back && some && !all)
        return hr_fail(
            err, HR_CORRUPT,
            HR_OF_FILE
            "model.byte_fallback is set but byte %d has no token, which is not supported",
            source->path, missing);
    if (t->bpe.falls_back && hr_keys_find(keys, "\xe2\x96\x81", 3, "", 0) < 0)
        return hr_fail(err, HR_CORRUPT,
                       HR_OF_FILE
                       "model.byte_fallback is set but U+2581 has no token, which is not supported",
                       source->path);
    const int32_t unknown = t->bpe.unknown;
    if (unknown < 0 || unknown >= source->size.ids || keys->bytes[unknown] < 0) {
        t->bpe.unknown = HR_BPE_NONE;
        if (!t->bpe.falls_back)
            return hr_fail(err, HR_CORRUPT,
                           HR_OF_FILE "model.unk_%s names no token and there is no byte "
                                      "fallback, which is not supported",
                           source->path, t->kind == HR_UNIGRAM ? "id" : "token");
        return HR_OK;
    }
    if (t->kind == HR_UNIGRAM && t->bpe.falls_back && !(t->marks[unknown] & HR_TOKENIZER_ADDED))
        return hr_fail(err, HR_CORRUPT,
                       HR_OF_FILE "Unigram with byte_fallback is not supported if the unknown "
                                  "token is not an added token",
                       source->path);
    return HR_OK;
}

void hr_read_joins(hr_tokenizer *tokenizer)
{
    const hr_bpe *bpe = &tokenizer->bpe;
    for (int64_t id = 0; id < bpe->size.ids; id++) {
        const uint8_t *text = bpe->text + bpe->text_at[id];
        const int64_t bytes = hr_bpe_token_bytes(bpe, (uint32_t)id);
        for (int64_t i = 1; i < bytes && bpe->present[id] == HR_BPE_PLAIN; i++)
            if (text[i] == ' ') tokenizer->joins[text[i - 1]] = true;
    }
}

/* ---- added tokens */

/* Whether a normalized text, with spaces for U+2581 or not, is that of the token. */
static bool is_text(bool spaces, const uint8_t *text, int64_t bytes, const hr_added_token *token)
{
    int64_t at = 0;
    for (int64_t i = 0; i < bytes; i++) {
        const bool mark = spaces && text[i] == ' ';
        const int64_t count = mark ? 3 : 1;
        if (at + count > token->bytes) return false;
        if (mark ? !hr_is_metaspace(token->text + at) : token->text[at] != text[i]) return false;
        at += count;
    }
    return at == token->bytes;
}

hr_status hr_read_normalized(hr_tokenizer *tokenizer, const hr_tokenizer_source *source,
                             const hr_added_token *added, int32_t count, hr_added_token *normal,
                             hr_region *tables, hr_region scratch, hr_error *err)
{
    hr_normalizing *work;
    uint8_t *out = hr_region_take_raw(&scratch, ADDED_BYTES_MAX, 1);
    hr_status status = hr_normalizing_place(&work, &scratch, &tokenizer->normalizer, err);
    if (status != HR_OK || !out) return status == HR_OK ? no_room(err) : status;
    for (int32_t i = 0; i < count; i++) {
        const hr_added_token *token = &added[i];
        if (!token->normalized) continue;
        const int64_t bytes = tokenizer->normalizer.sentencepiece
                                  ? hr_read_internal_text(token->text, token->bytes, out)
                                  : hr_normalize_short(work, token->text, token->bytes, out,
                                                       ADDED_BYTES_MAX);
        uint8_t *copy = bytes < 0 ? NULL : hr_region_take_raw(tables, bytes + 1, 1);
        if (!copy)
            return hr_fail(err, HR_CORRUPT,
                           HR_OF_FILE "added token \"%.*s\": its normalized text is too long",
                           source->path, token->bytes, (const char *)token->text);
        normal[i] = (hr_added_token){ .text = memcpy(copy, out, (size_t)bytes),
                                      .bytes = (int32_t)bytes };
        if (!tokenizer->normalizer.sentencepiece &&
            !is_text(tokenizer->normalizer.spaces_back, copy, bytes, token))
            tokenizer->marks[token->id] |= HR_TOKENIZER_RENAMED;
    }
    return HR_OK;
}
