/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/sequences.h - sequences of tokens out of a file, and what comes after each token.
 *
 * Of a file of tokens or of text no more is held than the sequences of a turn: each is read when it
 * is due. Ids are held against the vocabulary whenever they are read. */
#ifndef HR_EVALUATE_SEQUENCES_H
#define HR_EVALUATE_SEQUENCES_H

#include "ckpt/token_rows.h"
#include "evaluate/ids_file.h"
#include "text/tokens.h"

/* One choice as an answer to one question. Where tokens are not bytes, its ids lie in a file:
 * those of the context, `asked` behind the first, and its own. */
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
    int64_t line;         /* of the file, from 1 on */
} hr_sequences_question;

typedef struct {
    const char *path;
    int file;                     /* descriptor of a text whose bytes are tokens; -1: closed */
    hr_token_rows tokens;         /* of a file of tokens; closed: it is none */
    int64_t count;                /* tokens of the file */
    int64_t vocabulary;           /* ids are below it */
    int64_t rows, length;         /* sequences, and tokens of each */
    int64_t stride;               /* between the first tokens of sequences */
    bool is_text;                 /* one text in windows */
    hr_ids_file ids;              /* of a text, ~id where no target is; or of choices. Closed:
                                     tokens of choices are bytes */
    bool masked;                  /* of a text: what is added now is no target */
    int64_t targets;              /* of a text: tokens that are predicted */
    int64_t text_bytes;           /* of a text: those of its targets */
    hr_sequences_choice *choices; /* [rows]; null: none */
    hr_sequences_question *questions;
    int64_t question_count;
    int64_t document_end; /* id that choices which are one token stand behind; -1: none */
} hr_sequences;

/* Bytes of a region for hr_sequences_open_tokens while it runs. */
int64_t hr_sequences_header_bytes(const char *path);

/* A safetensors file with input_ids, and perhaps labels. The source is to have both files closed,
 * and its vocabulary.
 * Errors   as hr_token_rows_open_in. */
HR_MUST_CHECK hr_status hr_sequences_open_tokens(hr_sequences *source, const char *path,
                                                 hr_region *scratch, hr_error *err);

/* A file of plain text, of which each byte is a token, and read when it is due; windows are still
 * to be chosen.
 * Errors   USAGE  missing; less than two bytes. */
HR_MUST_CHECK hr_status hr_sequences_open_text(hr_sequences *source, const char *path,
                                               hr_error *err);

/* Adds tokens of a text to source->ids; where source->masked, they are no targets.
 * Errors   as hr_ids_file_add. */
HR_MUST_CHECK hr_status hr_sequences_add(hr_sequences *source, const uint32_t *ids, int64_t count,
                                         hr_error *err);

/* Cuts the text into windows of `context` tokens, each `stride` behind the one before; shorter ones
 * where the text is. */
void hr_sequences_cut(hr_sequences *source, int64_t context, int64_t stride);

/* Reads every sequence once, to know of every id that it is one.
 *
 *   ids, targets  [length] scratch
 *
 * Errors   as hr_sequences_read. */
HR_MUST_CHECK hr_status hr_sequences_check(const hr_sequences *source, int32_t *ids,
                                           int32_t *targets, hr_error *err);

/* One sequence.
 *
 *   ids      [length] out; 0 past the end of a short one
 *   targets  [length] out: what comes after each, -1 where nothing is asked
 *
 * Errors   as hr_token_rows_read; as hr_file_read. */
HR_MUST_CHECK hr_status hr_sequences_read(const hr_sequences *source, int64_t row, int32_t *ids,
                                          int32_t *targets, hr_error *err);

/* The place in its sequence, or in its text, of what comes after token `t` of sequence `row`. */
int64_t hr_sequences_place(const hr_sequences *source, int64_t row, int64_t t);

/* Closes the files. Accepts what is closed. */
void hr_sequences_close(hr_sequences *source);

#endif
