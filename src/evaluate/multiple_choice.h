/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/multiple_choice.h - multiple choice: questions out of a file of JSON lines, each answer
 * a sequence of its own, and who was right. */
#ifndef HR_EVALUATE_MULTIPLE_CHOICE_H
#define HR_EVALUATE_MULTIPLE_CHOICE_H

#include "evaluate/sequences.h"
#include "headroom/evaluate.h"

/* Reads the whole file: {"context": "...", "choices": ["...", ...], "answer": 0} a line. Other keys
 * are passed over, and so are empty lines.
 *
 *   text    [bytes + 1] whole, written to, and to be kept
 *   region  takes hr_multiple_choice_bytes
 *
 * Errors   CORRUPT  a line that is no such thing, by its number. */
HR_MUST_CHECK hr_status hr_multiple_choice_open(hr_sequences *source, const char *path, char *text,
                                                int64_t bytes, hr_region *region, hr_error *err);

/* Makes ids of all questions, by a tokenizer whose ids go to source->ids.
 * Errors   CORRUPT  a choice of which no token can be measured, by its line. As hr_tokens_add. */
HR_MUST_CHECK hr_status hr_multiple_choice_encode(hr_sequences *source, hr_tokens *tokens,
                                                  hr_error *err);

/* Bytes of a region that the tables of such a text take. */
int64_t hr_multiple_choice_bytes(const char *text, int64_t bytes);

/* The sequence of one choice, as hr_sequences_read: its tokens are asked for, those of the context
 * are not. */
HR_MUST_CHECK hr_status hr_multiple_choice_read(const hr_sequences *source, int64_t row,
                                                int32_t *ids, int32_t *targets, hr_error *err);

/* The best answer to the present question so far. */
typedef struct {
    int64_t likeliest, by_length; /* numbers of choices */
    double loss, mean;
} hr_multiple_choice_best;

/* Choice `row` costs `loss` over `tokens`; rows come in their order. Counts a question at its last
 * choice. Of equals the first is taken. */
void hr_multiple_choice_tell(const hr_sequences *source, int64_t row, double loss, int64_t tokens,
                             hr_multiple_choice_best *best, hr_evaluate_result *result);

#endif
