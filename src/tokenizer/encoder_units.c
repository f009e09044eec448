/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/encoder_units.c - splits text with U+2581 before spaces that no token crosses, so that
 * a text of any length is encoded unit by unit. */
#include "base/checked.h"
#include "tokenizer/encoding.h"

/* Outputs the ids of a unit. With fuse_unk, consecutive characters without a token become one
 * unknown token. */
static void put_unit_ids(hr_encoder *e, const uint32_t *ids, int64_t count)
{
    const hr_tokenizer *t = e->tokenizer;
    if (!t->fuses || t->bpe.falls_back) {
        hr_encoder_put_ids(e, ids, count);
        return;
    }
    for (int64_t i = 0, from = 0; i <= count; i++) {
        const bool unknown = i < count && ids[i] == (uint32_t)t->bpe.unknown;
        if (i == count || (unknown && e->after_unknown)) {
            hr_encoder_put_ids(e, ids + from, i - from);
            from = i + 1;
        }
        if (i < count) e->after_unknown = unknown;
    }
}

static hr_status encode_unit(hr_encoder *e, const uint8_t *text, int64_t bytes, int64_t readable,
                             hr_error *err)
{
    const uint32_t *ids;
    const hr_status status = bytes > e->piece_bytes ? hr_encoder_grow_pieces(e, bytes, err) : HR_OK;
    if (status != HR_OK) return status;
    const int64_t count = e->unigram ? hr_unigram_encode(e->unigram, text, bytes, &ids)
                                     : hr_bpe_encode(e->bpe, text, bytes, readable, &ids);
    put_unit_ids(e, ids, count);
    return HR_OK;
}

/* Encodes a unit, with a leading space if needed and a space for each U+2581. */
static hr_status put_unit(hr_encoder *e, const uint8_t *text, int64_t bytes, int64_t readable,
                          hr_error *err)
{
    const uint8_t *meta = memchr(text, 0xe2, (size_t)bytes);
    while (meta && (text + bytes - meta < 3 || !hr_is_metaspace(meta)))
        meta = memchr(meta + 1, 0xe2, (size_t)(text + bytes - meta - 1));
    if (!meta && !e->leads) return encode_unit(e, text, bytes, readable, err);
    while (bytes + 1 + HR_ENCODER_BEHIND > e->lead_bytes) {
        const hr_status status = hr_encoder_grow_buffer(e, HR_ENCODER_LEAD, &e->lead,
                                                        &e->lead_bytes, 0, err);
        if (status != HR_OK) return status;
    }
    int64_t count = 0;
    if (e->leads) e->lead[count++] = ' ';
    e->leads = false;
    for (int64_t i = 0; i < bytes;) {
        const bool is = bytes - i >= 3 && hr_is_metaspace(text + i);
        e->lead[count++] = is ? ' ' : text[i];
        i += is ? 3 : 1;
    }
    return encode_unit(e, e->lead, count, count + HR_ENCODER_BEHIND, err);
}

static inline bool is_space(const uint8_t *text, int64_t at, int64_t bytes)
{
    return text[at] == ' ' || (text[at] == 0xe2 && bytes - at >= 3 && hr_is_metaspace(text + at));
}

/* The end of the unit at `at`, not before `search`: the next space that no token crosses. -1: not
 * in this text. */
static int64_t unit_end(const hr_tokenizer *t, const uint8_t *text, int64_t at, int64_t search,
                        int64_t bytes)
{
    for (int64_t p = hr_max(at + 1, search); p < bytes; p++) {
        if ((text[p] != ' ' && text[p] != 0xe2) || !is_space(text, p, bytes)) continue;
        if (t->splits) return p;
        const bool meta = p - at >= 3 && hr_is_metaspace(text + p - 3);
        if (!t->joins[meta ? ' ' : text[p - 1]]) return p;
    }
    return -1;
}

/* Begins an independent split. `first`: it is at the start of the text. */
void hr_encoder_begin_split(hr_encoder *e, const uint8_t *text, int64_t bytes, bool first)
{
    const hr_tokenizer *t = e->tokenizer;
    const bool wanted = t->scheme == HR_METASPACE_ALWAYS ||
                        (t->scheme == HR_METASPACE_FIRST && first);
    e->leads = t->metaspace && wanted && !is_space(text, 0, bytes);
    e->after_unknown = false;
    e->unit_search = 0;
    if (e->unigram) hr_unigram_begin(e->unigram);
}

/* With the Metaspace option split, every unit is independent. */
static void begin_unit(hr_encoder *e)
{
    e->after_unknown = false;
    if (e->unigram) hr_unigram_begin(e->unigram);
}

/* Encodes the units of text [at, bytes). `ends`: the split ends there. */
hr_status hr_encoder_take_units(hr_encoder *e, const uint8_t *text, int64_t at, int64_t bytes,
                                int64_t readable, bool ends, int64_t *taken, hr_error *err)
{
    int64_t search = at + e->unit_search;
    while (at < bytes) {
        /* An incomplete U+2581 cannot occur, because windows end at a character boundary. */
        int64_t end = unit_end(e->tokenizer, text, at, search, bytes);
        if (end < 0 && !ends) break;
        if (end < 0) end = bytes;
        const hr_status status = put_unit(e, text + at, end - at, readable - at, err);
        if (status != HR_OK) return status;
        if (e->stopped) return hr_fail(err, HR_INTERRUPTED, "interrupted while encoding");
        if (e->tokenizer->splits) begin_unit(e);
        at = search = end;
    }
    e->unit_search = ends ? 0 : bytes - at;
    *taken = at;
    return HR_OK;
}
