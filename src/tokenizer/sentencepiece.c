/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/sentencepiece.c - a reader of Protocol Buffers fields that checks every length, and the
 * order of pieces by score. */
#include "tokenizer/sentencepiece.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "tokenizer/unicode.h"

enum {
    NORMAL = 1,
    UNKNOWN,
    CONTROL,
    USER_DEFINED,
    UNUSED,
    BYTE,
    UNIGRAM = 1,
    BPE = 2,
    PIECE_BYTES_MAX = 8000,
    BUFFER_BYTES = 1 << 15
};

typedef struct {
    const uint8_t *at, *end;
    bool wrong;
} cursor;

typedef struct {
    uint64_t number; /* field number */
    int32_t wire;
    uint64_t value;      /* of a varint or a fixed32 */
    const uint8_t *text; /* [bytes] of a length-delimited field */
    int64_t bytes;
} field;

static uint64_t varint(cursor *c)
{
    uint64_t value = 0;
    for (int32_t shift = 0; shift < 70; shift += 7) {
        if (c->at == c->end) break;
        const uint8_t byte = *c->at++;
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
    c->wrong = true;
    return 0;
}

/* Reads the next field; false: none left, or invalid. */
static bool next_field(cursor *c, field *f)
{
    if (c->wrong || c->at == c->end) return false;
    const uint64_t tag = varint(c);
    *f = (field){ .number = tag >> 3, .wire = (int32_t)(tag & 7) };
    if (f->wire == 0) {
        f->value = varint(c);
    } else if (f->wire == 2) {
        const uint64_t bytes = varint(c);
        if (bytes > (uint64_t)(c->end - c->at)) c->wrong = true;
        if (c->wrong) return false;
        f->text = c->at;
        f->bytes = (int64_t)bytes;
        c->at += bytes;
    } else if (f->wire == 5 || f->wire == 1) {
        const int64_t bytes = f->wire == 5 ? 4 : 8;
        if (bytes > c->end - c->at) c->wrong = true;
        if (c->wrong) return false;
        memcpy(&f->value, c->at, (size_t)bytes);
        c->at += bytes;
    } else {
        c->wrong = true;
    }
    if (!f->number) c->wrong = true;
    return !c->wrong;
}

static cursor inside(const field *f)
{
    return (cursor){ f->text, f->text + f->bytes, false };
}

static hr_status damaged(const char *path, hr_error *err)
{
    return hr_fail(err, HR_CORRUPT, HR_OF_FILE "not a SentencePiece model: its fields are corrupt",
                   path);
}

typedef struct {
    const uint8_t *text;
    int64_t bytes;
    float score;
    uint64_t type;
} piece;

static bool read_piece(const field *of, piece *p)
{
    cursor c = inside(of);
    field f;
    *p = (piece){ .text = of->text, .type = NORMAL };
    while (next_field(&c, &f)) {
        if (f.number == 1 && f.wire == 2) {
            p->text = f.text;
            p->bytes = f.bytes;
        } else if (f.number == 2 && f.wire == 5) {
            const uint32_t bits = (uint32_t)f.value;
            memcpy(&p->score, &bits, sizeof bits);
        } else if (f.number == 3 && f.wire == 0) {
            p->type = f.value;
        }
    }
    return !c.wrong;
}

/* ---- the first pass */

bool hr_sentencepiece_is(const char *path)
{
    int file = -1;
    int64_t bytes;
    uint8_t first[3] = { 0 };
    hr_error err;
    bool is = hr_file_open(path, &file, &bytes, &err) == HR_OK && bytes >= 3 &&
              hr_file_read(file, path, 0, first, 3, &err) == HR_OK;
    hr_file_close(&file);
    return is && first[0] == 0x0a && first[1] >= 2 && first[2] == 0x0a;
}

typedef struct {
    int64_t pieces, halves, longest;
} counts;

/* Reads the header of a field at `offset` of the file and, for a piece, its message. */
static hr_status count_field(const char *path, cursor *c, counts *found, bool *whole,
                             int64_t *skipped, hr_error *err)
{
    const uint8_t *begin = c->at;
    const uint64_t tag = varint(c);
    uint64_t bytes = 0;
    *skipped = 0;
    if ((tag & 7) == 0) varint(c);
    else if ((tag & 7) == 5) bytes = 4;
    else if ((tag & 7) == 1) bytes = 8;
    else if ((tag & 7) == 2) bytes = varint(c);
    else c->wrong = true;
    if (c->wrong || bytes > INT32_MAX) return damaged(path, err);
    if (tag != (1 << 3 | 2)) {
        *skipped = (int64_t)bytes;
        return HR_OK;
    }
    found->pieces++;
    if (bytes > PIECE_BYTES_MAX + 64)
        return hr_fail(err, HR_CORRUPT, HR_OF_FILE "piece %lld has %lld bytes; the limit is %d",
                       path, (long long)found->pieces - 1, (long long)bytes, PIECE_BYTES_MAX - 1);
    if ((int64_t)bytes > c->end - c->at) {
        c->at = begin;
        found->pieces--;
        *whole = false;
        return HR_OK;
    }
    found->halves += hr_max(0, (int64_t)bytes - 3);
    c->at += bytes;
    return HR_OK;
}

hr_status hr_sentencepiece_count(hr_tokenizer_source *source, hr_error *err)
{
    uint8_t buffer[BUFFER_BYTES];
    counts found = { 0 };
    int file = -1;
    int64_t bytes = 0;
    hr_status status = hr_file_open(source->path, &file, &bytes, err);
    for (int64_t at = 0; status == HR_OK && at < bytes;) {
        const int64_t count = hr_min(bytes - at, BUFFER_BYTES);
        status = hr_file_read(file, source->path, at, buffer, count, err);
        cursor c = { buffer, buffer + count, false };
        bool whole = true;
        int64_t skipped = 0;
        /* The last fields of a buffer are read again with the next buffer, except at the end of the
         * file. */
        while (status == HR_OK && whole && !skipped && c.at < c.end &&
               (c.end - c.at > 32 || at + count == bytes))
            status = count_field(source->path, &c, &found, &whole, &skipped, err);
        if (status == HR_OK && !whole && c.at == buffer) status = damaged(source->path, err);
        at += c.at - buffer + skipped;
        if (status == HR_OK && at > bytes) status = damaged(source->path, err);
    }
    hr_file_close(&file);
    if (status != HR_OK) return status;
    if (!found.pieces || found.pieces > HR_BPE_IDS_MAX || bytes > INT32_MAX)
        return hr_fail(err, HR_CORRUPT,
                       HR_OF_FILE "%lld pieces in %lld bytes; the limit is %d pieces", source->path,
                       (long long)found.pieces, (long long)bytes, HR_BPE_IDS_MAX);
    source->outline.bytes = bytes;
    source->outline.added_count = found.pieces;
    source->size = (hr_bpe_size){ .ids = found.pieces,
                                  .pairs = hr_min(hr_max(found.halves, found.pieces),
                                                  HR_BPE_RANKS_MAX - 2),
                                  .text_bytes = bytes,
                                  .whole_first = true };
    return HR_OK;
}

/* ---- reading */

typedef struct {
    hr_tokenizer *tokenizer;
    const hr_tokenizer_source *source;
    hr_keys *keys;
    hr_added_token *added;
    int32_t *added_count;
    float *scores;  /* [ids] */
    uint8_t *types; /* [ids] */
    int64_t count;
    uint64_t model;
    bool falls_back;
    int32_t unknown;
} reading;

static hr_status refuse(const reading *r, const char *what, hr_error *err)
{
    return hr_fail(err, HR_CORRUPT, HR_OF_FILE "%s, which is not supported", r->source->path, what);
}

static hr_status read_trainer(reading *r, const field *of, hr_error *err)
{
    cursor c = inside(of);
    field f;
    while (next_field(&c, &f)) {
        if (f.wire == 0 && f.number == 3) r->model = f.value;
        if (f.wire == 0 && f.number == 24 && f.value)
            return refuse(r, "trainer_spec.treat_whitespace_as_suffix is set", err);
        if (f.wire == 0 && f.number == 35) r->falls_back = f.value != 0;
        if (f.wire != 2 || f.number != 44) continue;
        hr_tokenizer *t = r->tokenizer;
        if (f.bytes > (int64_t)sizeof t->unknown_text)
            return refuse(r, "trainer_spec.unk_surface is longer than 32 bytes", err);
        memcpy(t->unknown_text, f.text, (size_t)f.bytes);
        t->unknown_text_bytes = (int32_t)f.bytes;
    }
    return c.wrong ? damaged(r->source->path, err) : HR_OK;
}

static hr_status read_normalizer(reading *r, const field *of, hr_region *tables, hr_error *err)
{
    hr_normalize_sentencepiece *spec = &r->tokenizer->normalizer.spec;
    cursor c = inside(of);
    field f;
    while (next_field(&c, &f)) {
        if (f.wire == 2 && f.number == 2 && f.bytes && !spec->map.count) {
            const char *why = hr_charsmap_place(&spec->map, tables, f.text, f.bytes);
            if (why)
                return hr_fail(err, HR_CORRUPT,
                               HR_OF_FILE "normalizer_spec.precompiled_charsmap: %s",
                               r->source->path, why);
        }
        if (f.wire == 0 && f.number == 3) spec->dummy_prefix = f.value != 0;
        if (f.wire == 0 && f.number == 4) spec->remove_extra = f.value != 0;
        if (f.wire == 0 && f.number == 5 && !f.value)
            return refuse(r, "normalizer_spec.escape_whitespaces is false", err);
    }
    return c.wrong ? damaged(r->source->path, err) : HR_OK;
}

static hr_status read_denormalizer(reading *r, const field *of, hr_error *err)
{
    cursor c = inside(of);
    field f;
    while (next_field(&c, &f))
        if (f.number == 2 && f.wire == 2 && f.bytes)
            return refuse(r, "denormalizer_spec.precompiled_charsmap is set", err);
    return c.wrong ? damaged(r->source->path, err) : HR_OK;
}

static hr_status add_piece(reading *r, const field *of, hr_error *err)
{
    piece p;
    if (!read_piece(of, &p)) return damaged(r->source->path, err);
    const int64_t id = r->count++;
    const char *why = NULL;
    if (!p.bytes) why = "it is empty";
    else if (p.bytes >= PIECE_BYTES_MAX) why = "it is too long";
    else if (memchr(p.text, 0, (size_t)p.bytes)) why = "it contains a zero byte";
    else if (!hr_utf8_valid(p.text, p.bytes)) why = "it is not UTF-8";
    else if (!isfinite(p.score)) why = "its score is not finite";
    else if (p.type < NORMAL || p.type > BYTE) why = "its type is unknown";
    else if (p.type == UNKNOWN && r->unknown >= 0) why = "there are two pieces of type UNKNOWN";
    else why = hr_keys_add(r->keys, (const char *)p.text, p.bytes, id);
    const int32_t byte = hr_byte_piece(p.text, p.bytes);
    if (!why && p.type == BYTE && byte < 0) why = "it has type BYTE but is not of the form <0x41>";
    if (why)
        return hr_fail(err, HR_CORRUPT, HR_OF_FILE "piece %lld, \"%.*s\": %s", r->source->path,
                       (long long)id, (int)hr_min(p.bytes, 80), (const char *)p.text, why);
    r->scores[id] = p.score;
    r->types[id] = (uint8_t)p.type;
    if (p.type == UNKNOWN) r->unknown = (int32_t)id;
    if (p.type == BYTE) r->tokenizer->bpe.fallback[byte] = (int32_t)id;
    if (p.type == USER_DEFINED)
        r->added[(*r->added_count)++] = (hr_added_token){
            .text = p.text, .bytes = (int32_t)p.bytes, .id = (uint32_t)id, .normalized = true
        };
    return HR_OK;
}

/* Shell sort by descending score, then by id. */
static void sort_by_score(int32_t *ids, const float *scores, int32_t count)
{
    for (int32_t gap = count / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) {
        for (int32_t i = gap; i < count; i++) {
            const int32_t moved = ids[i];
            int32_t at = i;
            for (; at >= gap && (scores[ids[at - gap]] < scores[moved] ||
                                 (scores[ids[at - gap]] == scores[moved] && ids[at - gap] > moved));
                 at -= gap)
                ids[at] = ids[at - gap];
            ids[at] = moved;
        }
    }
}

/* Sorts pieces in merge order. Equal scores share one rank. */
static hr_status rank_pieces(reading *r, hr_region *scratch, hr_error *err)
{
    hr_bpe *bpe = &r->tokenizer->bpe;
    int32_t *ids = hr_region_take_raw(scratch, r->count + 1, 4);
    int32_t *ranks = hr_region_take_raw(scratch, r->count + 1, 4);
    int32_t count = 0;
    if (!ids || !ranks) return hr_fail(err, HR_NO_FIT, "tokenizer tables: the region is too small");
    for (int32_t id = 0; id < r->count; id++)
        if (r->types[id] == NORMAL) ids[count++] = id;
    sort_by_score(ids, r->scores, count);
    for (int32_t i = 0; i < count; i++) {
        ranks[i] = i ? ranks[i - 1] + (r->scores[ids[i]] != r->scores[ids[i - 1]]) : 0;
        bpe->ties |= i > 0 && ranks[i] == ranks[i - 1];
    }
    bpe->by_score = ids;
    bpe->score_ranks = ranks;
    bpe->scored = count;
    return HR_OK;
}

/* SentencePiece merges characters that are not pieces. This implementation cannot. */
static hr_status check_characters(const reading *r, hr_error *err)
{
    uint32_t point;
    for (int64_t id = 0; id < r->count; id++) {
        const uint8_t *text = (const uint8_t *)r->keys->text + r->keys->at[id];
        const int64_t bytes = r->keys->bytes[id];
        if (r->types[id] == UNUSED) return refuse(r, "a BPE model with pieces of type UNUSED", err);
        for (int64_t p = 0, taken; r->types[id] == NORMAL && p < bytes; p += taken) {
            taken = hr_utf8_take(text + p, bytes - p, &point);
            const int32_t one = hr_keys_find(r->keys, (const char *)text + p, taken, "", 0);
            if (one >= 0 && (r->types[one] == NORMAL || r->types[one] == USER_DEFINED)) continue;
            return hr_fail(err, HR_CORRUPT,
                           HR_OF_FILE "piece %lld, \"%.*s\", contains a character that is not a "
                                      "piece, which is not supported",
                           r->source->path, (long long)id, (int)hr_min(bytes, 80),
                           (const char *)text);
        }
    }
    return HR_OK;
}

static void set_scores(reading *r, double *scores)
{
    hr_unigram *unigram = &r->tokenizer->unigram;
    float least = 0;
    bool any = false;
    for (int64_t id = 0; id < r->count; id++) {
        /* SentencePiece gives user-defined symbols this score, so that they always win. */
        scores[id] = r->types[id] == USER_DEFINED ? (float)(0.1 * (r->keys->bytes[id] - 1))
                                                  : r->scores[id];
        if (r->types[id] != NORMAL) continue;
        least = any ? fminf(least, r->scores[id]) : r->scores[id];
        any = true;
    }
    *unigram = (hr_unigram){ &r->tokenizer->bpe, scores, least - 10.0f, true };
}

/* Sets the flags of each id, and the encoding of characters without a piece. */
static hr_status finish(reading *r, hr_region *tables, hr_region *scratch, hr_error *err)
{
    hr_tokenizer *t = r->tokenizer;
    hr_bpe *bpe = &t->bpe;
    if (r->model != UNIGRAM && r->model != BPE)
        return refuse(r,
                      r->model == 3   ? "model_type is WORD"
                      : r->model == 4 ? "model_type is CHAR"
                                      : "model_type is not UNIGRAM or BPE",
                      err);
    bpe->unknown = r->unknown;
    bpe->falls_back = r->falls_back;
    if (r->unknown < 0 && !r->falls_back)
        return hr_fail(err, HR_CORRUPT, HR_OF_FILE "there is no piece of type UNKNOWN",
                       r->source->path);
    for (int32_t byte = 0; r->falls_back && byte < 256; byte++)
        if (bpe->fallback[byte] < 0)
            return hr_fail(err, HR_CORRUPT,
                           HR_OF_FILE "trainer_spec.byte_fallback is set but byte %d has no piece",
                           r->source->path, byte);
    for (int64_t id = 0; id < r->count; id++) {
        const uint8_t type = r->types[id];
        const bool user = type == USER_DEFINED && r->model == UNIGRAM;
        if (type != NORMAL && !user) t->marks[id] |= HR_TOKENIZER_OUTSIDE;
        if (type == CONTROL) t->marks[id] |= HR_TOKENIZER_SPECIAL;
    }
    t->kind = r->model == UNIGRAM ? HR_UNIGRAM : HR_CHARACTER_BPE;
    if (r->model == BPE) {
        const hr_status status = check_characters(r, err);
        return status == HR_OK ? rank_pieces(r, scratch, err) : status;
    }
    double *scores = hr_region_take_raw(tables, r->count, 8);
    if (!scores) return hr_fail(err, HR_NO_FIT, "tokenizer tables: the region is too small");
    set_scores(r, scores);
    return HR_OK;
}

hr_status hr_sentencepiece_read(hr_tokenizer *tokenizer, const hr_tokenizer_source *source,
                                char *text, hr_keys *keys, hr_added_token *added,
                                int32_t *added_count, hr_region *tables, hr_region *scratch,
                                hr_error *err)
{
    static const char surface[] = " \xe2\x81\x87 ";
    reading r = { .tokenizer = tokenizer,
                  .source = source,
                  .keys = keys,
                  .added = added,
                  .added_count = added_count,
                  .scores = hr_region_take_raw(scratch, source->size.ids + 1, 4),
                  .types = hr_region_take_raw(scratch, source->size.ids + 1, 1),
                  .model = UNIGRAM,
                  .unknown = -1 };
    if (!r.scores || !r.types)
        return hr_fail(err, HR_NO_FIT, "tokenizer tables: the region is too small");
    tokenizer->normalizer.sentencepiece = true;
    tokenizer->normalizer.spec = (hr_normalize_sentencepiece){
        .dummy_prefix = true, .remove_extra = true, .user_defined = &tokenizer->symbols
    };
    tokenizer->decoding.kind = HR_DECODING_SENTENCEPIECE;
    tokenizer->decoding.spaces = true;
    memcpy(tokenizer->unknown_text, surface, sizeof surface - 1);
    tokenizer->unknown_text_bytes = sizeof surface - 1;
    for (int32_t byte = 0; byte < 256; byte++) tokenizer->bpe.fallback[byte] = -1;
    const uint8_t *begin = (const uint8_t *)text;
    cursor c = { begin, begin + source->outline.bytes, false };
    field f;
    hr_status status = HR_OK;
    while (status == HR_OK && next_field(&c, &f)) {
        if (f.wire != 2) continue;
        if (f.number == 1 && r.count == source->size.ids) return damaged(source->path, err);
        if (f.number == 1) status = add_piece(&r, &f, err);
        else if (f.number == 2) status = read_trainer(&r, &f, err);
        else if (f.number == 3) status = read_normalizer(&r, &f, tables, err);
        else if (f.number == 5) status = read_denormalizer(&r, &f, err);
    }
    if (status == HR_OK && (c.wrong || r.count != source->size.ids))
        status = damaged(source->path, err);
    return status == HR_OK ? finish(&r, tables, scratch, err) : status;
}
