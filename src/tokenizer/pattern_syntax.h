/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/pattern_syntax.h - rewrites a pattern of Oniguruma's, which the reference uses, so that
 * PCRE2 matches the same. */
#ifndef HR_TOKENIZER_PATTERN_SYNTAX_H
#define HR_TOKENIZER_PATTERN_SYNTAX_H

#include <stdbool.h>
#include <stdint.h>

/* Whether PCRE2 knows \p{sc:NAME}. */
typedef bool hr_pattern_is_script_fn(void *context, const char *name, int64_t bytes);

/* Writes the text [bytes] as a pattern of PCRE2, with the options UTF, UCP and MULTILINE, to
 * out [room]; out_bytes is -1 if that is too little. Returns null, or what the two interpret
 * differently and is not translated. */
const char *hr_pattern_translate(const char *text, int64_t bytes,
                                 hr_pattern_is_script_fn *is_script, void *context, char *out,
                                 int64_t room, int64_t *out_bytes);

#endif
