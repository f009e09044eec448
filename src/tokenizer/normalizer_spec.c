/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/normalizer_spec.c - SentencePiece's normalizer: the longest charsmap rule at each
 * position, and spaces as in normalizer_spec. Outputs a space for each U+2581. */
#include <string.h>

#include "base/checked.h"
#include "tokenizer/normalizing.h"
#include "tokenizer/unicode.h"

/* The replacement `text` [bytes] for the first `taken` bytes of the input. */
typedef struct {
    const uint8_t *text;
    int64_t bytes, taken;
} prefix;

/* The length of the longest user-defined symbol at text [bytes]; 0: none. `more`: out, more text
 * could make a longer match. */
static int64_t symbol_at(const hr_added *symbols, const uint8_t *text, int64_t bytes, bool *more)
{
    if (!symbols->count) return 0;
    for (int32_t i = symbols->begin[text[0]]; i < symbols->begin[text[0] + 1]; i++) {
        const hr_added_token *token = &symbols->tokens[i];
        const int64_t there = hr_min(token->bytes, bytes);
        if (memcmp(token->text, text, (size_t)there)) continue;
        if (there == token->bytes) return there;
        *more = true;
    }
    return 0;
}

/* Finds the next replacement. Returns false if more text could change it. */
static bool next_prefix(const hr_normalize_sentencepiece *spec, const uint8_t *text, int64_t bytes,
                        bool whole, prefix *p)
{
    bool more = false, longer = false;
    uint32_t point;
    const int64_t symbol = symbol_at(spec->user_defined, text, bytes, &more);
    if (more && !whole) return false;
    *p = (prefix){ text, symbol, symbol };
    if (symbol) return true;
    hr_charsmap_match match = { 0, NULL, 0 };
    if (spec->map.count) match = hr_charsmap_longest(&spec->map, text, bytes, &longer);
    if (longer && !whole) return false;
    const int64_t taken = hr_utf8_take(text, bytes, &point);
    *p = match.taken ? (prefix){ match.text, match.bytes, match.taken }
                     : (prefix){ text, taken, taken };
    return true;
}

/* Writes a replacement. Holds spaces back, because the text may end after them. */
static void write(hr_normalizing *w, const prefix *p, uint8_t *out, int64_t *written)
{
    for (int64_t i = 0; i < p->bytes;) {
        const bool meta = p->bytes - i >= 3 && hr_is_metaspace(p->text + i);
        if ((meta || p->text[i] == ' ') && w->normalizer->spec.remove_extra) {
            w->spaces++;
        } else {
            for (; w->spaces; w->spaces--) out[(*written)++] = ' ';
            out[(*written)++] = meta ? ' ' : p->text[i];
        }
        i += meta ? 3 : 1;
    }
}

const char *hr_normalize_sentencepiece_text(hr_normalizing *w, const uint8_t *text, int64_t bytes,
                                            bool whole, uint8_t *out, int64_t room,
                                            hr_normalized *result)
{
    const hr_normalize_sentencepiece *spec = &w->normalizer->spec;
    int64_t at = 0, written = 0;
    bool done = true;
    while (at < bytes) {
        prefix p;
        if (!next_prefix(spec, text + at, bytes - at, whole, &p)) break;
        done = p.bytes + w->spaces + 2 <= room - written;
        if (!done) break;
        at += p.taken;
        if (!w->begun) {
            if (spec->remove_extra && p.bytes == 1 && p.text[0] == ' ') continue;
            if (spec->dummy_prefix && spec->remove_extra) w->spaces++;
            else if (spec->dummy_prefix) out[written++] = ' ';
            w->begun = true;
            w->space_before = spec->remove_extra;
        }
        while (w->space_before && p.bytes && p.text[0] == ' ') p.text++, p.bytes--;
        if (p.bytes) w->space_before = spec->remove_extra && p.text[p.bytes - 1] == ' ';
        write(w, &p, out, &written);
    }
    *result = (hr_normalized){ at, written, done };
    return NULL;
}
