/* SPDX-License-Identifier: Apache-2.0 */
/* text/scan.h - the words of a UTF-8 text, lower-cased, one after the other.
 *
 * A word is what lies between white space, as Python's str.split has it. Lower case is Unicode's,
 * one code point for one (so a final sigma is a sigma like any other). */
#ifndef HR_TEXT_SCAN_H
#define HR_TEXT_SCAN_H

#include "text/source.h"

enum { HR_WORD_BYTES = 64 * 1024 }; /* a longer word is refused */

typedef struct {
    hr_source *source;
    const uint8_t *at, *end; /* what is left of the source's piece */
    uint8_t *word;
} hr_scan;

/* `word` [HR_WORD_BYTES] is borrowed. */
hr_scan hr_scan_over(hr_source *source, uint8_t *word);

/* Reads the next word into scan->word.
 *
 *   bytes  out; 0 at the end of the text
 *
 * Errors   CORRUPT  not UTF-8, or a word of more than HR_WORD_BYTES: says at which byte
 *          and those of hr_source_next. */
HR_MUST_CHECK hr_status hr_scan_next(hr_scan *scan, int64_t *bytes, hr_error *err);

#endif
