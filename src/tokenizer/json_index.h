/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/json_index.h - what a tokenizer's file holds and where, before there is memory for it.
 *
 * One pass with a small buffer counts what the tables will have to hold. It believes the file to be
 * JSON; who reads it then looks whether that is true. */
#ifndef HR_TOKENIZER_JSON_INDEX_H
#define HR_TOKENIZER_JSON_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

enum { HR_JSON_INDEX_MEMBERS_MAX = 24, HR_JSON_INDEX_KEY_BYTES = 32 };

typedef struct {
    char key[HR_JSON_INDEX_KEY_BYTES]; /* as written */
    int64_t at, bytes;                 /* of the value, in the file */
} hr_json_index_member;

typedef struct {
    int64_t bytes; /* of the file */
    hr_json_index_member top[HR_JSON_INDEX_MEMBERS_MAX], model[HR_JSON_INDEX_MEMBERS_MAX];
    int32_t top_count, model_count;
    bool listed; /* the vocabulary is a list of pairs, as Unigram's; ids are places in it */
    int64_t vocab_count, vocab_bytes, id_most; /* id_most: of vocabulary and added tokens, -1 */
    int64_t merge_count, added_count, added_bytes;
} hr_json_index;

/* Reads `path` from end to end. `bare`: it is a vocabulary alone, as vocab.json.
 * Errors   USAGE, FAILURE  of the file
 *          CORRUPT         more members than a tokenizer has, a key twice, brackets that do not
 *                          fit */
HR_MUST_CHECK hr_status hr_json_index_read(hr_json_index *outline, const char *path, bool bare,
                                           hr_error *err);

/* A member by its key; null: there is none. */
const hr_json_index_member *hr_json_index_top(const hr_json_index *outline, const char *key);
const hr_json_index_member *hr_json_index_model(const hr_json_index *outline, const char *key);

#endif
