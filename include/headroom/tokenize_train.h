/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/tokenize_train.h - a tokenizer made from text: byte-level BPE, and SuperBPE.
 *
 * The merges are those of the field's reference trainer for the same settings, and so is the file.
 * All memory is known before the first merge; a run that is interrupted goes on where it was. */
#ifndef HEADROOM_TOKENIZE_TRAIN_H
#define HEADROOM_TOKENIZE_TRAIN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int32_t stage;                    /* 1, or 2 of SuperBPE */
    int64_t text_bytes, lines, words; /* of the text; distinct words, or those of stage 2 */
    int64_t slots;                    /* symbols to begin with that may ever be merged, and one */
    int64_t tables_bytes;             /* of the plan: while the text is counted and written down */
    int64_t engine_bytes;             /* of the plan: then, while it merges */
    int64_t process_bytes_planned;
    bool resumed;
} hr_tokenize_train_plan;

typedef struct {
    hr_tokenize_train_plan plan; /* of the stage that ran last */
    int64_t process_bytes_measured;
    int64_t tokens, merges;     /* of the vocabulary that was written */
    int64_t inherited, dropped; /* stage 2: merges that stage 1 gave; of them not there */
    bool saved;                 /* what was done when it was interrupted */
    int64_t recounts;           /* times that pairs were counted anew, for want of room */
    double look_seconds, count_seconds, build_seconds, merge_seconds, write_seconds;
} hr_tokenize_train_result;

typedef struct {
    const char *const *files; /* [file_count] of UTF-8 text */
    int32_t file_count;
    const char *out; /* a folder: tokenizer.json, merges.txt, vocab.json */

    int64_t vocab_size;           /* tokens to end with, fewer if the text gives no more */
    int64_t min_frequency;        /* times that a pair has to be there */
    int64_t limit_alphabet;       /* most characters of the alphabet; 0: all */
    int64_t max_token_length;     /* characters; a longer token is not made; 0: any */
    const char *initial_alphabet; /* characters that are in it whatever the text; "bytes": all 256;
                                     null: none */
    const char *const *special_tokens; /* [special_count], the first ids */
    int32_t special_count;

    /* How text is cut: gpt2, cl100k, qwen, o200k, super, super-paper, or a regular expression;
     * null: gpt2, and super when there are two stages. Or everything around the model as in a
     * tokenizer.json. */
    const char *pattern, *like;
    bool prefix_space; /* gpt2: lines begin with a space */

    /* SuperBPE. From 1 on: the first transition - 1 merges of stage 1 are inherited; 0: no. */
    int64_t transition;
    const char *inherit;                /* a merges.txt instead of stage 1 */
    const char *pattern_two, *like_two; /* of stage 2 */
    int64_t cut_from; /* bytes of text from which on what is too rare to be merged is cut out of it:
                         less memory, more time, the same tokens */

    int64_t budget;                          /* bytes of the process; 0: what the machine has */
    int64_t threads;                         /* 0: as affinity and cgroup quota allow */
    const volatile sig_atomic_t *interrupts; /* above 0: to save and end; null: there are none */

    /* Before merging begins; and as it goes, with what is done of how much. May be null. */
    void (*planned)(void *context, const hr_tokenize_train_plan *plan);
    void (*told)(void *context, const char *work, int64_t done, int64_t all);
    void *context;
} hr_tokenize_train_request;

/* The defaults of the field's reference: 30000 tokens, nothing else set. */
void hr_tokenize_train_default(hr_tokenize_train_request *request);

/* Trains, and writes the files into request->out.
 *
 * Repeat   equal texts and settings give equal files, whatever threads, budget and interrupts
 * Errors   USAGE        no text, a path, settings that contradict each other or the text
 *          NO_FIT       with the bytes needed and available
 *          CORRUPT      text that is not UTF-8, empty, or has a word of more than 64 MiB
 *          BROKEN       measured above planned
 *          INTERRUPTED  saved: the same request goes on
 * Threads  one at a time in a process. */
HR_MUST_CHECK hr_status hr_tokenize_train(const hr_tokenize_train_request *request,
                                          hr_tokenize_train_result *result, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
