/* SPDX-License-Identifier: Apache-2.0 */
/* text/scan.h - splits a UTF-8 text into lower-cased words.
 *
 * Words are separated by white space as defined by Python's str.split. Lower-casing is Unicode's
 * simple mapping, one code point to one, so a final sigma gets no special form. */
#ifndef HR_TEXT_SCAN_H
#define HR_TEXT_SCAN_H

#include "text/documents.h"
#include "text/word_table.h"

typedef struct {
    const hr_piece *piece;
    const uint8_t *at, *end; /* unread bytes of the piece */
    uint8_t *word;
    int64_t length;      /* of the word so far, including earlier pieces */
    uint8_t letter[4];   /* a character that is split between pieces */
    int64_t letter_used; /* its bytes so far; 0: none */
} hr_scan;

/* Creates a scanner. `word` [HR_WORD_BYTES] is borrowed. */
hr_scan hr_scan_over(uint8_t *word);

/* Starts to scan a piece. */
void hr_scan_take(hr_scan *scan, const hr_piece *piece);

/* Reads the next word into scan->word.
 *
 *   bytes  out; 0: no further word ends in this piece. A partial word continues in the next piece,
 *          unless the segment ends
 *
 * Errors   CORRUPT  not UTF-8, or a word of more than HR_WORD_BYTES; the message has the byte
 *                   offset. */
HR_MUST_CHECK hr_status hr_scan_next(hr_scan *scan, int64_t *bytes, hr_error *err);

#endif
