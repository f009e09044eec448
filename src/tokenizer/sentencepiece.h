/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/sentencepiece.h - tokenizer.model: the Protocol Buffers message ModelProto of
 * SentencePiece, its pieces, and what it says about normalization. */
#ifndef HR_TOKENIZER_SENTENCEPIECE_H
#define HR_TOKENIZER_SENTENCEPIECE_H

#include "tokenizer/reading.h"

/* Whether a file's first bytes are those of such a message: a piece comes first. */
bool hr_sentencepiece_is(const char *path);

/* Counts what the tables will have to hold. Errors USAGE, FAILURE, CORRUPT. */
HR_MUST_CHECK hr_status hr_sentencepiece_count(hr_tokenizer_source *source, hr_error *err);

/* Reads text [source->outline.bytes]: pieces into keys, and all that tokenizer->pieces holds.
 *
 *   tables   for what stays
 *   scratch  for the order of scores, which hr_bpe_finish needs
 *
 * Errors CORRUPT, NO_FIT. */
HR_MUST_CHECK hr_status hr_sentencepiece_read(hr_tokenizer *tokenizer,
                                              const hr_tokenizer_source *source, char *text,
                                              hr_keys *keys, hr_added_token *added,
                                              int32_t *added_count, hr_region *tables,
                                              hr_region *scratch, hr_error *err);

#endif
