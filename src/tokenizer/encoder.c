/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/encoder.c - the encoding pipeline: added tokens in raw text, normalization, added
 * tokens in normalized text, pieces, ids. Each stage processes the part of its input that later
 * text cannot change, and reports how far it got. */
#include "base/assert.h"
#include "base/checked.h"
#include "tokenizer/encoding.h"
#include "tokenizer/unicode.h"

enum { BESIDE = 4, NORMAL_SLACK = 64, LEAD_BYTES = 1 << 12 };

/* Whether text goes through the normalization buffer. Byte-level tokenizers have NFC or no
 * normalizer. */
static bool normalizes(const hr_tokenizer *tokenizer)
{
    return tokenizer->nfc || hr_normalizer_acts(&tokenizer->normalizer);
}

/* Bytes of the buffer for pieces that get a leading space, or a space for each U+2581. */
static int64_t lead_room(const hr_tokenizer *tokenizer, int64_t piece_bytes)
{
    return tokenizer->kind != HR_BYTE_LEVEL_BPE || tokenizer->prefix_space
               ? hr_max(piece_bytes, LEAD_BYTES) + 1 + HR_ENCODER_BEHIND
               : 0;
}

static int64_t workspace_bytes(const hr_tokenizer *tokenizer, int64_t piece_bytes)
{
    return tokenizer->kind == HR_UNIGRAM
               ? hr_unigram_workspace_bytes(&tokenizer->unigram, piece_bytes)
               : hr_bpe_workspace_bytes(&tokenizer->bpe, piece_bytes);
}

static hr_status place_walk(hr_encoder *e, hr_region *region, int64_t piece_bytes, hr_error *err)
{
    return e->tokenizer->kind == HR_UNIGRAM
               ? hr_unigram_workspace_place(&e->unigram, region, &e->tokenizer->unigram,
                                            piece_bytes, err)
               : hr_bpe_workspace_place(&e->bpe, region, &e->tokenizer->bpe, piece_bytes, err);
}

static int64_t normal_room(const hr_tokenizer *tokenizer, int64_t piece_bytes)
{
    return normalizes(tokenizer) ? 3 * hr_min(piece_bytes, 1 << 20) + piece_bytes + NORMAL_SLACK
                                 : 0;
}

int64_t hr_encoder_bytes(const hr_tokenizer *tokenizer, int64_t piece_bytes)
{
    return (int64_t)sizeof(hr_encoder) + workspace_bytes(tokenizer, piece_bytes) +
           hr_pretokenizer_cursor_bytes(tokenizer->pretokenizer) +
           normal_room(tokenizer, piece_bytes) +
           (tokenizer->nfc ? (int64_t)sizeof(hr_nfc_scratch) : 0) +
           hr_normalizing_bytes(&tokenizer->normalizer) + lead_room(tokenizer, piece_bytes) +
           8 * 64;
}

hr_status hr_encoder_place(hr_encoder **encoder, hr_region *region, const hr_tokenizer *tokenizer,
                           int64_t piece_bytes, hr_encoder_sink *sink, void *context, hr_error *err)
{
    hr_encoder *made = hr_region_take(region, 1, sizeof *made);
    if (!made)
        return hr_fail(err, HR_NO_FIT, "encoding: needs %lld bytes",
                       (long long)hr_encoder_bytes(tokenizer, piece_bytes));
    made->tokenizer = tokenizer;
    made->sink = sink;
    made->context = context;
    made->piece_bytes = tokenizer->kind == HR_UNIGRAM
                            ? piece_bytes
                            : hr_bpe_piece_bytes(&tokenizer->bpe, piece_bytes);
    made->raw.added = &tokenizer->raw;
    made->normalized.added = &tokenizer->normalized;
    made->normal_bytes = normal_room(tokenizer, piece_bytes);
    hr_status status = place_walk(made, region, piece_bytes, err);
    if (status == HR_OK)
        status = hr_normalizing_place(&made->norm, region, &tokenizer->normalizer, err);
    if (status == HR_OK)
        status = hr_pretokenizer_cursor_place(&made->cut, region, tokenizer->pretokenizer, err);
    if (status != HR_OK) return status;
    if (normalizes(tokenizer)) {
        made->normal = hr_region_take_raw(region, made->normal_bytes, 1);
        if (tokenizer->nfc) made->form = hr_region_take_raw(region, 1, sizeof *made->form);
        if (!made->normal || (tokenizer->nfc && !made->form))
            return hr_fail(err, HR_NO_FIT, "encoding: needs %lld bytes",
                           (long long)hr_encoder_bytes(tokenizer, piece_bytes));
    }
    if (lead_room(tokenizer, piece_bytes)) {
        made->lead_bytes = lead_room(tokenizer, piece_bytes);
        made->lead = hr_region_take_raw(region, made->lead_bytes, 1);
        if (!made->lead)
            return hr_fail(err, HR_NO_FIT, "encoding: needs %lld bytes",
                           (long long)hr_encoder_bytes(tokenizer, piece_bytes));
    }
    *encoder = made;
    return HR_OK;
}

void hr_encoder_may_grow(hr_encoder *encoder, hr_encoder_room *room)
{
    encoder->room = room;
}

int64_t hr_encoder_before(const hr_encoder *encoder)
{
    return hr_max(BESIDE, hr_pretokenizer_cursor_before(encoder->cut));
}

/* ---- ids */

void hr_encoder_begin(hr_encoder *encoder, int64_t position, hr_encoder_special special)
{
    encoder->in_segment = encoder->stopped = false;
    encoder->segment_before = encoder->level_before = 0;
    encoder->position = position;
    encoder->special = special;
    encoder->normal_at = encoder->normal_end = 0;
    encoder->raw.search = encoder->normalized.search = 0;
    encoder->id_count = 0;
    encoder->starts = true;
    encoder->after_unknown = false;
    encoder->unit_search = 0;
    if (encoder->norm) hr_normalizing_begin(encoder->norm);
    if (special != HR_SPECIAL_NONE)
        hr_encoder_put_ids(encoder, encoder->tokenizer->first, encoder->tokenizer->first_count);
}

/* ---- pieces */

static inline hr_status put_piece(hr_encoder *e, const uint8_t *text, int64_t bytes,
                                  int64_t readable, hr_error *err)
{
    const uint32_t *ids;
    const hr_status status = bytes > e->piece_bytes ? hr_encoder_grow_pieces(e, bytes, err) : HR_OK;
    if (status != HR_OK) return status;
    const int64_t count = hr_bpe_encode(e->bpe, text, bytes, readable, &ids);
    hr_encoder_put_ids(e, ids, count);
    return HR_OK;
}

/* Encodes the first piece of a segment with an added space. The text after it is split as a new
 * text, because no pattern that is used with this option looks back here. *taken is `at` if more
 * text is needed to find the end of the piece. */
static hr_status take_lead(hr_encoder *e, const uint8_t *text, int64_t at, int64_t bytes, bool ends,
                           int64_t *taken, hr_error *err)
{
    *taken = at;
    for (int64_t some = hr_min(bytes - at, 64);;) {
        int64_t count;
        e->lead[0] = ' ';
        memcpy(e->lead + 1, text + at, (size_t)some);
        hr_pretokenizer_cursor_begin(e->cut);
        hr_pretokenizer_cursor_window(e->cut, e->lead, 0, some + 1, ends && at + some == bytes);
        hr_status status = hr_pretokenizer_cursor_next(e->cut, e->pieces, 1, &count, err);
        if (status != HR_OK) return status;
        if (count) {
            const int64_t length = e->pieces[0].end;
            *taken = at + length - 1;
            e->in_segment = true;
            e->segment_before = 0;
            hr_pretokenizer_cursor_begin(e->cut);
            return put_piece(e, e->lead, length, length + HR_ENCODER_BEHIND, err);
        }
        if (at + some == bytes) return HR_OK;
        some = hr_min(bytes - at, 2 * some);
        while (status == HR_OK && some + 1 + HR_ENCODER_BEHIND > e->lead_bytes)
            status = hr_encoder_grow_buffer(e, HR_ENCODER_LEAD, &e->lead, &e->lead_bytes, 0, err);
        if (status != HR_OK) return status;
    }
}

/* Encodes the pieces of text [at, bytes): a segment or, without `ends`, the start of the rest of
 * one. */
static hr_status take_pieces(hr_encoder *e, const uint8_t *text, int64_t at, int64_t bytes,
                             int64_t readable, bool ends, int64_t *taken, hr_error *err)
{
    if (!e->in_segment) {
        if (at == bytes) return *taken = bytes, HR_OK;
        hr_pretokenizer_cursor_begin(e->cut);
        e->segment_before = 0;
        if (e->tokenizer->prefix_space && text[at] != ' ') {
            const hr_status status = take_lead(e, text, at, bytes, ends, taken, err);
            if (status != HR_OK || !e->in_segment) return status;
            at = *taken;
            if (at == bytes) return e->in_segment = !ends, HR_OK;
        }
    }
    const int64_t before = hr_min(e->segment_before,
                                  hr_min(at, hr_pretokenizer_cursor_before(e->cut)));
    const uint8_t *base = text + at - before;
    hr_pretokenizer_cursor_window(e->cut, base, before, bytes - at + before, ends);
    for (;;) {
        int64_t count;
        const hr_status status = hr_pretokenizer_cursor_next(e->cut, e->pieces, HR_ENCODER_PIECES,
                                                             &count, err);
        if (status != HR_OK) return status;
        if (!count) break;
        for (int64_t i = 0; i < count; i++) {
            const hr_piece piece = e->pieces[i];
            const uint8_t *first = base + piece.begin;
            const int64_t length = (int64_t)piece.end - piece.begin;
            hr_status made;
            if (e->tokenizer->kind == HR_BYTE_LEVEL_BPE) {
                made = put_piece(e, first, length, text + readable - first, err);
            } else {
                int64_t all;
                hr_encoder_begin_split(e, first, length,
                                       e->starts && e->segment_before == 0 && first == text + at);
                e->starts = false;
                made = hr_encoder_take_units(e, first, 0, length, text + readable - first, true,
                                             &all, err);
            }
            if (made != HR_OK) return made;
        }
        if (e->stopped) return hr_fail(err, HR_INTERRUPTED, "interrupted while encoding");
    }
    const int64_t done = ends ? bytes : at - before + hr_pretokenizer_cursor_done(e->cut);
    e->in_segment = !ends;
    e->segment_before += done - at;
    *taken = done;
    return HR_OK;
}

/* Encodes a segment as one split, without a pre-tokenizer. */
static hr_status take_segment(hr_encoder *e, const uint8_t *text, int64_t at, int64_t bytes,
                              int64_t readable, bool ends, int64_t *taken, hr_error *err)
{
    *taken = at;
    if (!e->in_segment) {
        if (at == bytes) return HR_OK;
        hr_encoder_begin_split(e, text + at, bytes - at, e->starts);
    }
    e->starts = false;
    e->in_segment = !ends;
    return hr_encoder_take_units(e, text, at, bytes, readable, ends, taken, err);
}

typedef hr_status stretch(hr_encoder *e, const uint8_t *text, int64_t at, int64_t bytes,
                          int64_t readable, bool ends, int64_t *taken, hr_error *err);

/* Matches added tokens in text [at, bytes) and passes the text between them to the next stage. */
static hr_status split(hr_encoder *e, hr_encoder_splitter *s, stretch *next, const uint8_t *text,
                       int64_t at, int64_t bytes, int64_t readable, bool ends, int64_t *taken,
                       hr_error *err)
{
    if (!s->added->count) return next(e, text, at, bytes, readable, ends, taken, err);
    int64_t search = at + s->search;
    for (;;) {
        const hr_added_part part = hr_added_next(s->added, text, at, search, bytes, ends);
        const bool last = part.token || (ends && part.begin >= bytes);
        int64_t done = at;
        hr_status status = HR_OK;
        if (part.begin > at || last)
            status = next(e, text, at, hr_max(at, part.begin), readable, last, &done, err);
        if (status != HR_OK) return status;
        if (!part.token) {
            *taken = ends ? bytes : done;
            s->search = ends ? 0 : part.search - done;
            return HR_OK;
        }
        hr_encoder_put_ids(e, &part.token->id, 1);
        e->starts = e->after_unknown = false;
        at = part.end;
        search = part.search;
    }
}

static hr_status take_normalized(hr_encoder *e, const uint8_t *text, int64_t at, int64_t bytes,
                                 int64_t readable, bool ends, int64_t *taken, hr_error *err)
{
    /* For these tokens the text begins after the last raw added token. */
    const int64_t before = hr_min(e->level_before, at), base = at - before;
    int64_t done = before;
    stretch *const next = e->tokenizer->kind == HR_BYTE_LEVEL_BPE ||
                                  hr_pretokenizer_how(e->tokenizer->pretokenizer, 0)
                              ? take_pieces
                              : take_segment;
    const hr_status status = split(e, &e->normalized, next, text + base, before, bytes - base,
                                   readable - base, ends, &done, err);
    if (status != HR_OK) return status;
    *taken = base + done;
    e->level_before = ends ? 0 : e->level_before + done - before;
    return HR_OK;
}

/* Removes consumed text from the buffer of normalized text, except the context that patterns
 * need. */
static void compact(hr_encoder *e)
{
    const int64_t kept = hr_min(e->normal_at, hr_encoder_before(e));
    const int64_t begin = e->normal_at - kept;
    memmove(e->normal, e->normal + begin, (size_t)(e->normal_end - begin));
    e->normal_at -= begin;
    e->normal_end -= begin;
}

/* Passes text through the normalizer into the buffer. */
static hr_status take_changed(hr_encoder *e, const uint8_t *text, int64_t at, int64_t bytes,
                              bool ends, int64_t *taken, hr_error *err)
{
    for (;;) {
        hr_normalized step = { 0, 0, true };
        const char *why = NULL;
        int64_t done;
        compact(e);
        if (e->normal_end < e->normal_bytes)
            why = hr_normalize(e->norm, text + at, bytes - at, ends, e->normal + e->normal_end,
                               e->normal_bytes - e->normal_end, &step);
        else step.done = false;
        if (why) return hr_fail(err, HR_CORRUPT, "byte %lld: %s", (long long)e->position, why);
        at += step.taken;
        e->normal_end += step.written;
        const bool all = ends && at == bytes && step.done;
        const hr_status status = take_normalized(e, e->normal, e->normal_at, e->normal_end,
                                                 e->normal_bytes, all, &done, err);
        if (status != HR_OK) return status;
        const bool moved = step.taken || step.written || done > e->normal_at;
        e->normal_at = done;
        if (all) {
            e->normal_at = e->normal_end = 0;
            hr_normalizing_begin(e->norm);
        }
        if (all || (!ends && step.done)) break;
        if (moved) continue;
        const hr_status grew = hr_encoder_grow_buffer(e, HR_ENCODER_NORMAL, &e->normal,
                                                      &e->normal_bytes, e->normal_end, err);
        if (grew != HR_OK) return grew;
    }
    *taken = at;
    return HR_OK;
}

/* Copies text that NFC may change into the buffer. Encodes other text in place. */
static hr_status take_raw(hr_encoder *e, const uint8_t *text, int64_t at, int64_t bytes,
                          int64_t readable, bool ends, int64_t *taken, hr_error *err)
{
    const bool empty = e->normal_at == e->normal_end;
    if (e->norm) return take_changed(e, text, at, bytes, ends, taken, err);
    if (!e->tokenizer->nfc) return take_normalized(e, text, at, bytes, readable, ends, taken, err);
    if (empty && !hr_pretokenizer_cursor_before(e->cut) && ends && !e->in_segment &&
        hr_nfc_stable(text + at, bytes - at))
        return take_normalized(e, text, at, bytes, readable, ends, taken, err);
    for (;;) {
        compact(e);
        int64_t read, written, done;
        if (!hr_nfc_compose(text + at, bytes - at, ends, e->normal + e->normal_end,
                            e->normal_bytes - e->normal_end, e->form, &read, &written))
            return hr_fail(err, HR_CORRUPT, "byte %lld: more than %d combining characters in a row",
                           (long long)e->position, HR_NFC_RUN_MAX);
        at += read;
        e->normal_end += written;
        const bool all = ends && at == bytes;
        const hr_status status = take_normalized(e, e->normal, e->normal_at, e->normal_end,
                                                 e->normal_bytes, all, &done, err);
        if (status != HR_OK) return status;
        const bool moved = read > 0 || done > e->normal_at;
        e->normal_at = done;
        if (all) e->normal_at = e->normal_end = 0;
        if (all || at == bytes) break;
        if (!moved && !ends && e->normal_end < e->normal_bytes / 2) break;
        if (moved) continue;
        const hr_status grew = hr_encoder_grow_buffer(e, HR_ENCODER_NORMAL, &e->normal,
                                                      &e->normal_bytes, e->normal_end, err);
        if (grew != HR_OK) return grew;
    }
    *taken = at;
    return HR_OK;
}

/* ---- UTF-8 */

/* The end of the valid UTF-8 from `at` on, at a character boundary. The rest is an incomplete
 * character, or invalid: then `wrong` is true. */
static int64_t valid(const uint8_t *text, int64_t at, int64_t bytes, bool whole, bool *wrong)
{
    *wrong = false;
    while (at < bytes) {
        uint64_t word;
        while (at + 8 <= bytes &&
               (memcpy(&word, text + at, 8), !(word & UINT64_C(0x8080808080808080))))
            at += 8;
        if (at == bytes) break;
        uint32_t point;
        const int64_t taken = hr_utf8_take(text + at, bytes - at, &point);
        if (taken == 1 && text[at] >= 0x80) {
            *wrong = whole || !hr_utf8_cut(text + at, bytes - at);
            break;
        }
        at += taken;
    }
    return at;
}

hr_status hr_encoder_take(hr_encoder *encoder, const uint8_t *text, int64_t at, int64_t bytes,
                          bool whole, int64_t *taken, hr_error *err)
{
    bool wrong;
    HR_ASSERT(at >= 0 && at <= bytes && bytes <= HR_PRETOKENIZER_WINDOW_MAX);
    const int64_t end = valid(text, at, bytes, whole, &wrong);
    if (wrong)
        return hr_fail(err, HR_CORRUPT, "byte %lld: not UTF-8",
                       (long long)(encoder->position + end - at));
    int64_t done = at;
    const hr_status status = split(encoder, &encoder->raw, take_raw, text, at, end, bytes, whole,
                                   &done, err);
    if (status != HR_OK) return status;
    encoder->position += done - at;
    *taken = done;
    if (!whole) return HR_OK;
    if (encoder->special == HR_SPECIAL_AROUND)
        hr_encoder_put_ids(encoder, encoder->tokenizer->last, encoder->tokenizer->last_count);
    hr_encoder_flush(encoder);
    return encoder->stopped ? hr_fail(err, HR_INTERRUPTED, "interrupted while encoding") : HR_OK;
}

int64_t hr_tokenizer_split_point(const hr_tokenizer *tokenizer, const uint8_t *text, int64_t least,
                                 int64_t most)
{
    const bool never = tokenizer->prefix_space || tokenizer->kind != HR_BYTE_LEVEL_BPE;
    for (int64_t p = never ? least : most; p > least; p--)
        if (hr_pretokenizer_splits_at(tokenizer->pretokenizer, text + p) &&
            hr_added_allows_cut(&tokenizer->raw, text[p - 1], text[p]) &&
            hr_added_allows_cut(&tokenizer->normalized, text[p - 1], text[p]))
            return p;
    return -1;
}
