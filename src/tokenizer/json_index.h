/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/json_index.h - sizes and positions of the members of a tokenizer file, found before its
 * tables are allocated.
 *
 * One pass with a small buffer counts what the tables must hold. It assumes that the file is valid
 * JSON; the reader checks that afterwards. */
#ifndef HR_TOKENIZER_JSON_INDEX_H
#define HR_TOKENIZER_JSON_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

enum { HR_JSON_INDEX_MEMBERS_MAX = 24, HR_JSON_INDEX_KEY_BYTES = 32 };

typedef struct {
    char key[HR_JSON_INDEX_KEY_BYTES]; /* as written, without unescaping */
    int64_t at, bytes;                 /* offset and length of the value in the file */
} hr_json_index_member;

typedef struct {
    int64_t bytes; /* of the file */
    hr_json_index_member top[HR_JSON_INDEX_MEMBERS_MAX], model[HR_JSON_INDEX_MEMBERS_MAX];
    int32_t top_count, model_count;
    bool listed; /* the vocabulary is a list of pairs (Unigram); ids are positions in it */
    int64_t vocab_count, vocab_bytes,
        id_most; /* id_most: largest id of vocabulary and added tokens; -1: none */
    int64_t merge_count, added_count, added_bytes;
} hr_json_index;

/* Scans `path` from start to end. `bare`: the file is only a vocabulary, such as vocab.json.
 * Errors   USAGE, FAILURE  from reading the file
 *          CORRUPT         more members than a tokenizer has, a duplicate key, unbalanced
 * brackets */
HR_MUST_CHECK hr_status hr_json_index_read(hr_json_index *outline, const char *path, bool bare,
                                           hr_error *err);

/* A member by its key; null: none. */
const hr_json_index_member *hr_json_index_top(const hr_json_index *outline, const char *key);
const hr_json_index_member *hr_json_index_model(const hr_json_index *outline, const char *key);

#endif
