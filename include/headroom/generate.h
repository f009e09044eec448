/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/generate.h - go on with a text, inside a plan.
 *
 * The model comes from a folder as headroom and Hugging Face write it. Weights, keys and values of
 * all tokens, and everything else have their bytes before the first token is computed; a token is
 * the same, bit for bit, as if all text before it were computed anew. */
#ifndef HEADROOM_GENERATE_H
#define HEADROOM_GENERATE_H

#include "headroom/infer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_STOPS_MAX = 16, HR_STOP_BYTES = 256 };

/* How a token is chosen: the likeliest, or one drawn. Applied in this order. */
typedef struct {
    double repetition_penalty; /* 0.01 to 100; logits of tokens that were there: above 0 divided by
                                  it, below multiplied; 1: none */
    double temperature;        /* divides logits; 0: the likeliest, and nothing is drawn */
    int64_t top_k;             /* of the likeliest so many; 0: of all */
    double top_p;              /* of the likeliest that hold this share together; 1: of all */
    double min_p;              /* of those that are at least so likely beside the likeliest; 0 */
    uint64_t seed;
} hr_sampling;

typedef struct {
    hr_infer_request model;
    /* What to go on from: one of a text, a file of text ("-": standard input, at most 1 MiB), and
     * ids with commas between them. */
    const char *prompt, *prompt_file, *prompt_ids;
    int64_t tokens; /* at most so many new ones; fewer where the model's positions end */
    hr_sampling sampling;
    const char *const *stops; /* [stop_count] texts in UTF-8, HR_STOPS_MAX at most, below
                                 HR_STOP_BYTES: the first that is whole ends the answer, and is not
                                 told */
    int32_t stop_count;
    bool wants_ids; /* `told` need not get text: any vocabulary will do */
    int64_t chunk;  /* most tokens of the prompt at a time; 0: as many as fit, 512 at most */

    /* As it goes: a new id, and what of the text is certain by now; bytes may be 0. More of its
     * text comes without one (-1), and so does the last call. False: nobody takes the answer any
     * more, and it ends. Called from one thread; must not allocate. May be null. */
    bool (*told)(void *context, int32_t id, const char *text, int64_t bytes);
    void *context;
} hr_generate_request;

typedef enum {
    HR_END_TOKENS,
    HR_END_POSITIONS,
    HR_END_STOP,
    HR_END_DOCUMENT, /* the token that the tokenizer has for it */
    HR_END_INTERRUPT
} hr_generate_end;

typedef struct {
    hr_generate_end end;
    int64_t prompt_tokens, tokens;
    int64_t positions; /* of prompt and answer, as planned */
    int64_t chunk;     /* tokens of the prompt at a time */
    int64_t cache_bytes;
    double prompt_seconds, answer_seconds; /* answer: all tokens but the first */
    /* A token reads all weights, but of the tables of tokens and positions a row, where the head is
     * none of them. */
    hr_infer_result run;
} hr_generate_result;

/* Errors   USAGE    no folder, no prompt, text for a model that no tokenizer is known of, an id
 *                   that it has not, a prompt that its positions do not hold, numbers out of range
 *          CORRUPT  the folder's files; NO_FIT  with the bytes needed and available
 *          DIVERGED logits that are not finite; what was told before stays
 *          BROKEN   measured above planned; FAILURE, an answer that nobody takes among others
 *          INTERRUPTED  before the memory was there; later an interrupt ends the answer, and is no
 *                   error
 * Threads  one at a time in a process. */
HR_MUST_CHECK hr_status hr_generate(const hr_generate_request *request, hr_generate_result *result,
                                    hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
