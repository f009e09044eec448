/* SPDX-License-Identifier: Apache-2.0 */
/* data/paths.c - checks the paths of a recipe without creating anything. */
#include "data/paths.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/directory.h"
#include "base/file.h"
#include "checkpoint/weights.h"
#include "checkpoint/weights_in.h"
#include "corpus/kind.h"
#include "corpus/spec.h"
#include "data/texts.h"

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

/* Whether `path`, which may not exist yet, is a folder or inside it. */
static bool is_inside(const char *path, const char *folder)
{
    char start[HR_PATH_BYTES], place[PATH_MAX], around[PATH_MAX];
    snprintf(start, sizeof start, "%s", path);
    while (!realpath(start, place)) {
        char *slash = strrchr(start, '/');
        if (!strcmp(start, "/") || !strcmp(start, ".")) return false;
        if (slash && slash > start) *slash = 0;
        else strcpy(start, slash ? "/" : ".");
    }
    if (!realpath(folder, around)) return false;
    const size_t bytes = strcmp(around, "/") ? strlen(around) : 0;
    return !strncmp(place, around, bytes) && (place[bytes] == '/' || !place[bytes]);
}

/* A run that writes to a folder that is read would read its own files when it resumes. */
static hr_status check_part(const char *option, const char *path, const char *key, const char *text,
                            hr_error *err)
{
    char folder[HR_PATH_BYTES];
    hr_spec spec;
    hr_status status = hr_spec_read(&spec, key, text, err);
    for (int32_t i = 0; i < spec.count && status == HR_OK; i++) {
        const hr_spec_part *part = &spec.parts[i];
        if (!hr_spec_is_folder(part)) continue;
        snprintf(folder, sizeof folder, "%.*s", (int)part->path_bytes, part->path);
        if (is_inside(path, folder))
            status = hr_fail(err, HR_USAGE,
                             "%s %s is in %s, which %s reads with all that is in it; give "
                             "another folder",
                             option, path, folder, key);
    }
    return status;
}

static hr_status check_outside(const hr_config *config, const char *option, const char *path,
                               hr_error *err)
{
    const hr_config_data data = hr_config_data_of(config);
    const hr_status status = check_part(option, path, "data.train", data.train_text, err);
    return status == HR_OK ? check_part(option, path, "data.valid", data.valid_text, err) : status;
}

static hr_status check_out(const hr_config *config, hr_error *err)
{
    const char *path = config->train.out, *from = config->model.from;
    if (!*path) return HR_OK;
    hr_status status = check_outside(config, "--out", path, err);
    if (status != HR_OK) return status;
    if (*from && hr_file_is_one(path, from))
        return hr_fail(err, HR_USAGE,
                       "train.out %s is the folder of model.from, whose weights would be "
                       "overwritten; give another",
                       path);
    status = hr_directory_check(path, err);
    return status == HR_OK && hr_file_exists(path) ? hr_weights_check(config, path, err) : status;
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
    if (hr_file_sort_of(path, (int64_t)strlen(path)).known) {
        const hr_status status = check_outside(config, "--metrics", path, err);
        if (status != HR_OK) return status;
    }
    return hr_file_check_open(path, err);
}

hr_status hr_paths_check(const hr_config *config, const char *metrics, hr_error *err)
{
    const hr_config_data data = hr_config_data_of(config);
    if (!*data.train_text && !*data.train_rows)
        return hr_fail(err, HR_USAGE,
                       "no text to train on; give data.train=FILE, or data.train=synthetic");
    hr_status status = HR_OK;
    if (config->model.from[0]) status = hr_weights_in_check(config->model.from, err);
    if (status == HR_OK) status = hr_texts_check(config, err);
    if (status == HR_OK) status = check_rows(data.train_rows, err);
    if (status == HR_OK) status = check_rows(data.valid_rows, err);
    if (status == HR_OK && hr_texts_any(config) && !config->data.cache[0] && !config->train.out[0])
        return hr_fail(err, HR_USAGE,
                       "no directory for the tokens of %s; use --out DIR or data.cache=DIR",
                       *data.train_text ? data.train_text : data.valid_text);
    if (status == HR_OK) status = check_out(config, err);
    if (status == HR_OK) status = check_cache(config->data.cache, err);
    return status == HR_OK ? check_metrics(config, metrics, err) : status;
}
