/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/scanner.h - hand-written matchers of common pre-tokenizer patterns, equal to their
 * regular expressions.
 *
 * A scanner implements a pattern that matches everywhere, so it splits a text without gaps. A
 * searcher implements a pattern that leaves gaps. */
#ifndef HR_TOKENIZER_SCANNER_H
#define HR_TOKENIZER_SCANNER_H

#include <stdbool.h>
#include <stdint.h>

#include "tokenizer/pretokenizer.h"

/* Splits text from `at` on into adjacent pieces.
 *
 *   text    [bytes]
 *   whole   the text ends there; otherwise only pieces that no following text can change
 *   pieces  out [most]
 *
 * Returns the number of pieces. */
typedef int64_t hr_scanner(const uint8_t *text, int64_t at, int64_t bytes, bool whole,
                           hr_piece *pieces, int64_t most);

hr_scanner hr_scanner_gpt2, hr_scanner_cl100k, hr_scanner_qwen, hr_scanner_o200k,
    hr_scanner_super_one;

/* The rest of a run of decimal digits, so that a search inside it does not count them again. */
typedef struct {
    int64_t at, count; /* position, digits from there to the end of the run; count 0: unknown */
} hr_scanner_run;

typedef enum { HR_FOUND, HR_FOUND_NONE, HR_FOUND_MORE, HR_FOUND_WRONG } hr_found;

/* Finds the first match at or after `from` in text [bytes]; it may be empty. HR_FOUND_MORE: not
 * whole, and more text could change the result. */
typedef hr_found hr_searcher(const uint8_t *text, int64_t from, int64_t bytes, bool whole,
                             hr_scanner_run *run, hr_piece *match);

hr_searcher hr_searcher_numeric, hr_searcher_spaces, hr_searcher_super_paper_one,
    hr_searcher_super_paper_two, hr_searcher_super_two;

#endif
