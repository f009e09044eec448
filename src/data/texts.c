/* SPDX-License-Identifier: Apache-2.0 */
/* data/texts.c - describes and opens the texts that a recipe names. */
#include "data/texts.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "text/cache.h"
#include "text/tokens.h"

static hr_text_desc describe(const hr_config *config)
{
    int64_t document_end = HR_DOCUMENT_END_AUTO;
    if (!hr_config_document_end(config, &document_end) || document_end == HR_DOCUMENT_END_AUTO)
        document_end = hr_text_document_end(hr_config_tokenizer(config));
    return (hr_text_desc){ .cache = config->data.cache[0] ? config->data.cache : config->train.out,
                           .tokenizer = hr_config_tokenizer(config),
                           .file = config->data.tokenizer,
                           .vocab_size = config->model.vocab_size,
                           .words_max = config->data.words_max,
                           .ids_only = hr_config_has_ids(config),
                           .document_end = document_end };
}

/* For texts that are ids already, only the recipe says which id ends a document. */
static hr_corpus_desc describe_corpus(const hr_config *config)
{
    const hr_config_data data = hr_config_data_of(config);
    int64_t document_end = HR_DOCUMENT_END_NONE;
    if (!hr_config_document_end(config, &document_end) || document_end < 0)
        document_end = HR_DOCUMENT_END_NONE;
    return (hr_corpus_desc){ .train = data.train_text,
                             .valid = data.valid_text,
                             .text_field = config->data.text_field,
                             .prompt_field = config->data.prompt_field,
                             .completion_field = config->data.completion_field,
                             .skip_bad_lines = config->data.bad_lines == HR_BAD_LINES_SKIP,
                             .vocab_size = config->model.vocab_size,
                             .document_end = document_end };
}

bool hr_texts_any(const hr_config *config)
{
    const hr_config_data data = hr_config_data_of(config);
    return !*data.train_rows || *data.valid_text;
}

int64_t hr_texts_bytes(const hr_config *config)
{
    const hr_text_desc desc = describe(config);
    const hr_corpus_desc corpus = describe_corpus(config);
    return hr_texts_any(config)
               ? hr_round_up(hr_corpus_bytes(&corpus), 64) + hr_text_prepare_bytes(&desc)
               : 0;
}

hr_status hr_texts_read(const hr_config *config, hr_error *err)
{
    const hr_corpus_desc desc = describe_corpus(config);
    return hr_corpus_read(&desc, err);
}

hr_status hr_texts_check(const hr_config *config, hr_error *err)
{
    const hr_corpus_desc corpus = describe_corpus(config);
    const hr_text_desc text = describe(config);
    const hr_status status = hr_corpus_check(&corpus, err);
    return status == HR_OK && hr_texts_any(config) ? hr_text_check_file(&text, err) : status;
}

int32_t hr_texts_shards(const hr_config *config)
{
    const hr_config_data data = hr_config_data_of(config);
    hr_spec spec;
    if (hr_spec_read(&spec, "data.train", data.train_text, NULL) != HR_OK) return 1;
    return spec.weighted ? spec.count : 1;
}

static hr_status open_texts(const hr_config *config, hr_region *region, hr_texts *texts,
                            hr_error *err)
{
    const hr_corpus_desc desc = describe_corpus(config);
    const int64_t bytes = hr_round_up(hr_corpus_bytes(&desc), 64);
    void *memory = hr_region_take_raw(region, 1, bytes);
    hr_status status = hr_corpus_check(&desc, err);
    if (status == HR_OK) status = hr_corpus_open(&texts->corpus, memory, bytes, &desc, err);
    if (status != HR_OK) return status;
    const hr_corpus_view *view = hr_corpus_texts(texts->corpus);
    for (int32_t i = 0; i < view->train_count; i++) texts->train[i] = view->train[i].documents;
    texts->desc = describe(config);
    texts->desc.train = texts->train;
    texts->desc.train_count = view->train_count;
    texts->desc.valid = view->has_valid ? &view->valid.documents : NULL;
    if (config->train.sample_tokens && view->train_count && texts->train->is_ids)
        return hr_fail(err, HR_USAGE,
                       "train.sample_tokens is %lld, but the tokenizer of the ids in %.200s is not "
                       "known: use train.sample_tokens=none",
                       (long long)config->train.sample_tokens, texts->train->name);
    return HR_OK;
}

/* Removes files from data.cache, if the recipe has one, to stay within its limit; files in use
 * stay. */
static hr_status prune(const hr_config *config, int64_t limit_bytes,
                       const hr_text_progress *progress, hr_error *err)
{
    char line[160], removed[64], limit[64];
    hr_cache_report report;
    if (limit_bytes <= 0 || !config->data.cache[0]) return HR_OK;
    const hr_status status = hr_cache_prune(config->data.cache, limit_bytes, &report, err);
    if (status != HR_OK || !report.removed || !progress->note) return status;
    snprintf(line, sizeof line, "cache: removed %lld unused file%s, %s; the limit is %s",
             (long long)report.removed, report.removed == 1 ? "" : "s",
             hr_bytes_print(report.removed_bytes, removed), hr_bytes_print(limit_bytes, limit));
    progress->note(progress->context, line);
    return HR_OK;
}

hr_status hr_texts_prepare(const hr_config *config, hr_region *region, int64_t limit_bytes,
                           const hr_text_progress *progress, hr_texts *texts, hr_text *text,
                           hr_error *err)
{
    hr_status status = open_texts(config, region, texts, err);
    if (status == HR_OK)
        status = hr_text_prepare(&texts->desc, region->base + region->used,
                                 region->bytes - region->used, progress, text, err);
    return status == HR_OK ? prune(config, limit_bytes, progress, err) : status;
}
