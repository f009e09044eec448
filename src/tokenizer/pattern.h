/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/pattern.h - PCRE2 in a fixed memory region, for patterns without a built-in scanner.
 *
 * Tokenizers write their patterns for Oniguruma. What the two engines interpret differently is
 * translated or refused by name (tokenizer/pattern_syntax.h). Their Unicode tables also differ:
 * PCRE2 10.42 has Unicode 14 and treats U+180E as white space. That cannot be detected from the
 * pattern, so `inspect` names the engine. */
#ifndef HR_TOKENIZER_PATTERN_H
#define HR_TOKENIZER_PATTERN_H

#include "tokenizer/scanner.h"

typedef struct hr_pattern hr_pattern;
typedef struct hr_pattern_workspace hr_pattern_workspace;

int64_t hr_pattern_bytes(int64_t pattern_bytes);

/* Compiles text [bytes] in a region. Errors CORRUPT, NO_FIT. */
HR_MUST_CHECK hr_status hr_pattern_place(hr_pattern **pattern, hr_region *region, const char *text,
                                         int64_t bytes, hr_error *err);

/* Bytes of workspace for matching, per thread. */
enum { HR_PATTERN_WORKSPACE_BYTES = 5 << 20 };
HR_MUST_CHECK hr_status hr_pattern_workspace_place(hr_pattern_workspace **work, hr_region *region,
                                                   const hr_pattern *pattern, hr_error *err);

/* Bytes before a position that a match there may read. */
int64_t hr_pattern_before(const hr_pattern *pattern);

/* Finds the first match at or after `from` in text [bytes], valid UTF-8. `begins`: text starts at
 * the beginning of what is split. HR_FOUND_WRONG: the limit of steps or of memory is exceeded. */
hr_found hr_pattern_search(hr_pattern_workspace *work, const uint8_t *text, int64_t from,
                           int64_t bytes, bool begins, bool whole, hr_piece *match);

#endif
