/* SPDX-License-Identifier: Apache-2.0 */
/* text/scan.c - classifies ASCII with a table and other characters with utf8proc. */
#include "text/scan.h"

#include <string.h>
#include <utf8proc.h>

/* Entries of FOLD that are not a lower-case letter. */
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

/* White space outside ASCII: the code points for which Python's str.isspace is true. */
static bool is_space(int32_t code)
{
    return code == 0x85 || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
           code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

hr_scan hr_scan_over(uint8_t *word)
{
    return (hr_scan){ .word = word };
}

void hr_scan_take(hr_scan *scan, const hr_piece *piece)
{
    if (piece->begins) scan->length = scan->letter_used = 0;
    scan->piece = piece;
    scan->at = piece->bytes;
    scan->end = piece->bytes + piece->count;
}

/* Offset of `at` in the file's text. */
static long long offset_of(const hr_scan *scan)
{
    return (long long)(scan->piece->offset + (scan->at - scan->piece->bytes));
}

static hr_status too_long(const hr_scan *scan, hr_error *err)
{
    return hr_fail(err, HR_CORRUPT,
                   "%s: the word that reaches byte %lld is longer than %d bytes, the limit: use "
                   "data.tokenizer=bytes, or split it",
                   scan->piece->path, offset_of(scan), HR_WORD_BYTES);
}

static hr_status not_utf8(const hr_scan *scan, long long offset, uint8_t byte, hr_error *err)
{
    return hr_fail(err, HR_CORRUPT,
                   "%s: byte %lld (0x%02x) is not UTF-8, which data.tokenizer=words needs: fix "
                   "it, or use data.tokenizer=bytes",
                   scan->piece->path, offset, byte);
}

static int64_t sequence_bytes(uint8_t lead)
{
    return lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
}

/* Appends a non-ASCII code point to the word, or reports that it is white space. */
static hr_status take_point(hr_scan *scan, int32_t code, bool *space, hr_error *err)
{
    uint8_t lower[4];
    *space = is_space(code);
    if (*space) return HR_OK;
    const int64_t bytes = utf8proc_encode_char(utf8proc_tolower(code), lower);
    if (scan->length + bytes > HR_WORD_BYTES) return too_long(scan, err);
    memcpy(scan->word + scan->length, lower, (size_t)bytes);
    scan->length += bytes;
    return HR_OK;
}

/* Reads a non-ASCII code point from the piece, or saves its first bytes if the piece ends within
 * it. */
static hr_status take_wide(hr_scan *scan, bool *space, hr_error *err)
{
    const int64_t left = scan->end - scan->at;
    int32_t code = 0;
    const int64_t taken = utf8proc_iterate(scan->at, left, &code);
    if (taken > 0) {
        const hr_status status = take_point(scan, code, space, err);
        scan->at += taken;
        return status;
    }
    if (left >= sequence_bytes(*scan->at) || scan->piece->segment_ends)
        return not_utf8(scan, offset_of(scan), *scan->at, err);
    memcpy(scan->letter, scan->at, (size_t)left);
    scan->letter_used = left;
    scan->at = scan->end;
    return HR_OK;
}

/* Completes a character that the last piece ended within. Only the last piece can be too short for
 * that. */
static hr_status take_split(hr_scan *scan, bool *space, hr_error *err)
{
    const int64_t before = scan->letter_used, needed = sequence_bytes(scan->letter[0]);
    int32_t code = 0;
    while (scan->letter_used < needed && scan->at < scan->end)
        scan->letter[scan->letter_used++] = *scan->at++;
    if (scan->letter_used < needed && !scan->piece->segment_ends) return HR_OK;
    if (utf8proc_iterate(scan->letter, scan->letter_used, &code) <= 0)
        return not_utf8(scan, (long long)(scan->piece->offset - before), scan->letter[0], err);
    scan->letter_used = 0;
    return take_point(scan, code, space, err);
}

hr_status hr_scan_next(hr_scan *scan, int64_t *bytes, hr_error *err)
{
    *bytes = 0;
    for (;;) {
        bool space = false;
        hr_status status = HR_OK;
        if (scan->letter_used && (scan->at < scan->end || scan->piece->segment_ends)) {
            status = take_split(scan, &space, err);
        } else if (scan->at == scan->end) {
            if (!scan->piece->segment_ends) return HR_OK;
            space = true;
        } else if (FOLD[*scan->at] < SPACE) {
            if (scan->length == HR_WORD_BYTES) return too_long(scan, err);
            scan->word[scan->length++] = FOLD[*scan->at++];
        } else if (FOLD[*scan->at] == SPACE) {
            scan->at++;
            space = true;
        } else {
            status = take_wide(scan, &space, err);
        }
        if (status != HR_OK) return status;
        if (space && scan->length > 0) break;
        if (space && scan->at == scan->end && scan->piece->segment_ends) return HR_OK;
    }
    *bytes = scan->length;
    scan->length = 0;
    return HR_OK;
}
