/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/decoder.c - bytes of tokens, and a look at whether they are UTF-8. */
#include <string.h>

#include "tokenizer/encoder.h"
#include "tokenizer/unicode.h"

enum { REPLACED = 3 };

static uint8_t *replace(uint8_t *out)
{
    memcpy(out, "\xef\xbf\xbd", REPLACED);
    return out + REPLACED;
}

/* How many of these bytes, which are no character, become one U+FFFD: the beginning of a character
 * that they might have been, at least one. `more`: what follows may still make them one. */
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

/* Text behind what is held, made UTF-8. */
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
        /* What was held is a beginning, so all of it is taken. */
        decoder->held_bytes = 0;
        text += taken - had;
        bytes -= taken - had;
    }
    return out;
}

int64_t hr_decoder_add(hr_decoder *decoder, const uint32_t *ids, int64_t count, uint8_t *out,
                       int64_t room, int64_t *used)
{
    const hr_tokenizer *tokenizer = decoder->tokenizer;
    const hr_bpe *bpe = &tokenizer->bpe;
    uint8_t *end = out;
    int64_t i = 0;
    for (; i < count; i++) {
        const uint32_t id = ids[i];
        if (id >= (uint64_t)tokenizer->ids || bpe->present[id] == HR_BPE_ABSENT) continue;
        if (decoder->skips_special && tokenizer->marks[id] & HR_TOKENIZER_SPECIAL) continue;
        const int64_t bytes = hr_bpe_token_bytes(bpe, id);
        if (REPLACED * (bytes + 4) + 4 > room - (end - out)) break;
        const uint8_t *text = bpe->text + bpe->text_at[id];
        if (!tokenizer->joins) {
            end = add(decoder, text, bytes, end);
            continue;
        }
        if (decoder->begun) *end++ = ' ';
        decoder->begun = true;
        for (int64_t k = 0; k < bytes; k++) {
            const uint32_t point = bpe->present[id] == HR_BPE_PLAIN ? hr_byte_character(text[k])
                                                                    : text[k];
            if (point >= 0x80 && bpe->present[id] == HR_BPE_PLAIN)
                *end++ = (uint8_t)(0xc0 | point >> 6);
            *end++ = (uint8_t)(point >= 0x80 && bpe->present[id] == HR_BPE_PLAIN
                                   ? 0x80 | (point & 0x3f)
                                   : point);
        }
    }
    *used = i;
    return end - out;
}

int64_t hr_decoder_end(hr_decoder *decoder, uint8_t *out)
{
    uint8_t *end = out;
    if (decoder->held_bytes) end = replace(end);
    decoder->held_bytes = 0;
    decoder->begun = false;
    return end - out;
}
