/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/decoder.c - decodes ids to bytes and replaces invalid UTF-8. */
#include <string.h>

#include "tokenizer/encoder.h"
#include "tokenizer/unicode.h"

enum { REPLACED = 3, ROOM_FOR_RUN = 3 * HR_DECODER_RUN + 48 };

static uint8_t *replace(uint8_t *out)
{
    memcpy(out, "\xef\xbf\xbd", REPLACED);
    return out + REPLACED;
}

/* The number of bytes at an invalid sequence that become one U+FFFD: the longest prefix of a valid
 * character, at least one. `more`: out, following bytes may still complete the character. */
static int64_t subpart(const uint8_t *text, int64_t bytes, bool *more)
{
    const uint8_t c = text[0];
    const int64_t needs = c >= 0xf0 && c < 0xf5   ? 4
                          : c >= 0xe0 && c < 0xf0 ? 3
                          : c >= 0xc2 && c < 0xe0 ? 2
                                                  : 1;
    *more = false;
    if (needs == 1) return 1;
    if (bytes > 1) {
        const uint8_t d = text[1];
        const uint8_t least = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
        const uint8_t most = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
        if (d < least || d > most) return 1;
    }
    int64_t count = bytes > 1 ? 2 : 1;
    while (count < bytes && count < needs - 1 && (text[count] & 0xc0) == 0x80) count++;
    *more = count == bytes;
    return count;
}

/* Appends bytes to the incomplete character that is held, and writes valid UTF-8. */
static uint8_t *add(hr_decoder *decoder, const uint8_t *text, int64_t bytes, uint8_t *out)
{
    while (bytes || decoder->held_bytes) {
        uint32_t point;
        if (!decoder->held_bytes) {
            const int64_t taken = hr_utf8_take(text, bytes, &point);
            if (taken > 1 || text[0] < 0x80) {
                for (int64_t i = 0; i < taken; i++) *out++ = text[i];
                text += taken;
                bytes -= taken;
                continue;
            }
        }
        uint8_t near[8];
        int64_t count = decoder->held_bytes;
        const int64_t had = count;
        memcpy(near, decoder->held, 4);
        while (count < 4 && count - had < bytes) {
            near[count] = text[count - had];
            count++;
        }
        bool more;
        int64_t taken = hr_utf8_take(near, count, &point);
        if (taken > 1 || near[0] < 0x80) {
            for (int64_t i = 0; i < taken; i++) *out++ = near[i];
        } else {
            taken = subpart(near, count, &more);
            if (more && count - had == bytes) {
                memcpy(decoder->held, near, (size_t)count);
                decoder->held_bytes = (int32_t)count;
                return out;
            }
            out = replace(out);
        }
        /* What was held is a prefix of a character, so it is consumed completely. */
        decoder->held_bytes = 0;
        text += taken - had;
        bytes -= taken - had;
    }
    return out;
}

/* ---- tokens of characters */

/* Writes text after removing the leading spaces that the decoder Strip removes. */
static uint8_t *put(hr_decoder *d, const uint8_t *text, int64_t bytes, uint8_t *out)
{
    for (; bytes && !d->written && *text == ' ' && d->stripped < d->tokenizer->decoding.strips;
         text++, bytes--)
        d->stripped++;
    if (!bytes) return out;
    d->written = true;
    memcpy(out, text, (size_t)bytes);
    return out + bytes;
}

/* Writes the pending run of byte tokens. */
static uint8_t *end_run(hr_decoder *d, uint8_t *out)
{
    if (!d->run_bytes) return out;
    d->not_first = true;
    if (hr_utf8_valid(d->run, d->run_bytes)) out = put(d, d->run, d->run_bytes, out);
    else
        for (int32_t i = 0; i < d->run_bytes; i++)
            out = put(d, (const uint8_t *)"\xef\xbf\xbd", 3, out);
    d->run_bytes = 0;
    return out;
}

/* Writes the text of a token. `spaces`: a space in it stands for U+2581. */
static uint8_t *put_token(hr_decoder *d, const uint8_t *text, int64_t bytes, bool spaces,
                          uint8_t *out)
{
    const hr_decoding *how = &d->tokenizer->decoding;
    const bool drops = how->drops && !d->not_first;
    d->not_first = true;
    for (int64_t i = 0, taken; i < bytes; i += taken) {
        const bool three = bytes - i >= 3 && hr_is_metaspace(text + i);
        const bool meta = three || (spaces && text[i] == ' ');
        taken = three ? 3 : 1;
        if (!meta) out = put(d, text + i, 1, out);
        else if (!how->spaces) out = put(d, (const uint8_t *)"\xe2\x96\x81", 3, out);
        else if (!drops) out = put(d, (const uint8_t *)" ", 1, out);
    }
    return out;
}

/* Decodes like the package tokenizers. */
static uint8_t *add_piece(hr_decoder *d, const uint8_t *text, int64_t bytes, bool spaces,
                          uint8_t *out)
{
    const int32_t byte = d->tokenizer->decoding.falls_back ? hr_byte_piece(text, bytes) : -1;
    if (byte < 0) return put_token(d, text, bytes, spaces, end_run(d, out));
    if (d->run_bytes == HR_DECODER_RUN) out = end_run(d, out);
    d->run[d->run_bytes++] = (uint8_t)byte;
    return out;
}

/* Writes the bytes that are held: characters, and U+FFFD for each invalid byte. Without `all`, a
 * possible prefix of a character stays. */
static uint8_t *put_held(hr_decoder *d, bool all, uint8_t *out)
{
    while (d->held_bytes) {
        uint32_t point;
        if (!all && hr_utf8_cut(d->held, d->held_bytes)) break;
        const int64_t taken = hr_utf8_take(d->held, d->held_bytes, &point);
        const bool none = taken == 1 && d->held[0] >= 0x80;
        out = put(d, none ? (const uint8_t *)"\xef\xbf\xbd" : d->held, none ? 3 : taken, out);
        d->held_bytes -= (int32_t)taken;
        memmove(d->held, d->held + taken, (size_t)d->held_bytes);
    }
    return out;
}

/* Decodes like SentencePiece. */
static uint8_t *add_sentencepiece(hr_decoder *d, uint32_t id, const uint8_t *text, int64_t bytes,
                                  bool spaces, uint8_t *out)
{
    const hr_tokenizer *t = d->tokenizer;
    const hr_normalize_sentencepiece *spec = &t->normalizer.spec;
    const int32_t byte = t->bpe.falls_back ? hr_byte_piece(text, bytes) : -1;
    if (byte >= 0 && t->bpe.fallback[byte] == (int32_t)id) {
        d->held[d->held_bytes++] = (uint8_t)byte;
        return put_held(d, false, out);
    }
    out = put_held(d, true, out);
    const bool begins = !d->past_space && !d->written;
    if (!begins) d->past_space = true;
    if (t->marks[id] & HR_TOKENIZER_SPECIAL) return out;
    if ((int32_t)id == t->bpe.unknown) return put(d, t->unknown_text, t->unknown_text_bytes, out);
    if (begins && bytes && (spec->dummy_prefix || spec->remove_extra)) {
        const bool three = bytes >= 3 && hr_is_metaspace(text);
        if (three || (spaces && text[0] == ' ')) {
            text += three ? 3 : 1;
            bytes -= three ? 3 : 1;
            d->past_space = !spec->remove_extra;
        }
    }
    return put_token(d, text, bytes, spaces, out);
}

static uint8_t *add_joined(hr_decoder *d, const uint8_t *text, int64_t bytes, bool plain,
                           uint8_t *out)
{
    if (d->begun) *out++ = ' ';
    d->begun = true;
    if (d->tokenizer->kind != HR_BYTE_LEVEL_BPE) return put_token(d, text, bytes, plain, out);
    for (int64_t k = 0; k < bytes; k++) {
        const uint32_t point = plain ? hr_byte_character(text[k]) : text[k];
        if (point >= 0x80 && plain) *out++ = (uint8_t)(0xc0 | point >> 6);
        *out++ = (uint8_t)(point >= 0x80 && plain ? 0x80 | (point & 0x3f) : point);
    }
    return out;
}

/* The text of an id. `plain`: a space in it stands for U+2581, bytes for
 * their characters. */
static const uint8_t *text_of(const hr_tokenizer *t, uint32_t id, int64_t *bytes, bool *plain)
{
    int32_t i = 0;
    *bytes = hr_bpe_token_bytes(&t->bpe, id);
    *plain = t->bpe.present[id] == HR_BPE_PLAIN;
    if (!(t->marks[id] & HR_TOKENIZER_RENAMED)) return t->bpe.text + t->bpe.text_at[id];
    while (t->added[i].id != id) i++;
    *bytes = t->renamed[i].bytes;
    *plain = t->normalizer.spaces_back;
    return t->renamed[i].text;
}

int64_t hr_decoder_add(hr_decoder *decoder, const uint32_t *ids, int64_t count, uint8_t *out,
                       int64_t room, int64_t *used)
{
    const hr_tokenizer *tokenizer = decoder->tokenizer;
    const hr_bpe *bpe = &tokenizer->bpe;
    const hr_decoding_kind kind = tokenizer->decoding.kind;
    const int64_t beside = kind == HR_DECODING_PIECES ? ROOM_FOR_RUN : 48;
    uint8_t *end = out;
    int64_t i = 0;
    for (; i < count; i++) {
        const uint32_t id = ids[i];
        if (id >= (uint64_t)tokenizer->ids || bpe->present[id] == HR_BPE_ABSENT) continue;
        /* Like the reference, does not treat a special token as special if normalization changes
         * its text. */
        const uint8_t special = tokenizer->marks[id] &
                                (HR_TOKENIZER_SPECIAL | HR_TOKENIZER_RENAMED);
        if (decoder->skips_special && special == HR_TOKENIZER_SPECIAL) continue;
        int64_t bytes;
        bool plain;
        const uint8_t *text = text_of(tokenizer, id, &bytes, &plain);
        if (REPLACED * bytes + beside > room - (end - out)) break;
        if (kind == HR_DECODING_BYTES) end = add(decoder, text, bytes, end);
        else if (kind == HR_DECODING_JOINED) end = add_joined(decoder, text, bytes, plain, end);
        else if (kind == HR_DECODING_PIECES) end = add_piece(decoder, text, bytes, plain, end);
        else end = add_sentencepiece(decoder, id, text, bytes, plain, end);
    }
    *used = i;
    return end - out;
}

int64_t hr_decoder_end(hr_decoder *decoder, uint8_t *out)
{
    uint8_t *end = out;
    if (decoder->tokenizer->decoding.kind == HR_DECODING_SENTENCEPIECE)
        end = put_held(decoder, true, end);
    else if (decoder->held_bytes) end = replace(end);
    end = end_run(decoder, end);
    *decoder = (hr_decoder){ .tokenizer = decoder->tokenizer,
                             .skips_special = decoder->skips_special };
    return end - out;
}
