/* SPDX-License-Identifier: Apache-2.0 */
/* text/tokens.h - documents into ids by a tokenizer's file, and ids into text.
 *
 * Between a pass over documents, which come in pieces, and src/tokenizer, which wants windows: what
 * a tokenizer holds back at the end of a piece waits here for the next. */
#ifndef HR_TEXT_TOKENS_H
#define HR_TEXT_TOKENS_H

#include <stdbool.h>

#include "text/pass.h"

/* What has to be known of a tokenizer before there is memory for it. */
typedef struct {
    int64_t bytes;     /* of hr_tokens_open, */
    int64_t kept;      /* and of these what is needed once nothing is added any more */
    int64_t ids;       /* the highest and 1 */
    hr_text_hash hash; /* of its files; of hr_tokens_identify alone */
} hr_tokens_facts;

/* Reads the files once. Errors as hr_tokenizer_probe. */
HR_MUST_CHECK hr_status hr_tokens_look(const char *path, hr_tokens_facts *facts, hr_error *err);

/* The same, and their hash. staging [HR_TOKENS_STAGING]. */
enum { HR_TOKENS_STAGING = 64 * 1024 };
HR_MUST_CHECK hr_status hr_tokens_identify(const char *path, uint8_t *staging,
                                           hr_tokens_facts *facts, hr_error *err);

/* Puts the files into a folder, under the names that the field looks for. Nothing is done where
 * they lie there. staging [HR_TOKENS_STAGING]. Errors as hr_file_begin and hr_file_commit. */
HR_MUST_CHECK hr_status hr_tokens_take_along(const char *path, const char *folder, uint8_t *staging,
                                             hr_error *err);

/* The file that hr_tokens_take_along copies into a folder under `name`, into origin [bytes]; an
 * empty text: it copies none of that name. Errors as hr_tokenizer_probe. */
HR_MUST_CHECK hr_status hr_tokens_origin(const char *path, const char *name, char *origin,
                                         int64_t bytes, hr_error *err);

typedef struct hr_tokens hr_tokens;

/* Takes ids in their order. */
typedef hr_status hr_tokens_sink(void *context, const uint32_t *ids, int64_t count, hr_error *err);

/* Makes a tokenizer that gives its ids to a sink, in memory [facts.bytes], aligned to 64. `around`:
 * also what its file puts around every text.
 * Errors as hr_tokenizer_place. */
HR_MUST_CHECK hr_status hr_tokens_open(hr_tokens **tokens, void *memory, int64_t bytes,
                                       const char *path, bool around, hr_tokens_sink *sink,
                                       void *context, hr_error *err);

/* More text; `ends`: no token reaches over its end, and all of its ids come before this returns.
 *
 *   name, offset  for sentences: whose text it is, and where in it this begins
 *
 * Errors   CORRUPT  not UTF-8; a stretch that the tokenizer cannot cut. Those of the sink. */
HR_MUST_CHECK hr_status hr_tokens_add(hr_tokens *tokens, const uint8_t *text, int64_t bytes,
                                      bool ends, const char *name, int64_t offset, hr_error *err);

/* From here on nothing is put around texts. */
void hr_tokens_leave_alone(hr_tokens *tokens);

/* What was added since the last end is void, but for the ids that the sink has already. */
void hr_tokens_forget(hr_tokens *tokens);

/* The id that stands for the end of a document, by the names that the field gives to it; -1: the
 * tokenizer has none of these. */
int64_t hr_tokens_document_end(const hr_tokens *tokens);

/* Ids, whether or not all have a text; and the text of one, in bytes; valid until the next call. */
int64_t hr_tokens_count(const hr_tokens *tokens);
const uint8_t *hr_tokens_text(const hr_tokens *tokens, int64_t id, int64_t *bytes);

/* Whether the id is one that the tokenizer puts in front of a text. */
bool hr_tokens_is_around(const hr_tokens *tokens, int64_t id);

/* What an id adds to the text of those before it: UTF-8, without special tokens, characters once
 * they are whole; id -1: the end, what is left. Valid until the next call. */
const char *hr_tokens_decode(hr_tokens *tokens, int64_t id, int64_t *bytes);

#endif
