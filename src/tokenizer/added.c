/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/added.c - matches the leftmost added token, the longest at a position, and applies
 * single_word, lstrip and rstrip. */
#include "tokenizer/added.h"

#include <emmintrin.h>
#include <string.h>

#include "base/checked.h"
#include "tokenizer/unicode.h"

/* Sort order: first byte, then longer first. Shell sort suffices, because there are few tokens. */
static bool comes_before(const hr_added_token *a, const hr_added_token *b)
{
    if (a->text[0] != b->text[0]) return a->text[0] < b->text[0];
    return a->bytes > b->bytes;
}

void hr_added_over(hr_added *added, hr_added_token *tokens, int32_t count)
{
    *added = (hr_added){ .tokens = tokens, .count = count };
    for (int32_t gap = count / 2; gap > 0; gap /= 2) {
        for (int32_t i = gap; i < count; i++) {
            const hr_added_token moved = tokens[i];
            int32_t at = i;
            for (; at >= gap && comes_before(&moved, &tokens[at - gap]); at -= gap)
                tokens[at] = tokens[at - gap];
            tokens[at] = moved;
        }
    }
    for (int32_t i = 0; i < count; i++) {
        const hr_added_token *token = &tokens[i];
        if (token->bytes > added->longest_bytes) added->longest_bytes = token->bytes;
        added->strips_left |= token->lstrip;
        added->careful |= token->lstrip || token->rstrip || token->single_word;
        added->begin[token->text[0] + 1] = i + 1;
    }
    for (int32_t byte = 0; byte < 256; byte++) {
        if (!added->begin[byte + 1]) {
            added->begin[byte + 1] = added->begin[byte];
            continue;
        }
        if (added->first_count < 4) added->firsts[added->first_count] = (uint8_t)byte;
        if (added->first_count < 5) added->first_count++;
    }
}

/* The first position at or after p whose byte starts a token. */
static int64_t next_first(const hr_added *added, const uint8_t *text, int64_t p, int64_t bytes)
{
    if (!added->count) return bytes;
    if (added->first_count <= 4) {
        __m128i sought[4];
        for (int32_t i = 0; i < 4; i++)
            sought[i] = _mm_set1_epi8((char)added->firsts[i < added->first_count ? i : 0]);
        for (; p + 16 <= bytes; p += 16) {
            const __m128i here = _mm_loadu_si128((const __m128i *)(const void *)(text + p));
            __m128i equal = _mm_cmpeq_epi8(here, sought[0]);
            for (int32_t i = 1; i < 4; i++)
                equal = _mm_or_si128(equal, _mm_cmpeq_epi8(here, sought[i]));
            const int mask = _mm_movemask_epi8(equal);
            if (mask) return p + __builtin_ctz((uint32_t)mask);
        }
    }
    while (p < bytes && added->begin[text[p]] == added->begin[text[p] + 1]) p++;
    return p;
}

/* The longest token at p; null: none. `more`: out, the text ends inside a possible longer token. */
static const hr_added_token *token_at(const hr_added *added, const uint8_t *text, int64_t p,
                                      int64_t bytes, bool *more)
{
    for (int32_t i = added->begin[text[p]]; i < added->begin[text[p] + 1]; i++) {
        const hr_added_token *token = &added->tokens[i];
        const int64_t there = hr_min(token->bytes, bytes - p);
        if (memcmp(token->text, text + p, (size_t)there)) continue;
        if (there == token->bytes) return token;
        *more = true;
    }
    return NULL;
}

static int64_t before(const uint8_t *text, int64_t p)
{
    int64_t at = p - 1;
    while (at > 0 && p - at < 4 && (text[at] & 0xc0) == 0x80) at--;
    return at;
}

static uint8_t class_of(const uint8_t *text, int64_t p, int64_t bytes, int64_t *next)
{
    uint32_t point;
    *next = p + hr_utf8_take(text + p, bytes - p, &point);
    return hr_unicode_class_of(point);
}

static bool is_alone(const uint8_t *text, int64_t begin, int64_t end, int64_t bytes)
{
    int64_t next;
    if (begin > 0 && class_of(text, before(text, begin), bytes, &next) & HR_WORD) return false;
    return end >= bytes || !(class_of(text, end, bytes, &next) & HR_WORD);
}

static bool is_blank(const hr_added *added, const uint8_t *text, int64_t p, int64_t bytes,
                     int64_t *next)
{
    return class_of(text, p, bytes, next) & HR_SPACE && !(added->spaces_stay && text[p] == ' ');
}

static int64_t blanks_before(const hr_added *added, const uint8_t *text, int64_t least, int64_t p,
                             int64_t bytes)
{
    int64_t next;
    while (p > least && is_blank(added, text, before(text, p), bytes, &next)) p = before(text, p);
    return hr_max(p, least);
}

static int64_t blanks_behind(const hr_added *added, const uint8_t *text, int64_t p, int64_t bytes)
{
    int64_t next = p;
    while (p < bytes && is_blank(added, text, p, bytes, &next)) p = next;
    return p;
}

/* No token starts before `end`. A later token with lstrip may still take the white space before
 * `end`, so that white space is left out unless the text is whole. */
static hr_added_part plain(const hr_added *added, const uint8_t *text, int64_t at, int64_t end,
                           int64_t search, int64_t bytes, bool whole)
{
    const int64_t begin = added->strips_left && !whole ? blanks_before(added, text, at, end, bytes)
                                                       : hr_max(at, end);
    return (hr_added_part){ .begin = begin, .end = begin, .search = search };
}

hr_added_part hr_added_next(const hr_added *added, const uint8_t *text, int64_t at, int64_t search,
                            int64_t bytes, bool whole)
{
    for (int64_t p = search;; p++) {
        p = next_first(added, text, p, bytes);
        if (p >= bytes) return plain(added, text, at, bytes, bytes, bytes, whole);
        bool more = false;
        const hr_added_token *token = token_at(added, text, p, bytes, &more);
        if (more && !whole) return plain(added, text, at, p, p, bytes, false);
        if (!token) continue;
        int64_t end = p + token->bytes, begin = p;
        /* Up to `at`, if it is later, the token before this one has taken all white space. */
        if (token->rstrip) end = blanks_behind(added, text, hr_max(end, at), bytes);
        if ((token->rstrip || token->single_word) && !whole && end + 4 > bytes)
            return plain(added, text, at, p, p, bytes, false);
        if (token->single_word && !is_alone(text, p, p + token->bytes, bytes)) {
            p += token->bytes - 1;
            continue;
        }
        if (token->lstrip) begin = hr_max(at, blanks_before(added, text, hr_min(at, p), p, bytes));
        if (begin >= end) { /* the token before it has taken all of it */
            p += token->bytes - 1;
            continue;
        }
        return (hr_added_part){ hr_max(at, begin), token, end, p + token->bytes };
    }
}

bool hr_added_allows_cut(const hr_added *added, uint8_t left, uint8_t right)
{
    for (int32_t i = 0; i < added->count; i++) {
        const hr_added_token *token = &added->tokens[i];
        const uint8_t last = token->text[token->bytes - 1];
        if (added->careful && (token->text[0] == right || last == left)) return false;
        for (int32_t k = 0; k + 1 < token->bytes; k++)
            if (token->text[k] == left && token->text[k + 1] == right) return false;
    }
    return true;
}
