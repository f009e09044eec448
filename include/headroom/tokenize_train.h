/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/tokenize_train.h - trains a tokenizer on text: byte-level BPE or SuperBPE.
 *
 * For equal settings, the merges and the file equal those of Hugging Face tokenizers. All memory is
 * planned before the first merge. An interrupted run can resume. */
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
    int32_t stage;                    /* 1, or 2 with SuperBPE */
    int64_t text_bytes, lines, words; /* lines of the text; distinct words, or words of stage 2 */
    int64_t slots;                    /* initial symbols that a merge may use, plus one */
    int64_t tables_bytes;             /* planned memory while the text is counted and written */
    int64_t engine_bytes;             /* planned memory while it merges */
    int64_t process_bytes_planned;
    bool resumed;
} hr_tokenize_train_plan;

typedef struct {
    hr_tokenize_train_plan plan; /* of the last stage */
    int64_t process_bytes_measured;
    int64_t tokens, merges; /* of the written vocabulary */
    /* stage 2: merges inherited from stage 1; of these, merges without a pair in the text */
    int64_t inherited, dropped;
    bool saved;       /* an interrupted run saved its state */
    int64_t recounts; /* recounts of all pairs, for lack of space in the tables */
    double look_seconds, count_seconds, build_seconds, merge_seconds, write_seconds;
} hr_tokenize_train_result;

typedef struct {
    size_t size;              /* of this struct */
    const char *const *files; /* [file_count] paths of UTF-8 text */
    int32_t file_count;
    const char *out; /* output folder: tokenizer.json, merges.txt, vocab.json */

    int64_t vocab_size;       /* target number of tokens; fewer if the text has no more pairs */
    int64_t min_frequency;    /* smallest frequency of a pair that is merged */
    int64_t limit_alphabet;   /* largest number of characters in the alphabet; 0: no limit */
    int64_t max_token_length; /* in characters; longer tokens are not created; 0: no limit */
    /* characters always in the alphabet; "bytes": all 256; null: none */
    const char *initial_alphabet;
    const char *const *special_tokens; /* [special_count]; they get the first ids */
    int32_t special_count;

    /* The pre-tokenizer: gpt2, cl100k, qwen, o200k, super, super-paper, or a regular expression;
     * null: gpt2, or super with two stages. Alternatively `like`: a tokenizer.json whose
     * normalizer, pre-tokenizer, post-processor and decoder are taken. */
    const char *pattern, *like;
    bool prefix_space; /* gpt2: add a space before each line */

    /* SuperBPE, from 1 on: stage 2 inherits the first transition - 1 merges of stage 1; 0: no stage
     * 2. */
    int64_t transition;
    const char *inherit;                /* a merges.txt that replaces stage 1 */
    const char *pattern_two, *like_two; /* for stage 2 */
    /* in bytes of text: from this size on, symbols too rare to merge are removed from the working
     * text. Less memory, more time, the same tokens */
    int64_t cut_from;

    /* memory limit of the process in bytes; 0: the memory of the machine */
    int64_t budget;
    int64_t threads;                         /* 0: from CPU affinity and cgroup quota */
    const volatile sig_atomic_t *interrupts; /* above 0: save and stop; null: none */

    /* `planned` is called before merging, `progress` reports the progress. Either may be null. */
    void (*planned)(void *context, const hr_tokenize_train_plan *plan);
    void (*progress)(void *context, const char *work, int64_t done, int64_t all);
    void *context;
} hr_tokenize_train_request;

/* The defaults of Hugging Face tokenizers: 30000 tokens, nothing else set. */
void hr_tokenize_train_default(hr_tokenize_train_request *request);

/* Trains a tokenizer and writes its files into request->out.
 *
 * Repeat   equal texts and settings give equal files, whatever the threads, budget and interrupts
 * Errors   USAGE        no text, a bad path, settings that contradict each other or the text
 *          NO_FIT       with the bytes needed and available
 *          CORRUPT      text that is empty, not UTF-8, or has a word longer than 64 MiB
 *          BROKEN       measured memory above the plan
 *          INTERRUPTED  the state is saved; the same request resumes
 * Threads  one call at a time per process. */
HR_MUST_CHECK hr_status hr_tokenize_train(const hr_tokenize_train_request *request,
                                          hr_tokenize_train_result *result, hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
