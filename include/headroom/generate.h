/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/generate.h - generates text from a prompt, inside a plan.
 *
 * The model comes from a folder that headroom or Hugging Face wrote. Weights, KV cache and
 * everything else are allocated before the first token. Each token is bit-identical to one computed
 * without a KV cache. */
#ifndef HEADROOM_GENERATE_H
#define HEADROOM_GENERATE_H

#include "headroom/infer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_STOPS_MAX = 16, HR_STOP_BYTES = 256 };

/* Sampling parameters, applied in this order. */
typedef struct {
    /* 0.01 to 100; for earlier tokens, positive logits are divided and negative ones multiplied by
     * it; 1: off */
    double repetition_penalty;
    double temperature; /* divides the logits; 0: greedy decoding */
    int64_t top_k;      /* keep the k likeliest tokens; 0: off */
    double top_p;       /* keep the likeliest tokens with this total probability; 1: off */
    double min_p;       /* drop tokens below this fraction of the highest probability; 0: off */
    uint64_t seed;
} hr_sampling;

typedef struct {
    size_t size; /* of this struct */
    const hr_infer_request *model;
    /* The prompt, one of: a text, a text file ("-": standard input, at most 1 MiB), or
     * comma-separated token ids. */
    const char *prompt, *prompt_file, *prompt_ids;
    /* largest number of new tokens; the model's positions may end the answer earlier */
    int64_t tokens;
    hr_sampling sampling;
    /* [stop_count] UTF-8 texts shorter than HR_STOP_BYTES, at most HR_STOPS_MAX. The first complete
     * one ends the answer and is not part of it */
    const char *const *stops;
    int32_t stop_count;
    bool wants_ids;   /* `on_text` needs ids only: any vocabulary is allowed */
    bool ignores_end; /* goes on after the tokens that end an answer */
    int64_t chunk;    /* largest number of prompt tokens per pass; 0: as many as fit, at most 512 */

    /* Called for each new id with the text that is now complete; bytes may be 0. Further text of a
     * token, and the last call, come with id -1. Return false to end the answer. Called from one
     * thread; must not allocate. May be null. */
    bool (*on_text)(void *context, int32_t id, const char *text, int64_t bytes);
    void *context;
} hr_generate_request;

typedef enum {
    HR_END_TOKENS,
    HR_END_POSITIONS,
    HR_END_STOP,
    HR_END_DOCUMENT, /* the tokenizer's end-of-text token, or an eos_token_id of the model */
    HR_END_INTERRUPT
} hr_generate_end;

typedef struct {
    hr_generate_end end;
    int64_t prompt_tokens, tokens;
    int64_t positions; /* planned length of prompt and answer */
    int64_t chunk;     /* prompt tokens per pass */
    int64_t cache_bytes;
    double prompt_seconds, answer_seconds; /* answer_seconds: all tokens except the first */
    /* Each token reads all weights, except that token and position tables are read by row unless a
     * table is also the head. */
    hr_infer_result run;
} hr_generate_result;

/* Errors   USAGE    no folder; no prompt; text without a known tokenizer; an id outside the
 *                   vocabulary; a prompt longer than the positions; a parameter out of range
 *          CORRUPT  the model folder
 *          NO_FIT   with the bytes needed and available
 *          DIVERGED a logit is not finite; text passed to `on_text` before stays valid
 *          BROKEN   measured memory above the plan
 *          FAILURE  the system refused, or `on_text` returned false
 *          INTERRUPTED  during set-up; a later interrupt ends the answer without an error
 * Threads  one call at a time per process. */
HR_MUST_CHECK hr_status hr_generate(const hr_generate_request *request, hr_generate_result *result,
                                    hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
