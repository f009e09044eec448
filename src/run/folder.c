/* SPDX-License-Identifier: Apache-2.0 */
/* run/folder.c - classifies each file in the folder: whether it belongs to a model, and whether
 * the run replaces it. */
#include "run/folder.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/path.h"
#include "checkpoint/checkpoint_store.h"
#include "checkpoint/sidecar_files.h"
#include "checkpoint/weights.h"
#include "config/config.h"
#include "text/tokens.h"

typedef struct {
    const hr_config *config;
    const char *folder;
    bool is_average; /* the folder only gets weights and config.json */
    bool is_run;
    /* Files of another model; empty: none. */
    char replaced[HR_NAME_BYTES]; /* the run would replace it */
    char left[HR_NAME_BYTES];     /* the run would leave it beside its own files */
    hr_status status;
    hr_error *err;
} checking;

static bool starts_with(const char *name, const char *with)
{
    return !strncmp(name, with, strlen(with));
}

/* Returns whether a file name is that of weights: a single file, shards, or another format. */
static bool is_weights(const char *name)
{
    static const char *const others[] = { "pytorch_model", "adapter_model", "tf_model",
                                          "flax_model", "consolidated" };
    if (starts_with(name, "model") && strstr(name, ".safetensors")) return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (starts_with(name, others[i]) && strchr(name, '.')) return true;
    return false;
}

static bool is_published(const checking *c, const char *name)
{
    return !strcmp(name, hr_weights_name(c->config)) ||
           !strcmp(name, hr_weights_config_name(c->config));
}

/* Texts and tokenizers of the run may be in its folder. */
static bool is_input(const hr_config *config, const char *path)
{
    const hr_config_data data = hr_config_data_of(config);
    const char *const inputs[] = { data.train_text, data.train_rows, data.valid_text,
                                   data.valid_rows, config->data.tokenizer };
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (*inputs[i] && hr_file_is_one(path, inputs[i])) return true;
    return false;
}

/* Finds the file that the run copies into train.out under that name.
 *   path  out; empty: none */
static hr_status find_origin(const hr_config *config, const char *name, char path[PATH_MAX],
                             hr_error *err)
{
    *path = 0;
    if (!strcmp(name, "generation_config.json")) {
        if (!config->model.from[0]) return HR_OK;
        const hr_status status = hr_path_join(config->model.from, name, path, PATH_MAX, err);
        if (status == HR_OK && !hr_file_exists(path)) *path = 0;
        return status;
    }
    if (hr_config_tokenizer(config) != HR_TOKENIZER_FILE) return HR_OK;
    return hr_tokens_origin(config->data.tokenizer, name, path, PATH_MAX, err);
}

/* Returns whether two files have the same bytes; false if one cannot be read. */
static bool is_same(const char *path, const char *other)
{
    char a[4096], b[4096];
    int files[2] = { -1, -1 };
    int64_t bytes[2];
    hr_error ignored;
    bool same = hr_file_open(path, &files[0], &bytes[0], &ignored) == HR_OK &&
                hr_file_open(other, &files[1], &bytes[1], &ignored) == HR_OK &&
                bytes[0] == bytes[1];
    for (int64_t at = 0; same && at < bytes[0]; at += (int64_t)sizeof a) {
        const int64_t part = hr_min((int64_t)sizeof a, bytes[0] - at);
        same = hr_file_read(files[0], path, at, a, part, &ignored) == HR_OK &&
               hr_file_read(files[1], other, at, b, part, &ignored) == HR_OK &&
               !memcmp(a, b, (size_t)part);
    }
    hr_file_close(&files[0]);
    hr_file_close(&files[1]);
    return same;
}

/* Orders the names to report: weights first, then by name. readdir(3) has no fixed order. */
static bool comes_first(const char *name, const char *other)
{
    const bool weights = is_weights(name);
    return weights != is_weights(other) ? weights : strcmp(name, other) < 0;
}

static void keep_first(char noted[HR_NAME_BYTES], const char *name)
{
    if (!*noted || comes_first(name, noted)) snprintf(noted, HR_NAME_BYTES, "%s", name);
}

/* A run with the words tokenizer saves the vocabulary of its text. */
static bool is_vocabulary(const checking *c, const char *name)
{
    return hr_config_tokenizer(c->config) == HR_TOKENIZER_WORDS && !strcmp(name, "tokenizer.json");
}

/* Returns whether the folder has the lock of a run that was killed before its first checkpoint. */
static bool has_lock(const checking *c)
{
    char lock[PATH_MAX];
    return hr_path_join(c->folder, "lock", lock, sizeof lock, NULL) == HR_OK &&
           hr_file_exists(lock);
}

/* Returns whether a file belongs to the tokenizer of the run in the same folder: the file that the
 * run reads, or one beside it, as `tokenize train --out` writes them. Not inlined: paths are long,
 * and the stack size is planned. */
static __attribute__((noinline)) bool is_own_tokenizer(const checking *c, const char *name)
{
    static const char *const sources[] = { "tokenizer.json", "vocab.json", "tokenizer.model" };
    char path[PATH_MAX], origin[PATH_MAX];
    hr_error ignored;
    if (c->is_average || is_weights(name) || !strcmp(name, "generation_config.json")) return false;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        if (find_origin(c->config, sources[i], origin, &ignored) == HR_OK && *origin &&
            hr_path_join(c->folder, sources[i], path, sizeof path, &ignored) == HR_OK &&
            hr_file_is_one(path, origin))
            return true;
    return false;
}

/* Not inlined, as above. */
static __attribute__((noinline)) void check_file(checking *c, const char *name)
{
    char path[PATH_MAX], origin[PATH_MAX];
    c->status = hr_path_join(c->folder, name, path, sizeof path, c->err);
    if (c->status != HR_OK || is_input(c->config, path) || is_own_tokenizer(c, name)) return;
    if (is_published(c, name)) {
        if (!c->is_run) keep_first(c->replaced, name);
        return;
    }
    if (is_vocabulary(c, name) && !c->is_average) {
        if (!c->is_run && !has_lock(c)) keep_first(c->replaced, name);
        return;
    }
    *origin = 0;
    if (!c->is_average && !is_weights(name))
        c->status = find_origin(c->config, name, origin, c->err);
    if (c->status != HR_OK || (*origin && is_same(path, origin))) return;
    if (*origin) c->status = hr_file_check_place(path, c->err);
    if (!*origin) keep_first(c->left, name);
    else if (!c->is_run) keep_first(c->replaced, name);
}

static bool take_name(void *context, const char *name)
{
    checking *c = context;
    if (is_weights(name) || hr_sidecar_files_have(name)) check_file(c, name);
    return c->status == HR_OK;
}

/* Reports what --fresh replaces. */
static void report_replaced(const checking *c, const hr_train_options *options)
{
    char line[HR_CHECKPOINT_STORE_PATH_BYTES + HR_NAME_BYTES + 128];
    if (!options->events.trouble) return;
    snprintf(line, sizeof line, "--fresh: this run replaces %.1000s/%s, which is another model's",
             c->folder, c->replaced);
    options->events.trouble(options->events.context, line);
}

static hr_status check(checking *c, const hr_train_options *options)
{
    if (!hr_file_exists(c->folder)) return HR_OK;
    hr_error unread;
    const hr_status listed = hr_directory_list(c->folder, take_name, c, &unread);
    if (c->status != HR_OK) return c->status;
    if (listed != HR_OK) return hr_fail(c->err, listed, "%s", unread.message);
    if (*c->left)
        return hr_fail(c->err, HR_USAGE,
                       "%.300s has %.100s, which is not this run's: training would mix it with the "
                       "new weights; move it away or give another --out",
                       c->folder, c->left);
    if (!*c->replaced) return HR_OK;
    if (options->fresh) {
        report_replaced(c, options);
        return HR_OK;
    }
    return hr_fail(c->err, HR_USAGE,
                   "%.300s has %.100s, which is not this run's; give another --out, or type "
                   "--fresh to replace it",
                   c->folder, c->replaced);
}

/* Not inlined, as above. */
__attribute__((noinline)) bool hr_folder_has_another_model(const hr_config *config,
                                                           const char *place)
{
    char own[PATH_MAX], there[PATH_MAX];
    int files[2] = { -1, -1 };
    int64_t bytes[2];
    hr_error ignored;
    const char *folder = config->train.out, *weights = hr_weights_name(config);
    const char *description = hr_weights_config_name(config);
    if (hr_path_join(folder, description, there, sizeof there, NULL) != HR_OK ||
        hr_path_join(place, description, own, sizeof own, NULL) != HR_OK ||
        !hr_file_exists(there) || !hr_file_exists(own) || is_same(there, own))
        return false;
    if (hr_path_join(folder, weights, there, sizeof there, NULL) != HR_OK ||
        hr_path_join(place, weights, own, sizeof own, NULL) != HR_OK)
        return false;
    const bool other = hr_file_open(there, &files[0], &bytes[0], &ignored) == HR_OK &&
                       hr_file_open(own, &files[1], &bytes[1], &ignored) == HR_OK &&
                       bytes[0] != bytes[1];
    hr_file_close(&files[0]);
    hr_file_close(&files[1]);
    return other;
}

hr_status hr_folder_check(const hr_config *config, const hr_train_options *options, bool is_run,
                          hr_error *err)
{
    char average[HR_CHECKPOINT_STORE_PATH_BYTES];
    checking c = { .config = config, .folder = config->train.out, .is_run = is_run, .err = err };
    hr_status status = check(&c, options);
    if (status != HR_OK || config->train.ema_decay <= 0) return status;
    status = hr_path_join(config->train.out, "average", average, sizeof average, err);
    c.folder = average;
    c.is_average = true;
    *c.replaced = *c.left = 0;
    return status == HR_OK ? check(&c, options) : status;
}

/* ---- refused runs */

/* Removes the last name of a path; false: it was the only one. */
static bool cut_name(char *path)
{
    size_t bytes = strlen(path);
    while (bytes && path[bytes - 1] == '/') bytes--;
    while (bytes && path[bytes - 1] != '/') bytes--;
    while (bytes > 1 && path[bytes - 1] == '/') bytes--;
    path[bytes] = 0;
    return bytes > 0;
}

hr_folder_before hr_folder_look(const hr_config *config)
{
    char path[PATH_MAX];
    hr_folder_before before = { 0 };
    if (hr_path_join(config->train.out, "lock", path, sizeof path, NULL) != HR_OK) return before;
    before.had_lock = hr_file_exists(path);
    while (cut_name(path) && !hr_file_exists(path)) continue;
    before.path_bytes = (int64_t)strlen(path);
    return before;
}

void hr_folder_undo(const hr_config *config, const hr_folder_before *before, bool holds_lock)
{
    char path[PATH_MAX];
    if (!config->train.out[0] ||
        hr_path_join(config->train.out, "lock", path, sizeof path, NULL) != HR_OK)
        return;
    if (holds_lock && !before->had_lock) unlink(path);
    while (cut_name(path) && (int64_t)strlen(path) > before->path_bytes && rmdir(path) == 0)
        continue;
}
