/* SPDX-License-Identifier: Apache-2.0 */
/* data/rows.c - checks a file of rows against the recipe: the length of its sequences, the size of
 * a fixed batch, and the number of targets. */
#include "data/rows.h"

#include <stdio.h>

#include "config/config_keys.h"
#include "data/stage_texts.h"
#include "data/texts.h"

enum { PATH_SHOWN = 160 };

/* The key and path of one row file. */
typedef struct {
    const char *key, *path;
    bool fixed;
} source;

static source source_of(const hr_config *config, bool validation)
{
    const hr_config_data data = hr_config_data_of(config);
    if (validation) return (source){ "data.valid", data.valid_rows, false };
    const bool fixed = config->data.fixed_batch[0] != 0;
    return (source){ fixed ? "data.fixed_batch" : "data.train", data.train_rows, fixed };
}

static hr_status check_length(const hr_config *config, const source *from,
                              const hr_token_rows *rows, hr_error *err)
{
    if (rows->length == config->train.seq_len) return HR_OK;
    return hr_fail(err, HR_USAGE,
                   "train.seq_len is %lld, but %s %.*s has rows of %lld tokens: use "
                   "train.seq_len=%lld",
                   (long long)config->train.seq_len, from->key, PATH_SHOWN, from->path,
                   (long long)rows->length, (long long)rows->length);
}

static hr_status check_batch(const hr_config *config, const source *from, const hr_token_rows *rows,
                             hr_error *err)
{
    if (!from->fixed || rows->rows == config->train.batch) return HR_OK;
    return hr_fail(err, HR_USAGE,
                   "train.batch is %lld, but %s %.*s has %lld rows: use train.batch=%lld",
                   (long long)config->train.batch, from->key, PATH_SHOWN, from->path,
                   (long long)rows->rows, (long long)rows->rows);
}

/* ---- keys */

static hr_status adopt(hr_config *config, bool validation, int64_t *length, hr_error *err)
{
    const source from = source_of(config, validation);
    hr_token_rows rows = { .file = -1 };
    if (!*from.path) return HR_OK;
    hr_status status = hr_token_rows_open(&rows, from.path, err);
    if (status != HR_OK) return status;
    hr_token_rows_close(&rows);
    if (*length && *length != rows.length)
        return hr_fail(err, HR_USAGE,
                       "%s %.*s has rows of %lld tokens, the training data has %lld; they must be "
                       "equal",
                       from.key, PATH_SHOWN, from.path, (long long)rows.length, (long long)*length);
    *length = rows.length;
    if (!hr_config_is_given(config, "train.seq_len")) config->train.seq_len = rows.length;
    if (from.fixed && !hr_config_is_given(config, "train.batch")) config->train.batch = rows.rows;
    status = check_length(config, &from, &rows, err);
    return status == HR_OK ? check_batch(config, &from, &rows, err) : status;
}

hr_status hr_config_adopt_data(hr_config *config, hr_error *err)
{
    hr_config adopted = *config;
    int64_t length = 0;
    hr_status status = adopt(&adopted, false, &length, err);
    if (status == HR_OK) status = adopt(&adopted, true, &length, err);
    if (status == HR_OK && length && config->train.stages[0])
        status = hr_fail(err, HR_USAGE,
                         "train.stages reads texts, and the data are rows of one length: leave "
                         "train.stages out");
    if (status == HR_OK) status = hr_stage_texts_adopt(&adopted, err);
    if (status == HR_OK) status = hr_texts_read(&adopted, err);
    const bool synthetic = hr_config_is_synthetic(config);
    if (synthetic || (hr_config_has_ids(&adopted) &&
                      hr_config_tokenizer(config) == HR_TOKENIZER_WORDS)) /* words of no text */
        snprintf(adopted.data.tokenizer, sizeof adopted.data.tokenizer, "bytes");
    if (synthetic) adopted.train.sample_tokens = 0;
    if (status == HR_OK) *config = adopted;
    return status;
}

/* ---- batches */

static hr_status read_row(void *context, int64_t row, int32_t *ids, int32_t *targets,
                          int64_t *targets_count, hr_error *err)
{
    return hr_token_rows_read(context, row, ids, targets, targets_count, err);
}

static void report(const hr_train_options *options, const source *from, const hr_token_rows *rows,
                   int64_t targets)
{
    char line[256], count[HR_COUNT_BYTES], length[HR_COUNT_BYTES], real[HR_COUNT_BYTES];
    if (!options->events.text) return;
    snprintf(line, sizeof line, "%s  %s rows of %s tokens, %s targets%s",
             from->key + sizeof "data." - 1, hr_count_print(rows->rows, count),
             hr_count_print(rows->length, length), hr_count_print(targets, real),
             from->fixed ? "; used as the batch of every step" : "");
    options->events.text(options->events.context, line);
}

hr_status hr_rows_open(hr_token_rows *rows, const hr_config *config, bool validation,
                       const hr_train_options *options, hr_batch_desc *desc, hr_error *err)
{
    const source from = source_of(config, validation);
    hr_token_rows_facts facts;
    rows->vocabulary = config->model.vocab_size;
    hr_status status = hr_token_rows_open(rows, from.path, err);
    if (status != HR_OK) return status;
    status = check_length(config, &from, rows, err);
    if (status == HR_OK) status = check_batch(config, &from, rows, err);
    if (status == HR_OK) status = hr_token_rows_check(rows, options->interrupts, &facts, err);
    if (status != HR_OK) {
        hr_token_rows_close(rows);
        return status;
    }
    report(options, &from, rows, facts.targets);
    desc->rows = (hr_batch_rows){ rows->rows, rows, read_row };
    desc->fixed = from.fixed;
    return HR_OK;
}
