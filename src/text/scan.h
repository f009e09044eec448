/* SPDX-License-Identifier: Apache-2.0 */
/* text/scan.h - the words of a UTF-8 text, lower-cased, one after the other.
 *
 * A word is what lies between white space, as Python's str.split has it. Lower case is Unicode's,
 * one code point for one (so a final sigma is a sigma like any other). */
#ifndef HR_TEXT_SCAN_H
#define HR_TEXT_SCAN_H

#include "text/documents.h"

enum { HR_WORD_BYTES = 64 * 1024 }; /* a longer word is refused */

typedef struct {
    const hr_piece *piece;
    const uint8_t *at, *end; /* what is left of it */
    uint8_t *word;
    int64_t length;      /* of the word so far, from earlier pieces too */
    uint8_t letter[4];   /* one that pieces cut */
    int64_t letter_used; /* bytes of it, 0: none */
} hr_scan;

/* `word` [HR_WORD_BYTES] is borrowed. */
hr_scan hr_scan_over(uint8_t *word);

/* The words of this piece come next. */
void hr_scan_take(hr_scan *scan, const hr_piece *piece);

/* Reads the next word into scan->word.
 *
 *   bytes  out; 0: the piece has no further one that ends in it. What is left of it waits for the
 *          next piece, unless the segment ends
 *
 * Errors   CORRUPT  not UTF-8, or a word of more than HR_WORD_BYTES: says at which byte. */
HR_MUST_CHECK hr_status hr_scan_next(hr_scan *scan, int64_t *bytes, hr_error *err);

#endif
