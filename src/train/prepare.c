/* SPDX-License-Identifier: Apache-2.0 */
/* train/prepare.c - the texts of a run as shards of tokens. */
#include "train/prepare.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"

static hr_text_desc describe(const hr_config *config)
{
    return (hr_text_desc){ .train = config->data.train,
                           .valid = config->data.valid,
                           .cache = config->data.cache[0] ? config->data.cache : config->train.out,
                           .tokenizer = config->data.tokenizer,
                           .vocab_size = config->model.vocab_size,
                           .words_max = config->data.words_max };
}

int64_t hr_prepare_bytes(const hr_config *config)
{
    const hr_text_desc desc = describe(config);
    return hr_text_prepare_bytes(&desc);
}

hr_status hr_prepare_paths(const hr_config *config, hr_error *err)
{
    if (!config->data.train[0])
        return hr_fail(err, HR_USAGE, "no text to train on; give data.train=FILE");
    if (!config->data.cache[0] && !config->train.out[0])
        return hr_fail(err, HR_USAGE,
                       "nowhere to keep the tokens of %s; give --out DIR or data.cache=DIR",
                       config->data.train);
    if (!config->train.out[0]) return HR_OK;
    return hr_directory_make(config->train.out, err);
}

static bool tell_progress(void *context, const char *work, int64_t bytes_done, int64_t bytes_total)
{
    const hr_train_options *options = context;
    if (options->events.preparing)
        options->events.preparing(options->events.context, work, bytes_done, bytes_total);
    return options->interrupts && *options->interrupts > 0;
}

static void tell_part(const hr_train_events *events, const char *name, const hr_text_part *part)
{
    char line[256];
    if (!events->text || !part->shard[0]) return;
    snprintf(line, sizeof line, "%s  %lld tokens, %.2f %% in the vocabulary%s", name,
             (long long)part->tokens, 100 * (double)part->covered / (double)part->tokens,
             part->reused ? " (tokenized before)" : "");
    events->text(events->context, line);
}

hr_status hr_prepare(hr_memory *memory, const hr_config *config, const hr_train_options *options,
                     hr_text *text, hr_error *err)
{
    const hr_text_desc desc = describe(config);
    const hr_text_progress progress = { tell_progress, (void *)options };
    hr_region region;
    hr_status status = hr_memory_region_open(memory, "preparing the text", hr_prepare_bytes(config),
                                             &region, err);
    if (status != HR_OK) return status;
    memset(region.base, 0, (size_t)region.bytes); /* has what was planned, as in planning */
    status = hr_text_prepare(&desc, region.base, region.bytes, &progress, text, err);
    hr_memory_region_close(memory, &region);
    if (status != HR_OK) return status;
    tell_part(&options->events, "train", &text->train);
    tell_part(&options->events, "valid", &text->valid);
    return HR_OK;
}
