/* SPDX-License-Identifier: Apache-2.0 */
/* train/prepare.c - the texts of a run as shards of tokens. */
#include "train/prepare.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "ckpt/weights.h"
#include "ckpt/weights_in.h"

static hr_text_desc describe(const hr_config *config)
{
    const hr_config_data data = hr_config_data_of(config);
    return (hr_text_desc){ .train = data.train_text,
                           .valid = data.valid_text,
                           .cache = config->data.cache[0] ? config->data.cache : config->train.out,
                           .tokenizer = config->data.tokenizer,
                           .vocab_size = config->model.vocab_size,
                           .words_max = config->data.words_max };
}

/* Rows of tokens need no preparing. */
static bool has_text(const hr_config *config)
{
    const hr_config_data data = hr_config_data_of(config);
    return !*data.train_rows || *data.valid_text;
}

int64_t hr_prepare_bytes(const hr_config *config)
{
    const hr_text_desc desc = describe(config);
    return has_text(config) ? hr_text_prepare_bytes(&desc) : 0;
}

static hr_status check_text(const char *path, hr_error *err)
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

/* One with shards need not be writable: they may be those of these texts, which only reading the
 * texts tells. */
static hr_status check_cache(const char *path, hr_error *err)
{
    if (!*path) return HR_OK;
    const hr_status status = hr_directory_check(path, err);
    return status == HR_FAILURE && has_shards(path) ? HR_OK : status;
}

static hr_status check_out(const char *path, hr_error *err)
{
    if (!*path) return HR_OK;
    const hr_status status = hr_directory_check(path, err);
    return status == HR_OK && hr_file_exists(path) ? hr_weights_check(path, err) : status;
}

/* Whether a path is a name in a directory as it is written: one that the run makes, it may be. */
static bool lies_in(const char *path, const char *directory)
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
        if (lies_in(path, made[i]) && !hr_file_exists(made[i])) return HR_OK;
    return hr_file_check_open(path, err);
}

hr_status hr_prepare_paths(const hr_config *config, const char *metrics, hr_error *err)
{
    const hr_config_data data = hr_config_data_of(config);
    if (!*data.train_text && !*data.train_rows)
        return hr_fail(err, HR_USAGE, "no text to train on; give data.train=FILE");
    if (has_text(config) && !config->data.cache[0] && !config->train.out[0])
        return hr_fail(err, HR_USAGE,
                       "nowhere to keep the tokens of %s; give --out DIR or data.cache=DIR",
                       *data.train_text ? data.train_text : data.valid_text);
    hr_status status = HR_OK;
    if (config->model.from[0]) status = hr_weights_in_check(config->model.from, err);
    if (status == HR_OK) status = check_text(data.train_text, err);
    if (status == HR_OK) status = check_text(data.train_rows, err);
    if (status == HR_OK) status = check_text(config->data.valid, err);
    if (status == HR_OK) status = check_out(config->train.out, err);
    if (status == HR_OK) status = check_cache(config->data.cache, err);
    return status == HR_OK ? check_metrics(config, metrics, err) : status;
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
    hr_status status = config->train.out[0] ? hr_directory_make(config->train.out, err) : HR_OK;
    if (status == HR_OK && !has_text(config)) return HR_OK;
    if (status == HR_OK)
        status = hr_memory_region_open(memory, "preparing the text", hr_prepare_bytes(config),
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
