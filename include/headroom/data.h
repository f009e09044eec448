/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/data.h - what the texts of a recipe are, as a run would see them: files, documents,
 * tokens, and a look into some. */
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
    const char *name; /* file, folder or pattern, as the recipe has it */
    const char *shard;
    int64_t files, bytes; /* as they lie there */
    int64_t documents, tokens;
    int64_t covered;   /* tokens that are in the vocabulary */
    int64_t longest;   /* tokens of the longest document */
    int64_t masked;    /* tokens that are read and not learned */
    int64_t bad_lines; /* that were left out */
    int64_t windows;   /* of train.seq_len tokens */
    double share;      /* of the rows of training; of data.valid 0 */
    double passes;     /* of the run through it; of data.valid 0 */
    bool reused;       /* the shard was there already */
} hr_data_text;

/* The beginning of a document, decoded; of ids that were ids before, their numbers. */
typedef struct {
    const char *name;          /* the text's */
    int64_t token;             /* its place there */
    const char *prompt, *text; /* [prompt_bytes], what is not learned; [text_bytes], the rest */
    int64_t prompt_bytes, text_bytes;
    bool begins; /* false: the document began long before, and this is from its middle */
} hr_data_sample;

typedef struct {
    void *context;
    void (*preparing)(void *context, const char *work, int64_t bytes_done, int64_t bytes_total);
    void (*text)(void *context, const hr_data_text *text);       /* once for each */
    void (*sample)(void *context, const hr_data_sample *sample); /* HR_DATA_SAMPLES at most */
    void (*note)(void *context, const char *line);               /* about the cache */
    const volatile sig_atomic_t *interrupts; /* more than 0: stop; null: never */
    int64_t cache_limit_bytes;               /* of data.cache, as hr_cache_prune; 0: none */
} hr_data_events;

/* Makes or finds the shards of data.train and data.valid, as a run would, and tells of them.
 *
 * Errors   USAGE        no text; nowhere to keep its tokens; and as hr_train
 *          CORRUPT      content that cannot be used, or a damaged shard
 *          INTERRUPTED, NO_FIT, FAILURE
 * Threads  one at a time in a process. */
HR_MUST_CHECK hr_status hr_data_inspect(const hr_config *config, const hr_data_events *events,
                                        hr_error *err);

#ifdef __cplusplus
}
#endif
#endif
