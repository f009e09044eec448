/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/scanner.h - the field's patterns by hand: what the regular expression would match.
 *
 * A scanner of a pattern that matches everywhere cuts a text from end to end. The others, which
 * leave gaps, are searched for. */
#ifndef HR_TOKENIZER_SCANNER_H
#define HR_TOKENIZER_SCANNER_H

#include <stdbool.h>
#include <stdint.h>

#include "tokenizer/pretokenizer.h"

/* Cuts text from `at` on into pieces that follow each other without gaps.
 *
 *   text    [bytes]
 *   whole   the text ends there; else only pieces are told that nothing behind could change
 *   pieces  out [most]
 *
 * Returns how many. */
typedef int64_t hr_scanner(const uint8_t *text, int64_t at, int64_t bytes, bool whole,
                           hr_piece *pieces, int64_t most);

hr_scanner hr_scanner_gpt2, hr_scanner_cl100k, hr_scanner_qwen, hr_scanner_o200k,
    hr_scanner_super_one;

/* What is left of a run of decimals, so that a search inside it need not count again. */
typedef struct {
    int64_t at, count; /* there, so many more; count 0: nothing known */
} hr_scanner_run;

typedef enum { HR_FOUND, HR_FOUND_NONE, HR_FOUND_MORE, HR_FOUND_WRONG } hr_found;

/* The first match at or behind `from` in text [bytes], which may be empty.
 * HR_FOUND_MORE: not whole, and more text could change the answer. */
typedef hr_found hr_searcher(const uint8_t *text, int64_t from, int64_t bytes, bool whole,
                             hr_scanner_run *run, hr_piece *match);

hr_searcher hr_searcher_numeric, hr_searcher_spaces, hr_searcher_super_paper_one,
    hr_searcher_super_paper_two, hr_searcher_super_two;

#endif
