/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/sentencepiece.h - reads tokenizer.model: the Protocol Buffers message ModelProto of
 * SentencePiece with its pieces and normalizer_spec. */
#ifndef HR_TOKENIZER_SENTENCEPIECE_H
#define HR_TOKENIZER_SENTENCEPIECE_H

#include "tokenizer/reading.h"

/* Whether a file starts like such a message: its first field is a piece. */
bool hr_sentencepiece_is(const char *path);

/* Counts what the tables must hold. Errors USAGE, FAILURE, CORRUPT. */
HR_MUST_CHECK hr_status hr_sentencepiece_count(hr_tokenizer_source *source, hr_error *err);

/* Reads text [source->outline.bytes]: pieces into keys, the rest into the tokenizer.
 *
 *   tables   for what the tokenizer keeps
 *   scratch  for the order of scores, which hr_bpe_finish reads
 *
 * Errors CORRUPT, NO_FIT. */
HR_MUST_CHECK hr_status hr_sentencepiece_read(hr_tokenizer *tokenizer,
                                              const hr_tokenizer_source *source, char *text,
                                              hr_keys *keys, hr_added_token *added,
                                              int32_t *added_count, hr_region *tables,
                                              hr_region *scratch, hr_error *err);

#endif
