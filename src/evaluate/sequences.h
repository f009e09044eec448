/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/sequences.h - token sequences from a file, with the next token of each token as target.
 *
 * For files of tokens or text, only the sequences of the current iteration are in memory. Ids are
 * checked against the vocabulary whenever they are read. */
#ifndef HR_EVALUATE_SEQUENCES_H
#define HR_EVALUATE_SEQUENCES_H

#include "checkpoint/token_rows.h"
#include "evaluate/ids_file.h"
#include "text/tokens.h"

/* One choice of a question. With a tokenizer, its ids are in a file: those of the context, then
 * those of the choice. `asked` is the index of the first scored id. */
typedef struct {
    const char *text;
    int64_t bytes;
    int32_t question;
    int64_t id_first, id_count, asked;
} hr_sequences_choice;

typedef struct {
    const char *context;
    int64_t bytes;
    int64_t answer;
    int64_t first, count; /* rows of choices */
    int64_t line;         /* in the file, from 1 */
} hr_sequences_question;

typedef struct {
    const char *path;
    int file;                     /* descriptor of a text whose tokens are bytes; -1: closed */
    hr_token_rows tokens;         /* a file of token rows; closed: another kind of source */
    int64_t count;                /* tokens of the file */
    int64_t vocabulary;           /* ids must be below it */
    int64_t rows, length;         /* number of sequences, and tokens of each */
    int64_t stride;               /* distance between the starts of consecutive sequences */
    bool is_text;                 /* one text in windows */
    hr_ids_file ids;              /* ids of a text (~id where the token is no target), or of
                                   * choices; closed: tokens of choices are bytes */
    bool masked;                  /* text: the tokens added now are no targets */
    int64_t targets;              /* text: number of predicted tokens */
    int64_t text_bytes;           /* text: bytes of the predicted tokens */
    hr_sequences_choice *choices; /* [rows]; null: not multiple choice */
    hr_sequences_question *questions;
    int64_t question_count;
    int64_t document_end; /* id that precedes choices of a single token; -1: none */
} hr_sequences;

/* Bytes of a region that hr_sequences_open_tokens needs while it runs. */
int64_t hr_sequences_header_bytes(const char *path);

/* Opens a safetensors file with input_ids and optionally labels. Both files of the source must be
 * closed, and its vocabulary set.
 * Errors   as hr_token_rows_open_in. */
HR_MUST_CHECK hr_status hr_sequences_open_tokens(hr_sequences *source, const char *path,
                                                 hr_region *scratch, hr_error *err);

/* Opens a plain text file whose bytes are the tokens; they are read on demand. Call
 * hr_sequences_cut afterwards.
 * Errors   USAGE  missing; fewer than two bytes. */
HR_MUST_CHECK hr_status hr_sequences_open_text(hr_sequences *source, const char *path,
                                               hr_error *err);

/* Appends tokens of a text to source->ids. They are no targets while source->masked is set.
 * Errors   as hr_ids_file_add. */
HR_MUST_CHECK hr_status hr_sequences_add(hr_sequences *source, const uint32_t *ids, int64_t count,
                                         hr_error *err);

/* Divides the text into windows of `context` tokens that start `stride` tokens apart; shorter ones
 * if the text is shorter. */
void hr_sequences_cut(hr_sequences *source, int64_t context, int64_t stride);

/* Reads every sequence once to check all ids.
 *
 *   ids, targets  [length] scratch
 *
 * Errors   as hr_sequences_read. */
HR_MUST_CHECK hr_status hr_sequences_check(const hr_sequences *source, int32_t *ids,
                                           int32_t *targets, hr_error *err);

/* Reads one sequence.
 *
 *   ids      [length] out; padded with 0
 *   targets  [length] out: the next token of each; -1 where there is no target
 *
 * Errors   as hr_token_rows_read; as hr_file_read. */
HR_MUST_CHECK hr_status hr_sequences_read(const hr_sequences *source, int64_t row, int32_t *ids,
                                          int32_t *targets, hr_error *err);

/* Position, in its sequence or text, of the target of token `t` of sequence `row`. */
int64_t hr_sequences_place(const hr_sequences *source, int64_t row, int64_t t);

/* Closes the files. Accepts closed ones. */
void hr_sequences_close(hr_sequences *source);

#endif
