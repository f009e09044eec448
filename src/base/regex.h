/* SPDX-License-Identifier: Apache-2.0 */
/* base/regex.h - whether a regular expression matches a whole text of at most 127 characters.
 *
 * Letters, . \. \d \w, classes [a-z] and [^a-z], groups (a|b), (?:a|b) and (?!a), the repetitions
 * * + ? {n} {n,m}, ^ and $, as in Python. No allocation. Repetitions are nested at most two deep,
 * which bounds the time. */
#ifndef HR_BASE_REGEX_H
#define HR_BASE_REGEX_H

#include <stdbool.h>

enum { HR_REGEX_TEXT_MOST = 127, HR_REGEX_DEPTH_MOST = 8, HR_REGEX_NESTED_MOST = 2 };

/* Whether the length bytes of an expression can be read. */
bool hr_regex_is_valid(const char *expression, int length);

/* Whether a valid expression matches all of a text. False for a longer text. */
bool hr_regex_matches(const char *expression, int length, const char *text);

#endif
