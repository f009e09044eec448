/* SPDX-License-Identifier: Apache-2.0 */
/* text/word_level_file.h - the template of the file of text/word_level.h: everything but its
 * vocabulary. */
#ifndef HR_TEXT_WORD_LEVEL_FILE_H
#define HR_TEXT_WORD_LEVEL_FILE_H

#include "text/text.h"

/* Python's str.split also splits at U+001C to U+001F, which are not white space in Rust. U+0130
 * becomes one character here, but two by the full case mapping. */
#define HR_WORD_LEVEL_NORMALIZER \
    "{\"type\":\"Sequence\",\"normalizers\":[" \
    "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"[\\\\x1c-\\\\x1f]\"},\"content\":\" \"}," \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\\u0130\"},\"content\":\"i\"}," \
    "{\"type\":\"Lowercase\"}]}"
#define HR_WORD_LEVEL_PRE_TOKENIZER "{\"type\":\"WhitespaceSplit\"}"

/* How the file spells the special words. */
extern const char *const hr_word_level_specials[HR_WORDS_SPECIAL];

#endif
