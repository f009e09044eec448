/* SPDX-License-Identifier: Apache-2.0 */
/* data/sample.h - the text that a run samples from its model: the prompt and what follows it. */
#ifndef HR_DATA_SAMPLE_H
#define HR_DATA_SAMPLE_H

#include "base/region.h"
#include "config/config.h"
#include "text/word_vocabulary.h"

typedef struct {
    int32_t *ids;          /* [most], the first `count` valid */
    int64_t count, prompt; /* tokens so far; of the prompt */
    int64_t most;
    char *text; /* the decoded text */
} hr_sample;

/* Bytes of the region of hr_sample_place. Pure. */
int64_t hr_sample_bytes(const hr_config *config);

/* Places the buffers. Errors FAILURE  the region is too small. */
HR_MUST_CHECK hr_status hr_sample_place(hr_region *region, const hr_config *config,
                                        hr_sample *sample, hr_error *err);

/* Reads the prompt, the first tokens of a shard. The region lends hr_batches_bytes(1). Errors as
 * hr_batches_open. */
HR_MUST_CHECK hr_status hr_sample_read_prompt(hr_sample *sample, const hr_config *config,
                                              const char *shard, hr_region *region, hr_error *err);

/* Copies the end of the text so far, the input of the next token, and returns its length, at most
 * T. When the window is full it moves by half, so that most tokens see at least half a window. */
int64_t hr_sample_window(const hr_sample *sample, int64_t T, int32_t *to);

/* Decodes the text and goes back to the prompt.
 *   bytes  out: of sample->text
 * Errors as hr_vocabulary_decode. */
HR_MUST_CHECK hr_status hr_sample_take(hr_sample *sample, hr_vocabulary *vocabulary, int64_t *bytes,
                                       hr_error *err);

#endif
