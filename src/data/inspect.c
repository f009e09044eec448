/* SPDX-License-Identifier: Apache-2.0 */
/* data/inspect.c - reports the shards of a recipe and samples of them. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/writer.h"
#include "data/paths.h"
#include "data/texts.h"
#include "headroom/data.h"
#include "mem/memory.h"
#include "text/shard.h"
#include "text/word_vocabulary.h"

enum {
    LOOKBACK_TOKENS = 1 << 16, /* tokens that are searched for the start of a document */
    MARKS = 512,
    TEXT_BYTES = 4096
};

typedef struct {
    const hr_config *config;
    const hr_data_events *events;
    hr_error *err;
    hr_memory memory;
    hr_region region;
    hr_texts texts;
    hr_text text;
    hr_vocabulary *vocabulary; /* null: the data are ids already */
    void *shard_memory;
} inspection;

static int64_t inspect_bytes(const hr_config *config)
{
    return hr_round_up(hr_texts_bytes(config), 64) + hr_shard_bytes() +
           hr_round_up(hr_vocabulary_bytes(hr_config_tokenizer(config), config->model.vocab_size),
                       64);
}

static bool report_progress(void *context, const char *work, int64_t bytes_done,
                            int64_t bytes_total)
{
    const hr_data_events *events = context;
    if (events->preparing) events->preparing(events->context, work, bytes_done, bytes_total);
    return events->interrupts && *events->interrupts > 0;
}

static void report_note(void *context, const char *line)
{
    const hr_data_events *events = context;
    if (events->note) events->note(events->context, line);
}

/* ---- texts */

static int64_t windows_of(const inspection *in, const hr_text_part *part)
{
    return hr_max(part->tokens - 1, 0) / in->config->train.seq_len;
}

/* Number of rows of the run: from its steps, or from epochs of all windows in whole batches. */
static int64_t rows_of(const inspection *in)
{
    const int64_t batch = in->config->train.batch;
    int64_t windows = 0, rows = 0;
    for (int32_t i = 0; i < in->text.train_count; i++)
        windows += windows_of(in, &in->text.train[i]);
    const int64_t steps = in->config->train.steps;
    if (steps) return hr_checked_mul(steps, batch, &rows) ? rows : INT64_MAX;
    return hr_checked_mul(windows / batch * batch, in->config->train.epochs, &rows) ? rows
                                                                                    : INT64_MAX;
}

static void report_text(const inspection *in, const char *key, const hr_corpus_text *from,
                        const hr_text_part *part, double share)
{
    const int64_t windows = windows_of(in, part);
    const hr_data_text info = {
        .key = key,
        .name = from->documents.name,
        .shard = part->shard,
        .files = from->files,
        .bytes = from->bytes,
        .documents = part->documents,
        .tokens = part->tokens,
        .covered = part->covered,
        .longest = part->longest,
        .masked = part->masked,
        .bad_lines = part->bad_lines,
        .windows = windows,
        .share = share,
        .passes = windows ? share * (double)rows_of(in) / (double)windows : 0,
        .reused = part->reused,
    };
    if (in->events->text) in->events->text(in->events->context, &info);
}

static double share_of(const hr_corpus_view *view, int32_t part)
{
    return view->block ? (double)view->train[part].share / (double)view->block : 1;
}

static void report_texts(const inspection *in)
{
    const hr_corpus_view *view = hr_corpus_texts(in->texts.corpus);
    for (int32_t i = 0; i < view->train_count; i++)
        report_text(in, "data.train", &view->train[i], &in->text.train[i], share_of(view, i));
    if (view->has_valid) report_text(in, "data.valid", &view->valid, &in->text.valid, 0);
}

/* ---- samples */

/* Finds the first token of the document that holds token `at`; `at` itself if it is too far
 * back. */
static hr_status find_beginning(inspection *in, hr_shard *shard, int64_t at, int64_t *first,
                                bool *begins)
{
    uint8_t marks[MARKS];
    *first = at;
    *begins = false;
    for (int64_t end = at + 1; end > 0 && at - end < LOOKBACK_TOKENS;) {
        const int64_t begin = hr_max(end - MARKS, 0);
        const hr_status status = hr_shard_marks(shard, begin, end - begin, marks, in->err);
        if (status != HR_OK) return status;
        for (int64_t i = end - begin - 1; i >= 0; i--) {
            if (!(marks[i] & HR_TOKEN_BEGINS)) continue;
            *first = begin + i;
            *begins = true;
            return HR_OK;
        }
        end = begin;
    }
    return HR_OK;
}

static hr_status decode(inspection *in, const int32_t *ids, int64_t count, char *text,
                        int64_t *bytes)
{
    if (in->vocabulary)
        return hr_vocabulary_decode(in->vocabulary, ids, count, text, TEXT_BYTES, bytes, in->err);
    hr_writer writer = { text, TEXT_BYTES };
    for (int64_t i = 0; i < count; i++) hr_put(&writer, i ? " %d" : "%d", ids[i]);
    *bytes = writer.used;
    return HR_OK;
}

/* The sample for token `at`: the document that holds it, or if an earlier sample is of that one,
 * what follows from `at` on. `shown`: the tokens before are in earlier samples. */
static hr_status report_sample(inspection *in, const char *name, hr_shard *shard, int64_t at,
                               int64_t *shown)
{
    int32_t ids[HR_DATA_SAMPLE_TOKENS];
    uint8_t marks[HR_DATA_SAMPLE_TOKENS];
    char prompt[TEXT_BYTES], text[TEXT_BYTES];
    hr_data_sample sample = { .name = name, .prompt = prompt, .text = text };
    hr_status status = find_beginning(in, shard, at, &sample.token, &sample.begins);
    if (status != HR_OK || at < *shown) return status;
    if (sample.token < *shown) {
        sample.token = at;
        sample.begins = false;
    }
    int64_t count = hr_min(HR_DATA_SAMPLE_TOKENS, hr_shard_view(shard)->tokens - sample.token);
    int64_t masked = 0;
    status = hr_shard_read(shard, sample.token, count, ids, in->err);
    if (status == HR_OK) status = hr_shard_marks(shard, sample.token, count, marks, in->err);
    if (status != HR_OK) return status;
    for (int64_t i = 1; i < count; i++)
        if (marks[i] & HR_TOKEN_BEGINS) count = i;
    *shown = sample.token + count;
    while (masked < count && marks[masked] & HR_TOKEN_MASKED) masked++;
    status = decode(in, ids, masked, prompt, &sample.prompt_bytes);
    if (status == HR_OK)
        status = decode(in, ids + masked, count - masked, text, &sample.text_bytes);
    if (status == HR_OK && in->events->sample) in->events->sample(in->events->context, &sample);
    return status;
}

/* Reports samples from evenly spaced positions in the training rows. */
static hr_status report_samples(inspection *in)
{
    const hr_corpus_view *view = hr_corpus_texts(in->texts.corpus);
    hr_status status = HR_OK;
    double before = 0;
    for (int32_t i = 0; i < in->text.train_count && status == HR_OK; i++) {
        const hr_text_part *part = &in->text.train[i];
        const double share = share_of(view, i);
        hr_shard *shard = NULL;
        int64_t shown = 0;
        status = hr_shard_open(&shard, in->shard_memory, part->shard, in->err);
        for (int32_t k = 0; k < HR_DATA_SAMPLES && status == HR_OK; k++) {
            const double inside = ((k + 0.5) / HR_DATA_SAMPLES - before) / share;
            if (inside >= 0 && inside < 1)
                status = report_sample(in, in->texts.train[i].name, shard,
                                       (int64_t)(inside * (double)part->tokens), &shown);
        }
        hr_shard_close(&shard);
        before += share;
    }
    return status;
}

/* ---- inspection */

static hr_status prepare(inspection *in)
{
    const hr_text_progress progress = { report_progress, (void *)in->events, report_note };
    return hr_texts_prepare(in->config, &in->region, in->events->cache_limit_bytes, &progress,
                            &in->texts, &in->text, in->err);
}

/* Takes the tables for samples from the region, behind those of the corpus. */
static hr_status open_vocabulary(inspection *in)
{
    const hr_config *config = in->config;
    in->shard_memory = hr_region_take_raw(&in->region, 1, hr_shard_bytes());
    void *memory = hr_region_take_raw(
        &in->region, 1, hr_vocabulary_bytes(hr_config_tokenizer(config), config->model.vocab_size));
    HR_ASSERT(in->shard_memory && memory);
    if (in->text.train_count && in->texts.train->is_ids) return HR_OK;
    return hr_vocabulary_open(&in->vocabulary, memory, hr_config_tokenizer(config),
                              config->model.vocab_size, in->text.vocabulary, in->err);
}

static hr_status inspect(inspection *in)
{
    const hr_config_data data = hr_config_data_of(in->config);
    hr_status status = hr_paths_check(in->config, NULL, in->err);
    if (status == HR_OK && !*data.train_text && !*data.valid_text)
        status = hr_fail(in->err, HR_USAGE, "%.200s: has rows of token ids, not text",
                         data.train_rows);
    if (status == HR_OK) status = hr_memory_open(&in->memory, in->err);
    if (status == HR_OK)
        status = hr_memory_region_open(&in->memory, "scanning the text", inspect_bytes(in->config),
                                       &in->region, in->err);
    if (status == HR_OK) status = prepare(in);
    if (status == HR_OK) status = open_vocabulary(in);
    if (status == HR_OK) report_texts(in);
    return status == HR_OK ? report_samples(in) : status;
}

hr_status hr_data_inspect(const hr_config *config, const hr_data_events *events, hr_error *err)
{
    inspection in = { .config = config, .events = events, .err = err };
    const hr_status status = inspect(&in);
    hr_vocabulary_close(&in.vocabulary);
    hr_corpus_close(&in.texts.corpus);
    hr_text_release(&in.text);
    hr_memory_close(&in.memory);
    return status;
}
