/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/unicode.h - character classes used by tokenizer patterns, and UTF-8 decoding. */
#ifndef HR_TOKENIZER_UNICODE_H
#define HR_TOKENIZER_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/utf8.h"

/* Bits of a class; Unicode 16 unless noted. */
enum {
    HR_LETTER = 1,   /* \p{L} */
    HR_NUMBER = 2,   /* \p{N} */
    HR_SPACE = 4,    /* \s: White_Space */
    HR_UPPER = 8,    /* [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] */
    HR_LOWER = 16,   /* [\p{Ll}\p{Lm}\p{Lo}\p{M}]; \p{M} has both bits and is not a letter */
    HR_DECIMAL = 32, /* \d: Nd */
    HR_NUMERIC = 64, /* N of Unicode 17, used by the pre-tokenizer Digits */
    HR_WORD = 128    /* \w: next to an added token with single_word, prevents its match */
};

extern const uint8_t hr_unicode_page[8704];
extern const uint8_t hr_unicode_class[];

/* The class of a code point below 0x110000. */
static inline uint8_t hr_unicode_class_of(uint32_t point)
{
    return hr_unicode_class[hr_unicode_page[point >> 7] << 7 | (point & 127)];
}

/* Whether text [bytes] is a valid but incomplete UTF-8 character. */
static inline int hr_utf8_cut(const uint8_t *text, int64_t bytes)
{
    const uint32_t c = text[0];
    const int64_t needs = c >= 0xf0 && c < 0xf5 ? 4 : c >= 0xe0 ? 3 : c >= 0xc2 ? 2 : 1;
    if (c >= 0xf5 || bytes >= needs) return 0;
    for (int64_t i = 1; i < bytes; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    return 1;
}

#endif
