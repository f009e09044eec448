/* SPDX-License-Identifier: Apache-2.0 */
/* text/scan.c - ASCII through a table, the rest of Unicode through utf8proc. */
#include "text/scan.h"

#include <string.h>
#include <utf8proc.h>

/* What FOLD says instead of a lower-case letter. */
enum { SPACE = 0x80, WIDE = 0x81 };

#define WIDE_16 \
    WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE, WIDE

/* clang-format off */
static const uint8_t FOLD[256] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, SPACE, SPACE, SPACE, SPACE, SPACE, 14, 15,
    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, SPACE, SPACE, SPACE, SPACE,
    SPACE, '!', '"', '#', '$', '%', '&', '\'', '(', ')', '*', '+', ',', '-', '.', '/',
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', ':', ';', '<', '=', '>', '?',
    '@', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o',
    'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z', '[', '\\', ']', '^', '_',
    '`', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n', 'o',
    'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z', '{', '|', '}', '~', 127,
    WIDE_16, WIDE_16, WIDE_16, WIDE_16, WIDE_16, WIDE_16, WIDE_16, WIDE_16,
};
/* clang-format on */

/* White space past ASCII: the code points for which Python's str.isspace is true. */
static bool is_space(int32_t code)
{
    return code == 0x85 || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
           code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

hr_scan hr_scan_over(hr_source *source, uint8_t *word)
{
    return (hr_scan){ source, source->piece, source->piece, word };
}

/* Where `at` lies in the file. */
static long long offset_of(const hr_scan *scan)
{
    return (long long)(scan->source->offset - (scan->end - scan->at));
}

static hr_status too_long(const hr_scan *scan, hr_error *err)
{
    return hr_fail(err, HR_CORRUPT,
                   "%s: the word that reaches byte %lld is longer than the %d bytes that a "
                   "word may have: type data.tokenizer=bytes, or break it up",
                   scan->source->path, offset_of(scan), HR_WORD_BYTES);
}

/* Puts the next piece behind what is left of this one. */
static hr_status refill(hr_scan *scan, hr_error *err)
{
    const int64_t left = scan->end - scan->at;
    uint8_t *piece = scan->source->piece;
    int64_t count = 0;
    memmove(piece - left, scan->at, (size_t)left);
    const hr_status status = hr_source_next(scan->source, &count, err);
    scan->at = piece - left;
    scan->end = piece + count;
    return status;
}

static int64_t sequence_bytes(uint8_t lead)
{
    return lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
}

/* Takes one code point past ASCII; adds it to the word, or finds that it ends the word. */
static hr_status take_wide(hr_scan *scan, int64_t *length, bool *space, hr_error *err)
{
    if (scan->end - scan->at < sequence_bytes(*scan->at)) {
        const hr_status status = refill(scan, err);
        if (status != HR_OK) return status;
    }
    int32_t code = 0;
    const int64_t taken = utf8proc_iterate(scan->at, scan->end - scan->at, &code);
    if (taken <= 0)
        return hr_fail(err, HR_CORRUPT,
                       "%s: byte %lld (0x%02x) is not UTF-8, which data.tokenizer=words needs: "
                       "mend it, or type data.tokenizer=bytes",
                       scan->source->path, offset_of(scan), *scan->at);
    scan->at += taken;
    *space = is_space(code);
    if (*space) return HR_OK;
    uint8_t lower[4];
    const int64_t bytes = utf8proc_encode_char(utf8proc_tolower(code), lower);
    if (*length + bytes > HR_WORD_BYTES) return too_long(scan, err);
    memcpy(scan->word + *length, lower, (size_t)bytes);
    *length += bytes;
    return HR_OK;
}

hr_status hr_scan_next(hr_scan *scan, int64_t *bytes, hr_error *err)
{
    int64_t length = 0;
    for (;;) {
        bool space = false;
        if (scan->at == scan->end) {
            const hr_status status = refill(scan, err);
            if (status != HR_OK) return status;
            if (scan->at == scan->end) break;
        }
        const uint8_t folded = FOLD[*scan->at];
        if (folded < SPACE) {
            if (length == HR_WORD_BYTES) return too_long(scan, err);
            scan->word[length++] = folded;
            scan->at++;
        } else if (folded == SPACE) {
            scan->at++;
            space = true;
        } else {
            const hr_status status = take_wide(scan, &length, &space, err);
            if (status != HR_OK) return status;
        }
        if (space && length > 0) break;
    }
    *bytes = length;
    return HR_OK;
}
