/* SPDX-License-Identifier: Apache-2.0 */
/* base/utf8.h - characters of UTF-8. */
#ifndef HR_BASE_UTF8_H
#define HR_BASE_UTF8_H

#include <stdbool.h>
#include <stdint.h>

/* Decodes the character at text [bytes], bytes > 0, and returns its length. Invalid UTF-8 consumes
 * one byte and yields 0xfffd. Reads at most `bytes`. */
static inline int64_t hr_utf8_take(const uint8_t *text, int64_t bytes, uint32_t *point)
{
    const uint32_t c = text[0];
    if (c < 0x80) {
        *point = c;
        return 1;
    }
    if (c >= 0xc2 && c < 0xe0 && bytes > 1 && (text[1] & 0xc0) == 0x80) {
        *point = (c & 0x1f) << 6 | (text[1] & 0x3f);
        return 2;
    }
    if (c >= 0xe0 && c < 0xf0 && bytes > 2 && (text[1] & 0xc0) == 0x80 &&
        (text[2] & 0xc0) == 0x80) {
        *point = (c & 0xf) << 12 | (text[1] & 0x3fu) << 6 | (text[2] & 0x3f);
        if (*point >= 0x800 && (*point < 0xd800 || *point >= 0xe000)) return 3;
    }
    if (c >= 0xf0 && c < 0xf5 && bytes > 3 && (text[1] & 0xc0) == 0x80 &&
        (text[2] & 0xc0) == 0x80 && (text[3] & 0xc0) == 0x80) {
        *point = (c & 7) << 18 | (text[1] & 0x3fu) << 12 | (text[2] & 0x3fu) << 6 |
                 (text[3] & 0x3f);
        if (*point >= 0x10000 && *point < 0x110000) return 4;
    }
    *point = 0xfffd;
    return 1;
}

/* Whether text [bytes] is valid UTF-8. */
static inline bool hr_utf8_valid(const uint8_t *text, int64_t bytes)
{
    uint32_t point;
    for (int64_t p = 0, taken; p < bytes; p += taken) {
        taken = hr_utf8_take(text + p, bytes - p, &point);
        if (taken == 1 && text[p] >= 0x80) return false;
    }
    return true;
}

#endif
