/* SPDX-License-Identifier: Apache-2.0 */
/* text/counting.h - the distinct words of a training text, in a planned table. */
#ifndef HR_TEXT_COUNTING_H
#define HR_TEXT_COUNTING_H

#include "text/shard.h"
#include "text/text.h"
#include "text/word_table.h"

typedef struct {
    const hr_text_desc *desc;
    const hr_text_progress *progress;
    const hr_shard_info *train; /* [train_count], what was identified */
    uint8_t *word;              /* [HR_WORD_BYTES] */
    uint8_t *table_memory;      /* [hr_words_bytes(hr_counting_table_words)] */
    hr_word_table *table;       /* over that; out: the words */
    hr_error *err;
} hr_counting;

/* Words that the memory of the table is for: any one word has to fit, and as much again, so that
 * the words of a text can be counted in not too many shares. Pure. */
int64_t hr_counting_table_words(const hr_text_desc *desc);

/* Counts every word of all parts of the training text.
 * Errors  USAGE  more than data.words_max: how many, and what to type. As reading; INTERRUPTED. */
HR_MUST_CHECK hr_status hr_counting_run(const hr_counting *counting);

/* What refusals call the training text. Pure. */
const char *hr_text_train_name(const hr_text_desc *desc);

/* What was identified must be what a later pass read.
 *
 *   bad_lines  out; that were left out
 *
 * Errors  FAILURE  it changed meanwhile. */
HR_MUST_CHECK hr_status hr_text_check_unchanged(const hr_text_desc *desc,
                                                const hr_documents *documents, hr_text_hash hash,
                                                int64_t *bad_lines, hr_error *err);

#endif
