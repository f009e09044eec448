/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/reading.h - what the readers of a tokenizer's files share. */
#ifndef HR_TOKENIZER_READING_H
#define HR_TOKENIZER_READING_H

#include "base/json.h"
#include "tokenizer/tokenizer.h"

/* Texts of ids as the file writes them, and ids by their texts. */
typedef struct {
    const char *text; /* all of it */
    uint32_t *at;     /* [ids] */
    int32_t *bytes;   /* [ids] -1: there is no such id */
    int32_t *slots;   /* [1 << bits] */
    int64_t ids, count, text_bytes;
    int32_t bits;
} hr_keys;

int64_t hr_keys_bytes(int64_t ids);
bool hr_keys_place(hr_keys *keys, hr_region *region, int64_t ids, const char *text);

/* Adds a text that lies in keys->text. 0: done; else what is wrong, as words. */
const char *hr_keys_add(hr_keys *keys, const char *text, int64_t bytes, int64_t id);

/* The id of two texts behind each other, HR_BPE_NONE: none. */
int32_t hr_keys_find(const hr_keys *keys, const char *text, int64_t bytes, const char *more,
                     int64_t more_bytes);

/* The normalizer, before tokens are read; nothing but tokenizer.json has one. Errors CORRUPT. */
HR_MUST_CHECK hr_status hr_read_normalizer(hr_tokenizer *tokenizer,
                                           const hr_tokenizer_source *source, char *text,
                                           hr_error *err);

/* Pre-tokenizer, post-processor and decoder of the file's text.
 *
 *   desc  out; its patterns lie in the text
 *
 * Errors CORRUPT. */
HR_MUST_CHECK hr_status hr_read_parts(hr_tokenizer *tokenizer, const hr_tokenizer_source *source,
                                      char *text, hr_cut_desc *desc, hr_error *err);

/* A file of ranks, and vocab.json with merges.txt. `text` [files] */
HR_MUST_CHECK hr_status hr_read_ranks(const hr_tokenizer_source *source, hr_region *region,
                                      hr_keys *keys, char *text, hr_error *err);
HR_MUST_CHECK hr_status hr_read_merge_lines(hr_tokenizer *tokenizer,
                                            const hr_tokenizer_source *source, const hr_keys *keys,
                                            char *text, hr_error *err);

/* Adds the merge of two texts. Errors CORRUPT  one of the three is no token. */
HR_MUST_CHECK hr_status hr_read_merge(hr_tokenizer *tokenizer, const hr_tokenizer_source *source,
                                      const hr_keys *keys, const char *left, int64_t left_bytes,
                                      const char *right, int64_t right_bytes, hr_error *err);

/* What a file says may stand in a sentence, but not break its line. Returns the status. */
hr_status hr_one_line(hr_status status, hr_error *err);

/* How a sentence about the file begins. */
#define HR_OF_FILE "%.300s: "

#endif
