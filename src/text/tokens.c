/* SPDX-License-Identifier: Apache-2.0 */
/* text/tokens.c - buffers documents in a window for the encoder. */
#define XXH_STATIC_LINKING_ONLY /* for a state struct without allocation */
#include "text/tokens.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/path.h"
#include "headroom/config.h"
#include "text/word_level.h"
#include "tokenizer/encoder.h"

enum {
    PIECE_BYTES = 1 << 20, /* limit of a part that the pre-tokenizer does not split */
    WINDOW_BYTES = PIECE_BYTES + (64 << 10),
    /* text of one id and of pending bytes */
    DECODED_BYTES = 3 * (HR_BPE_TOKEN_BYTES_MAX + HR_DECODER_RUN + 32),
    /* sufficient for the common tokenizers, with a margin for other patterns */
    ENCODER_BYTES = 31 << 20
};

struct hr_tokens {
    /* word-level tokenizer; null: another one. With it, only `sink` and `context` are used */
    hr_word_level *words;
    hr_tokenizer *tokenizer;
    hr_encoder *encoder;
    hr_tokens_sink *sink;
    void *context;
    hr_error *err; /* of the current call */
    hr_status sunk;
    bool add_special, omit_special; /* omit_special: not from here on */
    bool begun;                     /* the encoder is within a text */
    int64_t at, end;                /* of the window: encoded up to, filled up to */
    uint8_t *window;                /* [WINDOW_BYTES] */
    hr_decoder decoder;
    uint8_t *decoded; /* [DECODED_BYTES] */
};

/* ---- tokenizer files */

static const char vocabulary_name[] = "vocab.json", merges_name[] = "merges.txt";

static int64_t kept_bytes(const hr_tokenizer_source *source)
{
    return hr_round_up(sizeof(hr_tokens), 64) + hr_round_up(source->table_bytes, 64) +
           hr_round_up(DECODED_BYTES, 64);
}

static hr_word_level_source words_of(const hr_tokenizer_source *source)
{
    return (hr_word_level_source){ .path = source->path,
                                   .file_bytes = source->outline.bytes,
                                   .words = source->outline.vocab_count };
}

static hr_tokens_facts facts_of(const hr_tokenizer_source *source)
{
    const hr_word_level_source words = words_of(source);
    const int64_t own = hr_round_up(sizeof(hr_tokens), 64);
    if (source->words)
        return (hr_tokens_facts){ .bytes = own + hr_word_level_bytes(&words),
                                  .kept = own + hr_word_level_kept_bytes(&words),
                                  .ids = words.words };
    const int64_t beside = hr_max(source->scratch_bytes, ENCODER_BYTES + WINDOW_BYTES);
    return (hr_tokens_facts){ .bytes = kept_bytes(source) + hr_round_up(beside, 64),
                              .kept = kept_bytes(source),
                              .ids = source->size.ids };
}

static hr_status probe(hr_tokenizer_source *source, const char *path, hr_error *err)
{
    const hr_status status = hr_tokenizer_probe(source, path, NULL, err);
    const hr_word_level_source words = words_of(source);
    return status == HR_OK && source->words ? hr_word_level_check(&words, err) : status;
}

hr_status hr_tokens_probe(const char *path, hr_tokens_facts *facts, hr_error *err)
{
    hr_tokenizer_source source;
    const hr_status status = probe(&source, path, err);
    if (status == HR_OK) *facts = facts_of(&source);
    return status;
}

static hr_status hash_file(XXH3_state_t *hash, const char *path, uint8_t *staging, hr_error *err)
{
    int file;
    int64_t bytes;
    hr_status status = hr_file_open(path, &file, &bytes, err);
    if (status != HR_OK) return status;
    for (int64_t done = 0, part; done < bytes && status == HR_OK; done += part) {
        part = hr_min(bytes - done, HR_TOKENS_STAGING);
        status = hr_file_read(file, path, done, staging, part, err);
        if (status == HR_OK) XXH3_128bits_update(hash, staging, (size_t)part);
    }
    hr_file_close(&file);
    return status;
}

/* "words2" differs from the forms, and from "words", under which unknown words counted as known. */
static uint64_t seed_of(const hr_tokenizer_source *source)
{
    return source->words ? UINT64_C(0x776f72647332) : (uint64_t)source->form;
}

hr_status hr_tokens_identify(const char *path, uint8_t *staging, hr_tokens_facts *facts,
                             hr_error *err)
{
    hr_tokenizer_source source;
    XXH3_state_t hash;
    hr_status status = probe(&source, path, err);
    if (status != HR_OK) return status;
    XXH3_INITSTATE(&hash);
    XXH3_128bits_reset_withSeed(&hash, seed_of(&source));
    status = hash_file(&hash, source.path, staging, err);
    if (status == HR_OK && source.form == HR_TOKENIZER_PAIR)
        status = hash_file(&hash, source.merges, staging, err);
    const XXH128_hash_t digest = XXH3_128bits_digest(&hash);
    *facts = facts_of(&source);
    facts->hash = (hr_text_hash){ digest.low64, digest.high64 };
    return status;
}

/* The standard name of the tokenizer's file in a folder. */
static const char *name_of(const hr_tokenizer_source *source)
{
    const char *slash = strrchr(source->path, '/');
    return source->form == HR_TOKENIZER_JSON    ? "tokenizer.json"
           : source->form == HR_TOKENIZER_PAIR  ? vocabulary_name
           : source->form == HR_TOKENIZER_MODEL ? "tokenizer.model"
           : slash                              ? slash + 1
                                                : source->path;
}

/* Files beside a tokenizer that other software reads with it. */
static const char *const companions[] = { "tokenizer_config.json", "special_tokens_map.json",
                                          "added_tokens.json", "chat_template.jinja" };
enum { COMPANIONS = sizeof companions / sizeof *companions };

/* Writes the path of a file beside the tokenizer into origin [bytes]; empty: there is none. */
static hr_status find_beside(const hr_tokenizer_source *source, const char *name, char *origin,
                             int64_t bytes, hr_error *err)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(source->path, '/');
    const int64_t length = slash ? slash - source->path : 1;
    snprintf(folder, sizeof folder, "%.*s", (int)hr_max(length, 1), slash ? source->path : ".");
    const hr_status status = hr_path_join(folder, name, origin, bytes, err);
    if (status != HR_OK || !hr_file_exists(origin)) *origin = 0;
    return status;
}

static bool is_companion(const char *name)
{
    for (int32_t i = 0; i < COMPANIONS; i++)
        if (!strcmp(name, companions[i])) return true;
    return false;
}

hr_status hr_tokens_origin(const char *path, const char *name, char *origin, int64_t bytes,
                           hr_error *err)
{
    hr_tokenizer_source source;
    const hr_status status = probe(&source, path, err);
    if (status != HR_OK) return status;
    if (is_companion(name)) return find_beside(&source, name, origin, bytes, err);
    const bool merges = source.form == HR_TOKENIZER_PAIR && !strcmp(name, merges_name);
    const bool found = merges || !strcmp(name, name_of(&source));
    snprintf(origin, (size_t)bytes, "%s", merges ? source.merges : found ? source.path : "");
    return HR_OK;
}

hr_status hr_tokens_copy_files(const char *path, const char *folder, void *buffer, int64_t bytes,
                               hr_error *err)
{
    hr_tokenizer_source source;
    hr_status status = probe(&source, path, err);
    if (status != HR_OK) return status;
    status = hr_file_copy(source.path, folder, name_of(&source), buffer, bytes, err);
    if (status == HR_OK && source.form == HR_TOKENIZER_PAIR)
        status = hr_file_copy(source.merges, folder, merges_name, buffer, bytes, err);
    for (int32_t i = 0; i < COMPANIONS && status == HR_OK; i++) {
        char beside[PATH_MAX];
        status = find_beside(&source, companions[i], beside, sizeof beside, err);
        if (status == HR_OK && *beside)
            status = hr_file_copy(beside, folder, companions[i], buffer, bytes, err);
    }
    return status;
}

/* ---- documents */

static bool sink_ids(void *context, const uint32_t *ids, int64_t count)
{
    hr_tokens *tokens = context;
    tokens->sunk = tokens->sink(tokens->context, ids, count, tokens->err);
    return tokens->sunk == HR_OK;
}

static hr_status open_tokenizer(hr_tokens *opened, hr_region *region,
                                const hr_tokenizer_source *source, hr_error *err)
{
    void *tables = hr_region_take_raw(region, 1, source->table_bytes);
    opened->decoded = hr_region_take_raw(region, 1, DECODED_BYTES);
    HR_ASSERT(tables && opened->decoded);
    hr_region kept = hr_region_over(tables, source->table_bytes);
    const int64_t first = hr_round_up(region->used, 64);
    const hr_region rest = hr_region_over(region->base + first, region->bytes - first);
    const hr_status status = hr_tokenizer_place(&opened->tokenizer, &kept, rest, source,
                                                hr_cpu_detect(), err);
    if (status != HR_OK) return status;
    opened->decoder = (hr_decoder){ .tokenizer = opened->tokenizer, .skips_special = true };
    opened->window = hr_region_take_raw(region, 1, WINDOW_BYTES);
    return hr_encoder_place(&opened->encoder, region, opened->tokenizer, PIECE_BYTES, sink_ids,
                            opened, err);
}

hr_status hr_tokens_open(hr_tokens **tokens, void *memory, int64_t bytes, const char *path,
                         bool add_special, hr_tokens_sink *sink, void *context, hr_error *err)
{
    hr_tokenizer_source source;
    hr_status status = probe(&source, path, err);
    if (status != HR_OK) return status;
    const hr_word_level_source words = words_of(&source);
    const int64_t needed = facts_of(&source).bytes;
    if (bytes < needed)
        return hr_fail(err, HR_NO_FIT, "%s: needs %lld bytes, %lld are available", path,
                       (long long)needed, (long long)bytes);
    hr_region region = hr_region_over(memory, bytes);
    hr_tokens *opened = hr_region_take(&region, 1, sizeof *opened);
    HR_ASSERT(opened);
    *opened = (hr_tokens){ .sink = sink, .context = context, .add_special = add_special };
    status = source.words ? hr_word_level_open(&opened->words, &region, &words, err)
                          : open_tokenizer(opened, &region, &source, err);
    if (status == HR_OK) *tokens = opened;
    return status;
}

/* Moves the bytes that the encoder still needs to the front. */
static void compact(hr_tokens *t)
{
    const int64_t first = t->at - hr_min(t->at, hr_encoder_before(t->encoder));
    memmove(t->window, t->window + first, (size_t)(t->end - first));
    t->at -= first;
    t->end -= first;
}

static hr_status add_words(hr_tokens *tokens, hr_error *err)
{
    uint32_t ids[HR_WORD_LEVEL_AT_ONCE];
    for (int64_t count = HR_WORD_LEVEL_AT_ONCE; count == HR_WORD_LEVEL_AT_ONCE;) {
        hr_status status = hr_word_level_next(tokens->words, ids, &count, err);
        if (status == HR_OK && count) status = tokens->sink(tokens->context, ids, count, err);
        if (status != HR_OK) return status;
    }
    return HR_OK;
}

hr_status hr_tokens_add(hr_tokens *tokens, const uint8_t *text, int64_t bytes, bool ends,
                        const char *name, int64_t offset, hr_error *err)
{
    hr_error own;
    if (tokens->words) {
        hr_word_level_take(tokens->words, text, bytes, ends, name, offset);
        return add_words(tokens, err);
    }
    tokens->err = err;
    tokens->sunk = HR_OK;
    if (!tokens->begun) {
        const bool special = tokens->add_special && !tokens->omit_special;
        hr_encoder_begin(tokens->encoder, offset, special ? HR_SPECIAL_BEFORE : HR_SPECIAL_NONE);
        tokens->begun = true;
        tokens->at = tokens->end = 0;
    }
    for (int64_t done = 0;;) {
        compact(tokens);
        const int64_t part = hr_min(bytes - done, WINDOW_BYTES - tokens->end);
        memcpy(tokens->window + tokens->end, text + done, (size_t)part);
        tokens->end += part;
        done += part;
        const bool whole = ends && done == bytes;
        const int64_t before = tokens->at;
        const hr_status status = hr_encoder_take(tokens->encoder, tokens->window, tokens->at,
                                                 tokens->end, whole, &tokens->at, &own);
        if (tokens->sunk != HR_OK) return tokens->sunk;
        if (status != HR_OK) return hr_fail(err, status, "%s: %.400s", name, own.message);
        if (whole) tokens->begun = false;
        if (done == bytes) return HR_OK;
        if (part == 0 && tokens->at == before)
            return hr_fail(
                err, HR_CORRUPT,
                "%s: byte %lld: the pre-tokenizer finds no split in %d bytes: split the text "
                "there",
                name, (long long)(offset + done), PIECE_BYTES);
    }
}

void hr_tokens_omit_special(hr_tokens *tokens)
{
    tokens->omit_special = true;
}

void hr_tokens_discard(hr_tokens *tokens)
{
    tokens->begun = false;
    if (tokens->words) hr_word_level_discard(tokens->words);
}

int64_t hr_tokens_document_end(const hr_tokens *tokens)
{
    if (tokens->words) return hr_word_level_document_end(tokens->words);
    return hr_tokenizer_document_end(tokens->tokenizer);
}

int64_t hr_tokens_unknown(const hr_tokens *tokens)
{
    if (tokens->words) return hr_word_level_unknown(tokens->words);
    return tokens->tokenizer->kind == HR_BYTE_LEVEL_BPE ? -1 : tokens->tokenizer->bpe.unknown;
}

int64_t hr_tokens_count(const hr_tokens *tokens)
{
    return tokens->words ? hr_word_level_count(tokens->words) : tokens->tokenizer->ids;
}

const uint8_t *hr_tokens_text(const hr_tokens *tokens, int64_t id, int64_t *bytes)
{
    if (tokens->words) return hr_word_level_text(tokens->words, id, bytes);
    const hr_bpe *bpe = &tokens->tokenizer->bpe;
    *bytes = bpe->present[id] == HR_BPE_ABSENT ? 0 : hr_bpe_token_bytes(bpe, (uint32_t)id);
    if (bpe->falls_back && hr_byte_piece(bpe->text + bpe->text_at[id], *bytes) >= 0) *bytes = 1;
    return bpe->text + bpe->text_at[id];
}

bool hr_tokens_is_special_prefix(const hr_tokens *tokens, int64_t id)
{
    const hr_tokenizer *tokenizer = tokens->tokenizer;
    return !tokens->words && tokens->add_special && tokenizer->first_count &&
           tokenizer->first[0] == (uint32_t)id;
}

const char *hr_tokens_decode(hr_tokens *tokens, int64_t id, int64_t *bytes)
{
    const uint32_t one = (uint32_t)id;
    int64_t used;
    if (tokens->words) {
        *bytes = 0;
        if (id < 0 || id >= hr_word_level_count(tokens->words)) return "";
        return (const char *)hr_word_level_text(tokens->words, id, bytes);
    }
    if (id < 0) *bytes = hr_decoder_end(&tokens->decoder, tokens->decoded);
    else *bytes = hr_decoder_add(&tokens->decoder, &one, 1, tokens->decoded, DECODED_BYTES, &used);
    return (const char *)tokens->decoded;
}
