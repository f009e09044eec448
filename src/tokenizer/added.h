/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/added.h - added tokens: texts that are matched before normalization or
 * pre-tokenization, and map to one id each. */
#ifndef HR_TOKENIZER_ADDED_H
#define HR_TOKENIZER_ADDED_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    const uint8_t *text; /* [bytes], not empty */
    int32_t bytes;
    uint32_t id;
    bool single_word;    /* matches only where no word character (\w) is next to it */
    bool lstrip, rstrip; /* the match includes the white space before it, after it */
    bool normalized;     /* matched in the normalized text; false: in the raw text */
    bool special;
} hr_added_token;

/* A matching table of added tokens, sorted by first byte, longer tokens first. */
typedef struct {
    const hr_added_token *tokens;
    int32_t count, longest_bytes;
    int32_t begin[257];        /* [first byte] index of its first token; begin[256] is the count */
    bool strips_left, careful; /* some token has lstrip; some token looks at its neighbors */
    uint8_t firsts[4];
    int32_t first_count; /* distinct first bytes; 5: more than four */
    bool spaces_stay;    /* a space stands for U+2581 in this text and is not white space */
} hr_added;

/* Sorts tokens [count] in place and builds the table over them. The table borrows `tokens`. */
void hr_added_over(hr_added *added, hr_added_token *tokens, int32_t count);

typedef struct {
    /* [at, begin) contains no added token, whatever text follows. */
    int64_t begin;
    const hr_added_token *token; /* the token after it; null: none, or more text is needed */
    int64_t end;                 /* of the token, with the white space that it strips */
    int64_t search;              /* resume the search here; it may be after `begin` */
} hr_added_part;

/* Finds the next added token at or after `at`.
 *
 *   text    [bytes]; up to four bytes before `at` are read where `at` > 0
 *   search  hr_added_part.search of the previous part, or `at`
 *   whole   the text ends at `bytes`; otherwise more text follows */
hr_added_part hr_added_next(const hr_added *added, const uint8_t *text, int64_t at, int64_t search,
                            int64_t bytes, bool whole);

/* Whether the text may be split between these two bytes (letters, digits or a line break) without
 * changing the match of any token. */
bool hr_added_allows_cut(const hr_added *added, uint8_t left, uint8_t right);

#endif
