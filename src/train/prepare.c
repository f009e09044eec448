/* SPDX-License-Identifier: Apache-2.0 */
/* train/prepare.c - converts the texts of a run to shards of tokens. */
#include "train/prepare.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/file.h"
#include "checkpoint/weights.h"
#include "checkpoint/weights_in.h"
#include "text/cache.h"
#include "text/tokens.h"
#include "text/word_level.h"

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

/* Files of token rows need no preparation. */
static bool has_text(const hr_config *config)
{
    const hr_config_data data = hr_config_data_of(config);
    return !*data.train_rows || *data.valid_text;
}

int64_t hr_prepare_bytes(const hr_config *config)
{
    const hr_text_desc desc = describe(config);
    const hr_corpus_desc corpus = describe_corpus(config);
    return has_text(config)
               ? hr_round_up(hr_corpus_bytes(&corpus), 64) + hr_text_prepare_bytes(&desc)
               : 0;
}

hr_status hr_prepare_read(const hr_config *config, hr_error *err)
{
    const hr_corpus_desc desc = describe_corpus(config);
    return hr_corpus_read(&desc, err);
}

int32_t hr_prepare_shards(const hr_config *config)
{
    const hr_config_data data = hr_config_data_of(config);
    hr_spec spec;
    if (hr_spec_read(&spec, "data.train", data.train_text, NULL) != HR_OK) return 1;
    return spec.weighted ? spec.count : 1;
}

static hr_status check_rows(const char *path, hr_error *err)
{
    int file;
    int64_t bytes;
    if (!*path) return HR_OK;
    const hr_status status = hr_file_open(path, &file, &bytes, err);
    if (status == HR_OK) hr_file_close(&file);
    return status;
}

static bool has_shards(const char *path)
{
    DIR *directory = opendir(path);
    if (!directory) return false;
    bool found = false;
    for (const struct dirent *entry; !found && (entry = readdir(directory));) {
        const char *suffix = strrchr(entry->d_name, '.');
        found = suffix && !strcmp(suffix, ".tokens");
    }
    closedir(directory);
    return found;
}

/* A cache with shards may be read-only: it may have the shards of these texts, which is only known
 * after reading them. */
static hr_status check_cache(const char *path, hr_error *err)
{
    if (!*path) return HR_OK;
    const hr_status status = hr_directory_check(path, err);
    return status == HR_FAILURE && has_shards(path) ? HR_OK : status;
}

static hr_status check_out(const hr_config *config, hr_error *err)
{
    const char *path = config->train.out, *from = config->model.from;
    if (!*path) return HR_OK;
    if (*from && hr_file_is_one(path, from))
        return hr_fail(err, HR_USAGE,
                       "train.out %s is the folder of model.from, whose weights would be "
                       "overwritten; give another",
                       path);
    const hr_status status = hr_directory_check(path, err);
    return status == HR_OK && hr_file_exists(path) ? hr_weights_check(path, err) : status;
}

/* Returns whether `path` is a file directly in `directory`, by its spelling: the run creates that
 * directory, so it may not exist yet. */
static bool is_directly_in(const char *path, const char *directory)
{
    const char *slash = strrchr(path, '/');
    size_t bytes = strlen(directory), above = slash ? (size_t)(slash - path) : 0;
    while (bytes && directory[bytes - 1] == '/') bytes--;
    while (above && path[above - 1] == '/') above--;
    return bytes && bytes == above && !memcmp(path, directory, bytes);
}

static hr_status check_metrics(const hr_config *config, const char *path, hr_error *err)
{
    const char *const made[] = { config->train.out, config->data.cache };
    if (!path) return HR_OK;
    for (int32_t i = 0; i < 2; i++)
        if (is_directly_in(path, made[i]) && !hr_file_exists(made[i])) return HR_OK;
    return hr_file_check_open(path, err);
}

hr_status hr_prepare_paths(const hr_config *config, const char *metrics, hr_error *err)
{
    const hr_config_data data = hr_config_data_of(config);
    if (!*data.train_text && !*data.train_rows)
        return hr_fail(err, HR_USAGE, "no text to train on; give data.train=FILE");
    hr_status status = HR_OK;
    if (config->model.from[0]) status = hr_weights_in_check(config->model.from, err);
    const hr_corpus_desc corpus = describe_corpus(config);
    if (status == HR_OK) status = hr_corpus_check(&corpus, err);
    const hr_text_desc text = describe(config);
    if (status == HR_OK && has_text(config)) status = hr_text_check_file(&text, err);
    if (status == HR_OK) status = check_rows(data.train_rows, err);
    if (status == HR_OK) status = check_rows(data.valid_rows, err);
    if (status == HR_OK && has_text(config) && !config->data.cache[0] && !config->train.out[0])
        return hr_fail(err, HR_USAGE,
                       "no directory for the tokens of %s; use --out DIR or data.cache=DIR",
                       *data.train_text ? data.train_text : data.valid_text);
    if (status == HR_OK) status = check_out(config, err);
    if (status == HR_OK) status = check_cache(config->data.cache, err);
    return status == HR_OK ? check_metrics(config, metrics, err) : status;
}

static bool report_progress(void *context, const char *work, int64_t bytes_done,
                            int64_t bytes_total)
{
    hr_trainer *trainer = context;
    const hr_train_events *events = &trainer->options->events;
    if (events->preparing) events->preparing(events->context, work, bytes_done, bytes_total);
    return hr_trainer_poll(trainer);
}

static void report_note(void *context, const char *line)
{
    const hr_trainer *trainer = context;
    const hr_train_events *events = &trainer->options->events;
    if (events->text) events->text(events->context, line);
}

hr_status hr_prepare_prune(const hr_config *config, int64_t limit_bytes,
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

static void report_part(const hr_train_events *events, const char *name, const hr_text_part *part)
{
    char line[512], more[192] = "", count[HR_COUNT_BYTES];
    int used = 0;
    if (!events->text || !part->shard[0]) return;
    if (part->documents > 1)
        used = snprintf(more, sizeof more, ", %s documents",
                        hr_count_print(part->documents, count));
    if (part->masked)
        used += snprintf(more + used, sizeof more - (size_t)used, ", %.2f %% masked from the loss",
                         100 * (double)part->masked / (double)part->tokens);
    if (part->bad_lines)
        snprintf(more + used, sizeof more - (size_t)used, ", %s bad line%s skipped",
                 hr_count_print(part->bad_lines, count), part->bad_lines == 1 ? "" : "s");
    snprintf(line, sizeof line, "%.160s  %s token%s, %.2f %% in the vocabulary%s%s", name,
             hr_count_print(part->tokens, count), part->tokens == 1 ? "" : "s",
             100 * (double)part->covered / (double)part->tokens, more,
             part->reused ? " (cached)" : "");
    events->text(events->context, line);
}

hr_status hr_prepare_open(const hr_config *config, hr_region *region, hr_prepare_texts *texts,
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

static void find_mixture(const hr_prepare_texts *texts, const hr_text *text,
                         hr_batch_mixture *mixture)
{
    const hr_corpus_view *view = hr_corpus_texts(texts->corpus);
    *mixture = (hr_batch_mixture){ .count = view->block ? view->train_count : 0,
                                   .block = view->block };
    for (int32_t i = 0; i < mixture->count; i++) {
        mixture->shards[i] = text->train[i].shard;
        mixture->shares[i] = view->train[i].share;
    }
}

static void report_texts(const hr_train_events *events, const hr_prepare_texts *texts,
                         const hr_text *text)
{
    for (int32_t i = 0; i < text->train_count; i++)
        report_part(events, text->train_count > 1 ? texts->train[i].name : "train",
                    &text->train[i]);
    report_part(events, "valid", &text->valid);
}

hr_status hr_prepare(hr_memory *memory, hr_trainer *trainer, hr_text *text,
                     hr_batch_mixture *mixture, hr_error *err)
{
    const hr_config *config = trainer->config;
    const hr_text_progress progress = { report_progress, trainer, report_note };
    hr_region region;
    hr_prepare_texts texts = { .corpus = NULL };
    hr_status status = config->train.out[0] ? hr_directory_make(config->train.out, err) : HR_OK;
    if (status == HR_OK && !has_text(config)) return HR_OK;
    if (status == HR_OK)
        status = hr_memory_region_open(memory, "tokenizing", hr_prepare_bytes(config), &region,
                                       err);
    if (status != HR_OK) return status;
    memset(region.base, 0, (size_t)region.bytes); /* touches the planned memory, as planning does */
    status = hr_prepare_open(config, &region, &texts, err);
    if (status == HR_OK)
        status = hr_text_prepare(&texts.desc, region.base + region.used, region.bytes - region.used,
                                 &progress, text, err);
    if (status == HR_OK)
        status = hr_prepare_prune(config, trainer->options->cache_limit_bytes, &progress, err);
    if (status == HR_OK) find_mixture(&texts, text, mixture);
    if (status == HR_OK) report_texts(&trainer->options->events, &texts, text);
    hr_corpus_close(&texts.corpus);
    hr_memory_region_close(memory, &region);
    return status;
}

/* ---- sidecar files */

enum { COPY_BYTES = 4096 };

/* Other software uses generation_config.json when it generates with the model. */
static hr_status copy_generation_config(const hr_config *config, hr_error *err)
{
    static const char name[] = "generation_config.json";
    char path[PATH_MAX], buffer[COPY_BYTES];
    if (!config->model.from[0]) return HR_OK;
    const hr_status status = hr_path_join(config->model.from, name, path, sizeof path, err);
    if (status != HR_OK || !hr_file_exists(path)) return status;
    return hr_file_copy(path, config->train.out, name, buffer, sizeof buffer, err);
}

hr_status hr_prepare_sidecars(const hr_trainer *trainer, hr_error *err)
{
    const hr_config *config = trainer->config;
    const hr_tokenizer_kind kind = hr_config_tokenizer(config);
    char buffer[COPY_BYTES];
    if (!config->train.out[0]) return HR_OK;
    const hr_status status = copy_generation_config(config, err);
    if (status != HR_OK || !has_text(config)) return status;
    if (kind == HR_TOKENIZER_FILE)
        return hr_tokens_copy_files(config->data.tokenizer, config->train.out, buffer,
                                    sizeof buffer, err);
    return kind == HR_TOKENIZER_WORDS
               ? hr_word_level_write(trainer->vocabulary, config->train.out, err)
               : HR_OK;
}

/* ---- identification */

static void identify_shard(const char *shard, hr_hash *hash)
{
    const char *name = strrchr(shard, '/');
    name = name ? name + 1 : shard;
    hr_hash_add(hash, name, (int64_t)strlen(name) + 1);
}

static hr_status identify_rows(hr_trainer *trainer, const char *path, hr_hash *hash, hr_error *err)
{
    char piece[16 << 10];
    int file = -1;
    int64_t bytes = 0;
    if (!*path) return HR_OK;
    hr_status status = hr_file_open(path, &file, &bytes, err);
    for (int64_t at = 0; at < bytes && status == HR_OK; at += (int64_t)sizeof piece) {
        const int64_t part = hr_min((int64_t)sizeof piece, bytes - at);
        status = hr_file_read(file, path, at, piece, part, err);
        if (status != HR_OK) break;
        hr_hash_add(hash, piece, part);
        if (report_progress(trainer, "reading the rows", at + part, bytes))
            status = hr_fail(err, HR_INTERRUPTED,
                             "interrupted before the first step; nothing was saved");
    }
    hr_file_close(&file);
    return status;
}

hr_status hr_prepare_identify(hr_trainer *trainer, const hr_text *text,
                              char train_text[HR_HASH_BYTES], char valid_text[HR_HASH_BYTES],
                              hr_error *err)
{
    hr_hash hash;
    const hr_config_data data = hr_config_data_of(trainer->config);
    hr_hash_begin(&hash);
    for (int32_t i = 0; i < text->train_count; i++) identify_shard(text->train[i].shard, &hash);
    hr_status status = identify_rows(trainer, data.train_rows, &hash, err);
    hr_hash_print(&hash, train_text);
    if (status != HR_OK) return status;
    hr_hash_begin(&hash);
    identify_shard(text->valid.shard, &hash);
    status = identify_rows(trainer, data.valid_rows, &hash, err);
    hr_hash_print(&hash, valid_text);
    return status;
}
