/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/added.h - added tokens: texts that are cut out before anything else is done. */
#ifndef HR_TOKENIZER_ADDED_H
#define HR_TOKENIZER_ADDED_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    const uint8_t *text; /* [bytes], not empty */
    int32_t bytes;
    uint32_t id;
    bool single_word;    /* no character of a word beside it */
    bool lstrip, rstrip; /* white space before and behind it belongs to it */
    bool normalized;     /* found in the normalized text */
    bool special;
} hr_added_token;

/* Those of one kind, ordered by first byte, longer ones first. */
typedef struct {
    const hr_added_token *tokens;
    int32_t count, longest_bytes;
    int32_t begin[257];        /* by first byte */
    bool strips_left, careful; /* some lstrip; some look at what is beside them */
    uint8_t firsts[4];
    int32_t first_count; /* 5: more */
    bool spaces_stay;    /* in this text a space stands for U+2581, which is no white space */
} hr_added;

/* Orders tokens [count] and makes the table over them. */
void hr_added_over(hr_added *added, hr_added_token *tokens, int32_t count);

typedef struct {
    /* [at, begin) is plain, and nothing that comes can change that. */
    int64_t begin;
    const hr_added_token *token; /* that stands behind; null: none, or it is not known yet */
    int64_t end;                 /* of the token and what it strips */
    int64_t search;              /* where the search goes on; no longer before `begin` */
} hr_added_part;

/* What is plain from `at` on, and the token behind it.
 *
 *   text    [bytes]; up to four bytes in front of `at` are looked at where `at` > 0
 *   search  hr_added_part.search of the part before, or `at`
 *   whole   the text ends with `bytes` */
hr_added_part hr_added_next(const hr_added *added, const uint8_t *text, int64_t at, int64_t search,
                            int64_t bytes, bool whole);

/* Whether a text may be cut between these two bytes, letters, digits or a line's end, without any
 * of the tokens noticing. */
bool hr_added_allows_cut(const hr_added *added, uint8_t left, uint8_t right);

#endif
