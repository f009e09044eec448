/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/pattern.h - patterns that have no scanner here: PCRE2 in memory that was set aside.
 *
 * The field's reference writes its patterns for Oniguruma. What the two engines understand
 * differently is refused by name; what they do not differ in but in their tables of Unicode (PCRE2
 * 10.42 has 14, and takes U+180E for white space) cannot be seen from the pattern, and is why
 * `inspect` says which engine a file gets. */
#ifndef HR_TOKENIZER_PATTERN_H
#define HR_TOKENIZER_PATTERN_H

#include "tokenizer/scanner.h"

typedef struct hr_pattern hr_pattern;
typedef struct hr_pattern_walk hr_pattern_walk;

int64_t hr_pattern_bytes(int64_t pattern_bytes);

/* Compiles text [bytes] in a region. Errors CORRUPT, NO_FIT. */
HR_MUST_CHECK hr_status hr_pattern_place(hr_pattern **pattern, hr_region *region, const char *text,
                                         int64_t bytes, hr_error *err);

/* What one thread needs to match it. */
enum { HR_PATTERN_WALK_BYTES = 5 << 20 };
HR_MUST_CHECK hr_status hr_pattern_walk_place(hr_pattern_walk **walk, hr_region *region,
                                              const hr_pattern *pattern, hr_error *err);

/* Bytes in front of a place that a match there may look at. */
int64_t hr_pattern_before(const hr_pattern *pattern);

/* The first match at or behind `from` in text [bytes], valid UTF-8. `begins`: text is the beginning
 * of what is cut. HR_FOUND_WRONG: more than so many steps, or more memory than was set aside. */
hr_found hr_pattern_search(hr_pattern_walk *walk, const uint8_t *text, int64_t from, int64_t bytes,
                           bool begins, bool whole, hr_piece *match);

#endif
