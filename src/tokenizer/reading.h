/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/reading.h - declarations shared by the readers of tokenizer files. */
#ifndef HR_TOKENIZER_READING_H
#define HR_TOKENIZER_READING_H

#include "base/json.h"
#include "tokenizer/tokenizer.h"

/* The texts of ids as written in the file, and a hash table of ids by text. */
typedef struct {
    const char *text; /* the whole file */
    uint32_t *at;     /* [ids] offsets in text */
    int32_t *bytes;   /* [ids] -1: no such id */
    int32_t *slots;   /* [1 << bits] hash table of ids */
    int64_t ids, count, text_bytes;
    int32_t bits;
} hr_keys;

int64_t hr_keys_bytes(int64_t ids);
bool hr_keys_place(hr_keys *keys, hr_region *region, int64_t ids, const char *text);

/* Adds a token whose text lies in keys->text. Returns null, or what is wrong with it. */
const char *hr_keys_add(hr_keys *keys, const char *text, int64_t bytes, int64_t id);

/* The id of the concatenation of two texts; HR_BPE_NONE: none. */
int32_t hr_keys_find(const hr_keys *keys, const char *text, int64_t bytes, const char *more,
                     int64_t more_bytes);

/* Checks that text, the contents of a tokenizer.json, is JSON, except for vocabulary and merges.
 * Errors CORRUPT, NO_FIT. */
HR_MUST_CHECK hr_status hr_read_check_json(const hr_tokenizer_source *source, const char *text,
                                           hr_region scratch, hr_error *err);

/* Reads the normalizer of a tokenizer.json, before its tokens. Other files have none. Errors
 * CORRUPT. */
HR_MUST_CHECK hr_status hr_read_normalizer(hr_tokenizer *tokenizer,
                                           const hr_tokenizer_source *source, char *text,
                                           hr_region *tables, hr_error *err);

/* Decodes base64 with padding in place. Returns the number of bytes; -1: invalid. */
int64_t hr_read_base64(char *text, int64_t bytes);

/* Reads pre-tokenizer, post-processor and decoder from the file's text.
 *
 *   desc  out; its patterns point into the text
 *
 * Errors CORRUPT. */
HR_MUST_CHECK hr_status hr_read_parts(hr_tokenizer *tokenizer, const hr_tokenizer_source *source,
                                      char *text, hr_pretokenizer_desc *desc, hr_error *err);

/* Read a .tiktoken file, and the merges.txt of a vocab.json. `text`: contents of the file, or of
 * both. */
HR_MUST_CHECK hr_status hr_read_ranks(const hr_tokenizer_source *source, hr_region *region,
                                      hr_keys *keys, char *text, hr_error *err);
HR_MUST_CHECK hr_status hr_read_merge_lines(hr_tokenizer *tokenizer,
                                            const hr_tokenizer_source *source, const hr_keys *keys,
                                            char *text, hr_error *err);

/* Adds the merge of two texts. Errors CORRUPT  left, right or their concatenation is not a
 * token. */
HR_MUST_CHECK hr_status hr_read_merge(hr_tokenizer *tokenizer, const hr_tokenizer_source *source,
                                      const hr_keys *keys, const char *left, int64_t left_bytes,
                                      const char *right, int64_t right_bytes, hr_error *err);

/* ---- character-level BPE and Unigram */

/* Writes the text of a token as the tables store it: a space for each U+2581. Returns its bytes. */
int64_t hr_read_internal_text(const uint8_t *text, int64_t bytes, uint8_t *out);

/* Reads the vocabulary of Unigram. Errors CORRUPT, NO_FIT. */
HR_MUST_CHECK hr_status hr_read_listed(hr_tokenizer *tokenizer, const hr_tokenizer_source *source,
                                       hr_keys *keys, hr_region *tables, hr_json json,
                                       hr_error *err);

/* How a model encodes characters without a token. */
typedef struct {
    bool falls_back;
    char name[64]; /* unk_token; "": none */
    int64_t id;    /* unk_id; HR_BPE_NONE: none */
} hr_read_unknown_desc;

/* Errors CORRUPT: a character has neither byte fallback nor an unknown token. */
HR_MUST_CHECK hr_status hr_read_unknown(hr_tokenizer *tokenizer, const hr_tokenizer_source *source,
                                        const hr_keys *keys, const hr_read_unknown_desc *desc,
                                        hr_error *err);

/* Normalizes the texts of added tokens [count] into copies, normal [count]. Errors CORRUPT. */
HR_MUST_CHECK hr_status hr_read_normalized(hr_tokenizer *tokenizer,
                                           const hr_tokenizer_source *source,
                                           const hr_added_token *added, int32_t count,
                                           hr_added_token *normal, hr_region *tables,
                                           hr_region scratch, hr_error *err);

/* Marks the bytes that precede a space inside some token. Text may be split before a space only
 * after other bytes. */
void hr_read_joins(hr_tokenizer *tokenizer);

/* Replaces line breaks in an error message, which may quote the file. Returns the status. */
hr_status hr_one_line(hr_status status, hr_error *err);

/* Format prefix of errors: the path of the file. */
#define HR_OF_FILE "%.300s: "

#endif
