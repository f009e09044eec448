/* SPDX-License-Identifier: Apache-2.0 */
/* text/counting.h - counts the distinct words of a training text in a table of planned size. */
#ifndef HR_TEXT_COUNTING_H
#define HR_TEXT_COUNTING_H

#include "text/shard.h"
#include "text/text.h"
#include "text/word_table.h"

typedef struct {
    const hr_text_desc *desc;
    const hr_text_progress *progress;
    const hr_shard_info *train; /* [train_count], identified texts */
    uint8_t *word;              /* [HR_WORD_BYTES] */
    uint8_t *table_memory;      /* [hr_words_bytes(hr_counting_table_words)] */
    hr_word_table *table;       /* in table_memory; out: the words */
    hr_error *err;
} hr_counting;

/* Capacity of the table in words. It fits any single word twice, so that recounting by hash range
 * needs few passes. Pure. */
int64_t hr_counting_table_words(const hr_text_desc *desc);

/* Counts the words of all parts of the training text.
 * Errors  USAGE  more distinct words than data.words_max: the message has their number and the
 *                command. As reading; INTERRUPTED. */
HR_MUST_CHECK hr_status hr_counting_run(const hr_counting *counting);

/* Name of the training text in error messages. Pure. */
const char *hr_text_train_name(const hr_text_desc *desc);

/* Checks that a later pass read the same content as the identification.
 *
 *   bad_lines  out; lines that were skipped
 *
 * Errors  FAILURE  the text has changed. */
HR_MUST_CHECK hr_status hr_text_check_unchanged(const hr_text_desc *desc,
                                                const hr_documents *documents, hr_text_hash hash,
                                                int64_t *bad_lines, hr_error *err);

#endif
