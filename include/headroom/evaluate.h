/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/evaluate.h - what a model says about given text, inside a plan.
 *
 * The model comes from a folder as headroom and Hugging Face write it. Sequences go through it
 * whole; what comes out are all logits, in a file, or what the text costs it: the loss of each
 * token. */
#ifndef HEADROOM_EVALUATE_H
#define HEADROOM_EVALUATE_H

#include "headroom/infer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    hr_infer_request model;
    /* What to ask about, one of them:
     *   tokens   a safetensors file with `input_ids` [B, T], I64 or I32. A token is held against
     *            the next one of its sequence, or against `labels` [B, T] where the file has them:
     *            labels[b, t] comes after input_ids[b, t], and -100 is not counted
     *   text     a file, in windows of `context` tokens
     *   choices  a JSON object a line: context, choices and answer, the number of one, from 0 on */
    const char *tokens, *text, *choices;
    /* Of tokens: a safetensors file for logits [B, T, V], F32, instead of losses; null: none. */
    const char *logits_out;
    /* A file for the loss of each token, a JSON object a line; null: none. */
    const char *per_token;
    const char *scratch; /* directory for the ids of a text, 4 bytes each, meanwhile; null: /tmp */
    int64_t context;     /* tokens of a window; 0: the positions that it learned; else 1024, or
                            the positions that it is known for where these are fewer */
    int64_t stride;      /* tokens between windows; 0: as many as a window has. What two windows
                               share counts in the first */
} hr_evaluate_request;

typedef struct {
    int64_t sequences, length; /* windows, rows of input_ids or choices; tokens of each, at most */
    int64_t stride;            /* of a text; else 0 */
    int64_t at_a_time, chunk;  /* sequences; tokens of logits */
    int64_t positions;         /* that the model is made for; 0: any. A sequence may have more,
                                  where they are computed and not learned */
    int64_t mlp_tile;          /* tokens that pass an MLP; 0: those of all these sequences */
    int64_t tokens;            /* that were held against what the model said */
    double loss_sum;           /* of these, in nats */
    double loss, perplexity;   /* of a token; 0 where there are none */
    double bits_per_byte;      /* of a text, or where tokens are bytes; else 0 */
    bool has_labels;           /* the file of tokens has them */
    int64_t questions, right,
        right_by_length; /* of choices: the likeliest, and the likeliest of its
                                                  length: by the mean of its tokens */
    double run_seconds;
    hr_infer_result run;
} hr_evaluate_result;

/* Errors   USAGE     no folder, not one thing to ask about, text for a model that no tokenizer is
 *                    known of, ids that it has not, more tokens than it has positions
 *          CORRUPT   the folder's files, that of tokens, a line of choices
 *          DIVERGED  logits that are not finite, where they are held against a token
 *          NO_FIT    with the bytes needed and available
 *          BROKEN    measured above planned; FAILURE; INTERRUPTED: no file was written
 * Threads  one at a time in a process. */
HR_MUST_CHECK hr_status hr_evaluate(const hr_evaluate_request *request, hr_evaluate_result *result,
                                    hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
