/* SPDX-License-Identifier: Apache-2.0 */
/* text/tokens.h - encodes documents with a tokenizer file, and decodes ids to text.
 *
 * Documents arrive in pieces, while src/tokenizer works on windows. This layer buffers the bytes
 * that a tokenizer cannot encode before it has the next piece. */
#ifndef HR_TEXT_TOKENS_H
#define HR_TEXT_TOKENS_H

#include <stdbool.h>

#include "text/pass.h"

/* Properties of a tokenizer that determine its memory. */
typedef struct {
    int64_t bytes;     /* for hr_tokens_open */
    int64_t kept;      /* part of `bytes` that decoding alone needs */
    int64_t ids;       /* the highest id plus 1 */
    hr_text_hash hash; /* of its files; set by hr_tokens_identify only */
} hr_tokens_facts;

/* Reads the files once. Errors as hr_tokenizer_probe. */
HR_MUST_CHECK hr_status hr_tokens_probe(const char *path, hr_tokens_facts *facts, hr_error *err);

/* As hr_tokens_probe, and computes the hash. staging [HR_TOKENS_STAGING]. */
enum { HR_TOKENS_STAGING = 64 * 1024 };
HR_MUST_CHECK hr_status hr_tokens_identify(const char *path, uint8_t *staging,
                                           hr_tokens_facts *facts, hr_error *err);

/* Copies the files into a folder under their Hugging Face names, with those beside them that other
 * software reads: tokenizer_config.json, the chat template. Does nothing if they are already there.
 * buffer [bytes] scratch. Errors as hr_file_begin and hr_file_commit. */
HR_MUST_CHECK hr_status hr_tokens_copy_files(const char *path, const char *folder, void *buffer,
                                             int64_t bytes, hr_error *err);

/* Writes the path of the file that hr_tokens_copy_files copies as `name` into origin [bytes]; an
 * empty string if it copies no such file. Errors as hr_tokenizer_probe. */
HR_MUST_CHECK hr_status hr_tokens_origin(const char *path, const char *name, char *origin,
                                         int64_t bytes, hr_error *err);

typedef struct hr_tokens hr_tokens;

/* Receives ids in order. */
typedef hr_status hr_tokens_sink(void *context, const uint32_t *ids, int64_t count, hr_error *err);

/* Opens a tokenizer that passes its ids to a sink, in memory [facts.bytes], aligned to 64.
 * `add_special`: also add the special tokens that its file adds before every text.
 * Errors as hr_tokenizer_place. */
HR_MUST_CHECK hr_status hr_tokens_open(hr_tokens **tokens, void *memory, int64_t bytes,
                                       const char *path, bool add_special, hr_tokens_sink *sink,
                                       void *context, hr_error *err);

/* Encodes more text. `ends`: the text ends here, and all of its ids reach the sink before the call
 * returns.
 *
 *   name, offset  for error messages: the name of the text, and the offset of this part in it
 *
 * Errors   CORRUPT  not UTF-8; a part that the pre-tokenizer cannot split. Those of the sink. */
HR_MUST_CHECK hr_status hr_tokens_add(hr_tokens *tokens, const uint8_t *text, int64_t bytes,
                                      bool ends, const char *name, int64_t offset, hr_error *err);

/* Stops adding special tokens to texts from here on. */
void hr_tokens_omit_special(hr_tokens *tokens);

/* Discards the text since the last end. Ids that the sink already received stay there. */
void hr_tokens_discard(hr_tokens *tokens);

/* The id of the end-of-document token, found by its usual names; -1 if there is none. */
int64_t hr_tokens_document_end(const hr_tokens *tokens);

/* The id of words and characters that are not in the vocabulary; -1: there is none. */
int64_t hr_tokens_unknown(const hr_tokens *tokens);

/* The number of ids, including those without text; and the bytes of one id, valid until the next
 * call. */
int64_t hr_tokens_count(const hr_tokens *tokens);
const uint8_t *hr_tokens_text(const hr_tokens *tokens, int64_t id, int64_t *bytes);

/* Whether the tokenizer adds this id before a text. */
bool hr_tokens_is_special_prefix(const hr_tokens *tokens, int64_t id);

/* Decodes incrementally: returns the UTF-8 text that an id adds to the previous ids, without
 * special tokens; incomplete characters are held back. Id -1 flushes the rest at the end. Valid
 * until the next call. */
const char *hr_tokens_decode(hr_tokens *tokens, int64_t id, int64_t *bytes);

#endif
