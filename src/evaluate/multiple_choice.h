/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/multiple_choice.h - multiple-choice questions from a JSON Lines file. Each answer is its
 * own sequence; the answer with the lowest loss is compared with the correct one. */
#ifndef HR_EVALUATE_MULTIPLE_CHOICE_H
#define HR_EVALUATE_MULTIPLE_CHOICE_H

#include "evaluate/sequences.h"
#include "headroom/evaluate.h"

/* Parses the whole file; each line is {"context": "...", "choices": ["...", ...], "answer": 0}.
 * Other keys and empty lines are skipped.
 *
 *   text    [bytes + 1] the whole file; modified in place; must outlive the source
 *   region  needs hr_multiple_choice_bytes
 *
 * Errors   CORRUPT  an invalid line, with its number. */
HR_MUST_CHECK hr_status hr_multiple_choice_open(hr_sequences *source, const char *path, char *text,
                                                int64_t bytes, hr_region *region, hr_error *err);

/* Tokenizes all questions. The ids of `tokens` go to source->ids.
 * Errors   CORRUPT  a choice without a token to score, with its line. As hr_tokens_add. */
HR_MUST_CHECK hr_status hr_multiple_choice_encode(hr_sequences *source, hr_tokens *tokens,
                                                  hr_error *err);

/* Bytes of a region for the tables of this text. */
int64_t hr_multiple_choice_bytes(const char *text, int64_t bytes);

/* Reads the sequence of one choice, as hr_sequences_read. Its own tokens are targets, the context
 * tokens are not. */
HR_MUST_CHECK hr_status hr_multiple_choice_read(const hr_sequences *source, int64_t row,
                                                int32_t *ids, int32_t *targets, hr_error *err);

/* The best choices of the current question so far. */
typedef struct {
    int64_t likeliest, by_length; /* indices of choices */
    double loss, mean;
} hr_multiple_choice_best;

/* Records the loss of choice `row` over `tokens`. Rows must come in order. A question is counted at
 * its last choice. On ties the first choice wins. */
void hr_multiple_choice_record(const hr_sequences *source, int64_t row, double loss, int64_t tokens,
                               hr_multiple_choice_best *best, hr_evaluate_result *result);

#endif
