/* SPDX-License-Identifier: Apache-2.0 */
/* data/texts.h - the texts that a recipe names: the memory to tokenize them, and their shards. */
#ifndef HR_DATA_TEXTS_H
#define HR_DATA_TEXTS_H

#include "base/region.h"
#include "config/config.h"
#include "corpus/corpus.h"
#include "text/text.h"

/* Whether the recipe names a text: files of token rows need no preparation. Pure. */
bool hr_texts_any(const hr_config *config);

/* Bytes of the region for hr_texts_prepare, freed before the arena is allocated. Pure. */
int64_t hr_texts_bytes(const hr_config *config);

/* Checks the syntax of the text keys of the recipe; opens no file. Errors USAGE. */
HR_MUST_CHECK hr_status hr_texts_read(const hr_config *config, hr_error *err);

/* Checks that the texts and the tokenizer can be read. Errors as hr_corpus_check and
 * hr_text_check_file. */
HR_MUST_CHECK hr_status hr_texts_check(const hr_config *config, hr_error *err);

/* Number of shards that training reads: 1, or the parts of a mixture; 1 for files of rows. Pure. */
int32_t hr_texts_shards(const hr_config *config);

/* The open texts of a recipe, in a region. */
typedef struct {
    hr_text_desc desc;
    hr_documents train[HR_SPEC_PARTS_MAX];
    hr_corpus *corpus;
} hr_texts;

/* Opens the texts in a region of hr_texts_bytes(config), creates or finds their shards, and removes
 * files that exceed limit_bytes from data.cache, if the recipe has one; files in use stay. The
 * arguments and *texts must not move, since the description points into them; texts->corpus is to
 * be closed.
 *
 *   limit_bytes  0: no limit
 *   text         out
 *
 * Errors as hr_corpus_open, hr_text_prepare and hr_cache_prune. */
HR_MUST_CHECK hr_status hr_texts_prepare(const hr_config *config, hr_region *region,
                                         int64_t limit_bytes, const hr_text_progress *progress,
                                         hr_texts *texts, hr_text *text, hr_error *err);

#endif
