/* SPDX-License-Identifier: Apache-2.0 */
/* data/sample.c - the prompt is the start of a text of the run. */
#include "data/sample.h"

#include <string.h>

#include "base/checked.h"
#include "text/batch.h"

enum { PROMPT_TOKENS = 16, TEXT_BYTES = 16 << 10 };

static int64_t most_tokens(const hr_config *config)
{
    return PROMPT_TOKENS + config->train.sample_tokens;
}

int64_t hr_sample_bytes(const hr_config *config)
{
    return most_tokens(config) * (int64_t)sizeof(int32_t) + TEXT_BYTES;
}

hr_status hr_sample_place(hr_region *region, const hr_config *config, hr_sample *sample,
                          hr_error *err)
{
    sample->most = most_tokens(config);
    sample->ids = hr_region_take(region, sample->most, sizeof *sample->ids);
    sample->text = hr_region_take(region, TEXT_BYTES, 1);
    if (!sample->ids || !sample->text) return hr_fail(err, HR_FAILURE, "out of memory for samples");
    return HR_OK;
}

hr_status hr_sample_read_prompt(hr_sample *sample, const hr_config *config, const char *shard,
                                hr_region *region, hr_error *err)
{
    int32_t targets[PROMPT_TOKENS];
    int64_t filled;
    hr_batches *batches = NULL;
    const hr_batch_desc desc = { .shard = shard,
                                 .name = shard,
                                 .vocab_size = config->model.vocab_size,
                                 .T = hr_min(PROMPT_TOKENS, config->train.seq_len),
                                 .batch = 1 };
    const int64_t kept = region->used;
    hr_status status = hr_batches_open(&batches, hr_region_take(region, hr_batches_bytes(1), 1),
                                       &desc, err);
    if (status == HR_OK)
        status = hr_batches_fill(batches, 0, 0, 1, sample->ids, targets, &filled, err);
    hr_batches_close(&batches);
    region->used = kept;
    sample->count = sample->prompt = desc.T;
    return status;
}

int64_t hr_sample_window(const hr_sample *sample, int64_t T, int32_t *to)
{
    const int64_t half = hr_max(T / 2, 1);
    int64_t first = 0;
    while (sample->count - first > T) first += half;
    memcpy(to, sample->ids + first, (size_t)(sample->count - first) * sizeof *to);
    return sample->count - first;
}

hr_status hr_sample_take(hr_sample *sample, hr_vocabulary *vocabulary, int64_t *bytes,
                         hr_error *err)
{
    const int64_t count = sample->count;
    sample->count = sample->prompt;
    return hr_vocabulary_decode(vocabulary, sample->ids, count, sample->text, TEXT_BYTES, bytes,
                                err);
}
