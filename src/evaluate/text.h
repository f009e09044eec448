/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/text.h - a text as the recipe's data.valid would be read: files, folders and patterns,
 * JSON Lines, packed files, ids of other programs. */
#ifndef HR_EVALUATE_TEXT_H
#define HR_EVALUATE_TEXT_H

#include "corpus/corpus.h"
#include "evaluate/sequences.h"
#include "headroom/config.h"

/* What `text` says, read by the keys of a config's data section; ids are below the vocabulary. */
hr_corpus_desc hr_evaluate_corpus(const hr_config *config, const char *text);

/* Whether the first part of a text is ids already: they need no tokenizer. Pure. */
bool hr_evaluate_is_ids(const char *text);

/* Whether that is one file of plain text, whose bytes can be read where they lie. */
bool hr_evaluate_is_plain(const char *text);

/* Reads all documents into source->ids, which is open, and notes which tokens are targets. The id
 * that ends documents stands between them, and is a target.
 *
 *   corpus  open, with a text as its data.valid
 *   tokens  whose sink is hr_sequences_add; null: tokens are bytes
 *
 * Errors   USAGE    less than two tokens; a byte that the vocabulary does not have
 *          CORRUPT  no target; and as hr_documents and hr_tokens_add. INTERRUPTED, FAILURE. */
HR_MUST_CHECK hr_status hr_evaluate_read(hr_sequences *source, hr_corpus *corpus, hr_tokens *tokens,
                                         const hr_text_progress *progress, hr_error *err);

#endif
