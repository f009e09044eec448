/* SPDX-License-Identifier: Apache-2.0 */
/* data/prepare.c - converts the texts of a run to shards of tokens. */
#include "data/prepare.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/path.h"
#include "data/texts.h"
#include "text/tokens.h"
#include "text/word_level.h"

static void report_part(const hr_text_progress *progress, const char *name,
                        const hr_text_part *part)
{
    char line[512], more[192] = "", count[HR_COUNT_BYTES];
    int used = 0;
    if (!progress->note || !part->shard[0]) return;
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
    progress->note(progress->context, line);
}

static void find_mixture(const hr_texts *texts, const hr_text *text, hr_batch_mixture *mixture)
{
    const hr_corpus_view *view = hr_corpus_texts(texts->corpus);
    *mixture = (hr_batch_mixture){ .count = view->block ? view->train_count : 0,
                                   .block = view->block };
    for (int32_t i = 0; i < mixture->count; i++) {
        mixture->shards[i] = text->train[i].shard;
        mixture->shares[i] = view->train[i].share;
    }
}

static void report_texts(const hr_text_progress *progress, const hr_texts *texts,
                         const hr_text *text)
{
    for (int32_t i = 0; i < text->train_count; i++)
        report_part(progress, text->train_count > 1 ? texts->train[i].name : "train",
                    &text->train[i]);
    report_part(progress, "valid", &text->valid);
}

hr_status hr_prepare(hr_memory *memory, const hr_config *config, int64_t limit_bytes,
                     const hr_text_progress *progress, hr_text *text, hr_batch_mixture *mixture,
                     hr_error *err)
{
    hr_region region;
    hr_texts texts = { .corpus = NULL };
    hr_status status = config->train.out[0] ? hr_directory_make(config->train.out, err) : HR_OK;
    if (status == HR_OK && !hr_texts_any(config)) return HR_OK;
    if (status == HR_OK)
        status = hr_memory_region_open(memory, "tokenizing", hr_texts_bytes(config), &region, err);
    if (status != HR_OK) return status;
    memset(region.base, 0, (size_t)region.bytes); /* touches the planned memory, as planning does */
    status = hr_texts_prepare(config, &region, limit_bytes, progress, &texts, text, err);
    if (status == HR_OK) find_mixture(&texts, text, mixture);
    if (status == HR_OK) report_texts(progress, &texts, text);
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

hr_status hr_prepare_sidecars(const hr_config *config, hr_vocabulary *vocabulary, hr_error *err)
{
    const hr_tokenizer_kind kind = hr_config_tokenizer(config);
    char buffer[COPY_BYTES];
    if (!config->train.out[0]) return HR_OK;
    const hr_status status = copy_generation_config(config, err);
    if (status != HR_OK || !hr_texts_any(config)) return status;
    if (kind == HR_TOKENIZER_FILE)
        return hr_tokens_copy_files(config->data.tokenizer, config->train.out, buffer,
                                    sizeof buffer, err);
    return kind == HR_TOKENIZER_WORDS ? hr_word_level_write(vocabulary, config->train.out, err)
                                      : HR_OK;
}

/* ---- identification */

static void identify_shard(const char *shard, hr_hash *hash)
{
    const char *name = strrchr(shard, '/');
    name = name ? name + 1 : shard;
    hr_hash_add(hash, name, (int64_t)strlen(name) + 1);
}

/* A shard is named after its kind, the hash of its tokenizer file and that of its text. */
static void take_tokenizer(const char *shard, char tokenizer[HR_HASH_BYTES])
{
    const char *name = strrchr(shard, '/');
    (void)sscanf(name ? name + 1 : shard, "tokens-%32[0-9a-f]-", tokenizer);
}

static hr_status identify_rows(const hr_text_progress *progress, const char *path, hr_hash *hash,
                               hr_error *err)
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
        if (progress->stop(progress->context, "reading the rows", at + part, bytes))
            status = hr_fail(err, HR_INTERRUPTED,
                             "interrupted before the first step; nothing was saved");
    }
    hr_file_close(&file);
    return status;
}

hr_status hr_prepare_identify(const hr_config *config, const hr_text_progress *progress,
                              const hr_text *text, hr_manifest_texts *identity, hr_error *err)
{
    hr_hash hash;
    const hr_config_data data = hr_config_data_of(config);
    hr_hash_begin(&hash);
    for (int32_t i = 0; i < text->train_count; i++) identify_shard(text->train[i].shard, &hash);
    hr_status status = identify_rows(progress, data.train_rows, &hash, err);
    hr_hash_print(&hash, identity->train);
    if (status != HR_OK) return status;
    hr_hash_begin(&hash);
    identify_shard(text->valid.shard, &hash);
    status = identify_rows(progress, data.valid_rows, &hash, err);
    hr_hash_print(&hash, identity->valid);
    *identity->tokenizer = 0;
    if (hr_config_tokenizer(config) == HR_TOKENIZER_FILE)
        take_tokenizer(text->train_count ? text->train->shard : text->valid.shard,
                       identity->tokenizer);
    return status;
}
