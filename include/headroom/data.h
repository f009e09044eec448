/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/data.h - reports the texts of a recipe as a run would read them: files, documents,
 * tokens, and samples. */
#ifndef HEADROOM_DATA_H
#define HEADROOM_DATA_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "headroom/config.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HR_DATA_SAMPLES = 10, HR_DATA_SAMPLE_TOKENS = 48 };

/* One text: data.train, a part of a mixture, or data.valid. */
typedef struct {
    const char *key;  /* "data.train" or "data.valid" */
    const char *name; /* file, folder or pattern, as in the recipe */
    const char *shard;
    int64_t files, bytes; /* files and their size on disk */
    int64_t documents, tokens;
    int64_t covered;   /* tokens with an entry in the vocabulary */
    int64_t longest;   /* tokens of the longest document */
    int64_t masked;    /* tokens without loss (prompts) */
    int64_t bad_lines; /* skipped lines */
    int64_t windows;   /* of train.seq_len tokens */
    double share;      /* share of the training rows; 0 for data.valid */
    double passes;     /* passes of the run over the text; 0 for data.valid */
    bool reused;       /* the shard already existed */
} hr_data_text;

/* The beginning of a document, decoded. For a text that was token ids before, the ids as
 * numbers. */
typedef struct {
    const char *name;          /* name of the text */
    int64_t token;             /* its position in the text, in tokens */
    const char *prompt, *text; /* [prompt_bytes] the part without loss; [text_bytes] the rest */
    int64_t prompt_bytes, text_bytes;
    bool begins; /* false: this is from the middle of a long document */
} hr_data_sample;

typedef struct {
    void *context;
    void (*preparing)(void *context, const char *work, int64_t bytes_done, int64_t bytes_total);
    void (*text)(void *context, const hr_data_text *text);       /* once per text */
    void (*sample)(void *context, const hr_data_sample *sample); /* at most HR_DATA_SAMPLES */
    void (*note)(void *context, const char *line);               /* a sentence about the cache */
    const volatile sig_atomic_t *interrupts;                     /* above 0: stop; null: none */
    /* size limit of data.cache, see hr_cache_prune; 0: none */
    int64_t cache_limit_bytes;
} hr_data_events;

/* Creates or finds the shards of data.train and data.valid, as a run would, and reports them.
 *
 * Errors   USAGE        no text; no directory for its tokens; and as hr_train
 *          CORRUPT      unusable content, or a damaged shard
 *          INTERRUPTED, NO_FIT, FAILURE
 * Threads  one call at a time per process. */
HR_MUST_CHECK hr_status hr_data_inspect(const hr_config *config, const hr_data_events *events,
                                        hr_error *err);

/* Replaces data.train and data.valid that name a corpus, such as wikitext-2, by its files in the
 * first of the folders [count] that has them. The name of a corpus that is in none of them stays;
 * what reads it then says where to get it. Plans do not depend on whether it was found. */
void hr_data_find_corpora(hr_config *config, const char *const *folders, int32_t count);

#ifdef __cplusplus
}
#endif
#endif
