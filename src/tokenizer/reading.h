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
                                           hr_region *tables, hr_error *err);

/* Base64 with its padding, decoded where it lies; the number of bytes, -1: it is none. */
int64_t hr_read_base64(char *text, int64_t bytes);

/* Pre-tokenizer, post-processor and decoder of the file's text.
 *
 *   desc  out; its patterns lie in the text
 *
 * Errors CORRUPT. */
HR_MUST_CHECK hr_status hr_read_parts(hr_tokenizer *tokenizer, const hr_tokenizer_source *source,
                                      char *text, hr_pretokenizer_desc *desc, hr_error *err);

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

/* ---- tokenizers of characters, and Unigram */

/* The text of a token as the tables have it: a space for each U+2581. Returns bytes. */
int64_t hr_read_internal_text(const uint8_t *text, int64_t bytes, uint8_t *out);

/* Unigram's vocabulary. Errors CORRUPT, NO_FIT. */
HR_MUST_CHECK hr_status hr_read_listed(hr_tokenizer *tokenizer, const hr_tokenizer_source *source,
                                       hr_keys *keys, hr_region *tables, hr_json json,
                                       hr_error *err);

/* What a model says about characters without a token. */
typedef struct {
    bool falls_back;
    char name[64]; /* unk_token; "" */
    int64_t id;    /* unk_id; HR_BPE_NONE */
} hr_read_unknown_desc;

/* Errors CORRUPT: some character could neither fall back nor become the unknown token. */
HR_MUST_CHECK hr_status hr_read_unknown(hr_tokenizer *tokenizer, const hr_tokenizer_source *source,
                                        const hr_keys *keys, const hr_read_unknown_desc *desc,
                                        hr_error *err);

/* Normalizes the texts of added tokens [count] into copies, normal [count]. Errors CORRUPT. */
HR_MUST_CHECK hr_status hr_read_normalized(hr_tokenizer *tokenizer,
                                           const hr_tokenizer_source *source,
                                           const hr_added_token *added, int32_t count,
                                           hr_added_token *normal, hr_region *tables,
                                           hr_region scratch, hr_error *err);

/* Finds after which bytes some token has a space: nowhere else can a text be parted before one. */
void hr_read_joins(hr_tokenizer *tokenizer);

/* What a file says may stand in a sentence, but not break its line. Returns the status. */
hr_status hr_one_line(hr_status status, hr_error *err);

/* How a sentence about the file begins. */
#define HR_OF_FILE "%.300s: "

#endif
