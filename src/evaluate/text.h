/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/text.h - reads a text like data.valid of a recipe: files, directories and patterns, JSON
 * Lines, compressed files, and token ids of other programs. */
#ifndef HR_EVALUATE_TEXT_H
#define HR_EVALUATE_TEXT_H

#include "corpus/corpus.h"
#include "evaluate/sequences.h"
#include "headroom/config.h"
#include "headroom/evaluate.h"

/* Sets request->keys in the data section of a config. Errors USAGE  another key, or a value out of
 * range. */
HR_MUST_CHECK hr_status hr_evaluate_set_keys(const hr_evaluate_request *request, hr_config *config,
                                             hr_error *err);

/* Describes `text` with the data section of a config; ids must be below the vocabulary. */
hr_corpus_desc hr_evaluate_corpus(const hr_config *config, const char *text);

/* Returns true when the first part of a text is token ids, which need no tokenizer. Pure. */
bool hr_evaluate_is_ids(const char *text);

/* Returns true for a single plain text file, whose bytes can be read on demand. */
bool hr_evaluate_is_plain(const char *text);

/* Tokenizes all documents into source->ids, which must be open, and records which tokens are
 * targets. The id that ends documents separates them, and is a target.
 *
 *   corpus     open, with the text as its data.valid
 *   tokens     its sink must be hr_sequences_add; null: tokens are bytes
 *   bad_lines  out; lines that were skipped
 *
 * Errors   USAGE    fewer than two tokens; a byte outside the vocabulary
 *          CORRUPT  no target; and as hr_documents and hr_tokens_add. INTERRUPTED, FAILURE. */
HR_MUST_CHECK hr_status hr_evaluate_read(hr_sequences *source, hr_corpus *corpus, hr_tokens *tokens,
                                         const hr_text_progress *progress, int64_t *bad_lines,
                                         hr_error *err);

#endif
