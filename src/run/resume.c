/* SPDX-License-Identifier: Apache-2.0 */
/* run/resume.c - before planning: finds the newest intact checkpoint. */
#include "run/resume.h"

#include <stdio.h>
#include <string.h>

#include "base/directory.h"
#include "base/file.h"
#include "base/path.h"
#include "checkpoint/recipe.h"
#include "checkpoint/weights.h"
#include "config/config_keys.h"
#include "config/schedule.h"
#include "model/optimizer.h"
#include "run/folder.h"
#include "run/recipe_change.h"
#include "run/statistics.h"
#include "telemetry/log.h"

static void warn(const hr_train_options *options, const char *line)
{
    if (options->events.trouble) options->events.trouble(options->events.context, line);
}

static bool report_progress(void *context, int64_t bytes_done, int64_t bytes_total)
{
    const hr_train_options *options = context;
    if (options->events.preparing)
        options->events.preparing(options->events.context, "checking the checkpoint", bytes_done,
                                  bytes_total);
    return options->interrupts && *options->interrupts > 0;
}

static bool has_statistics(const hr_run_state *state)
{
    hr_guard guard;
    return hr_statistics_read(state, &guard);
}

/* ---- intact checkpoints */

/* Reads the recipe of a checkpoint. A file that cannot be opened is not damaged.
 *   opened  out */
static hr_status read_recipe(const char *place, hr_config *recipe, bool *opened, hr_error *err)
{
    char path[HR_STEP_PATH_BYTES + 32];
    int file;
    int64_t bytes;
    hr_config_default(recipe);
    hr_status status = hr_path_join(place, hr_recipe_name, path, sizeof path, err);
    if (status == HR_OK) status = hr_file_open(path, &file, &bytes, err);
    *opened = status == HR_OK;
    if (status != HR_OK) return status;
    status = hr_config_read_open(recipe, file, path, err);
    hr_file_close(&file);
    return status;
}

/* Not inlined: a config is large, and the stack size is planned. */
static __attribute__((noinline)) hr_status check_files(const char *place,
                                                       const hr_manifest *manifest, hr_error *err)
{
    hr_config recipe;
    bool opened;
    hr_status status = read_recipe(place, &recipe, &opened, err);
    if (status != HR_OK) return status;
    hr_state states[HR_STATES_MAX];
    const int32_t count = hr_config_states(&recipe, states);
    for (int32_t i = -1; i < count; i++) {
        const char *name = i < 0 ? hr_weights_name(&recipe) : states[i].file;
        /* Without a parameter that has them, other states have no file. */
        if (i >= 0 && (states[i].shape != HR_STATE_ELEMENTS || states[i].outside)) continue;
        if (name && !hr_manifest_find(manifest, name))
            return hr_fail(err, HR_CORRUPT, "%.300s: its manifest has no %s", place, name);
    }
    return HR_OK;
}

hr_status hr_resume_check_manifest(const char *place, const hr_manifest *manifest, hr_error *err)
{
    if (!hr_manifest_find(manifest, hr_recipe_name))
        return hr_fail(err, HR_CORRUPT, "%.300s: its manifest has no %s", place, hr_recipe_name);
    if (!has_statistics(&manifest->state))
        return hr_fail(err, HR_CORRUPT, "%.300s: its manifest has incomplete statistics", place);
    return check_files(place, manifest, err);
}

static hr_status try_step(const char *store, int64_t step, const hr_train_options *options,
                          hr_resume *resume, hr_error *err)
{
    _Alignas(4096) char memory[32 << 10];
    char name[HR_STEP_NAME_BYTES];
    const hr_checkpoint_store_reader reader = { .memory = memory,
                                                .bytes = sizeof memory,
                                                .progress = report_progress,
                                                .context = (void *)options };
    _Static_assert(sizeof memory >= HR_MANIFEST_BYTES, "it holds a manifest");
    hr_status status = hr_path_join(store, hr_step_name(step, name), resume->place,
                                    sizeof resume->place, err);
    if (status == HR_OK)
        status = hr_checkpoint_store_read(store, step, memory, &resume->manifest, err);
    if (status == HR_OK)
        status = hr_checkpoint_store_verify(resume->place, &resume->manifest, &reader, err);
    return status;
}

static hr_status find_intact(const char *store, const hr_train_options *options, hr_resume *resume,
                             hr_error *err)
{
    int64_t step = INT64_MAX;
    bool any = false;
    for (;;) {
        hr_status status = hr_checkpoint_store_newest(store, step, &step, err);
        if (status != HR_OK) return status;
        if (step < 0) break;
        any = true;
        status = try_step(store, step, options, resume, err);
        if (status == HR_OK) {
            status = hr_resume_check_manifest(resume->place, &resume->manifest, err);
            /* A recipe of another version is refused later, and not skipped as damaged. */
            if (status == HR_USAGE) status = HR_OK;
        }
        resume->found = status == HR_OK;
        if (status != HR_CORRUPT) return status;
        char line[HR_ERROR_BYTES + 64];
        snprintf(line, sizeof line, "%s; trying an older checkpoint", err->message);
        warn(options, line);
    }
    if (!any) return HR_OK;
    return hr_fail(err, HR_CORRUPT, "%s: has no intact checkpoint; use --fresh to start over",
                   store);
}

/* ---- resuming */

/* Not inlined: two configs are large, and the stack size is planned. */
static __attribute__((noinline)) hr_status check_recipe(hr_memory *memory, const hr_config *config,
                                                        const hr_train_options *options,
                                                        hr_resume *resume, hr_error *err)
{
    hr_config before;
    hr_error why;
    bool opened;
    const hr_status status = read_recipe(resume->place, &before, &opened, &why);
    if (status == HR_OK)
        return hr_recipe_change_check(memory, &before, config, options, resume, err);
    return hr_fail(err, status == HR_USAGE && opened ? HR_CORRUPT : status, "%s", why.message);
}

/* Not inlined, as above. */
static __attribute__((noinline)) hr_status reformat(hr_memory *memory, const hr_config *config,
                                                    const hr_train_options *options,
                                                    hr_resume *resume, hr_error *err)
{
    hr_config before;
    bool opened;
    const hr_status status = read_recipe(resume->place, &before, &opened, err);
    return status == HR_OK
               ? hr_recipe_change_reformat(memory, &before, config, options, resume, err)
               : status;
}

hr_status hr_resume_reformat(hr_memory *memory, const hr_config *config,
                             const hr_train_options *options, hr_resume *resume, hr_error *err)
{
    char store[HR_CHECKPOINT_STORE_PATH_BYTES], name[HR_STEP_NAME_BYTES];
    if (!resume->found || !resume->reformats) return HR_OK;
    hr_status status = hr_checkpoint_store_path(config->train.out, store, err);
    if (status == HR_OK)
        status = hr_path_join(store, hr_step_partial(resume->manifest.state.step, name),
                              resume->reformatted, sizeof resume->reformatted, err);
    if (status == HR_OK) status = hr_directory_make(resume->reformatted, err);
    if (status == HR_OK) status = reformat(memory, config, options, resume, err);
    if (status != HR_OK) {
        hr_error left;
        if (hr_resume_remove_reformatted(config, resume, &left) != HR_OK)
            warn(options, left.message);
    }
    return status;
}

hr_status hr_resume_remove_reformatted(const hr_config *config, hr_resume *resume, hr_error *err)
{
    char store[HR_CHECKPOINT_STORE_PATH_BYTES];
    if (!*resume->reformatted) return HR_OK;
    *resume->reformatted = 0;
    const hr_status status = hr_checkpoint_store_path(config->train.out, store, err);
    return status == HR_OK ? hr_checkpoint_store_remove_partial(store, err) : status;
}

static hr_status check_allowed_keys(const hr_train_options *options, hr_error *err)
{
    hr_config config;
    char value[HR_VALUE_BYTES];
    hr_config_default(&config);
    for (int32_t i = 0; i < options->allowed_count; i++)
        if (hr_config_get(&config, options->allowed[i], value, sizeof value, err) != HR_OK)
            return HR_USAGE;
    return HR_OK;
}

static hr_status find(hr_memory *memory, const char *store, const hr_config *config,
                      const hr_train_options *options, hr_resume *resume, hr_error *err)
{
    hr_error left;
    /* An incomplete checkpoint that cannot be removed is harmless: other steps have other names. */
    if (hr_checkpoint_store_remove_partial(store, &left) != HR_OK) warn(options, left.message);
    if (options->fresh) return HR_OK;
    hr_status status = find_intact(store, options, resume, err);
    if (status == HR_OK && resume->found)
        status = check_recipe(memory, config, options, resume, err);
    if (status != HR_OK || !resume->found || !hr_folder_has_another_model(config, resume->place))
        return status;
    return hr_fail(err, HR_USAGE,
                   "%.300s has %s of another model than its checkpoints have; move it and its "
                   "config.json away, or give another --out",
                   config->train.out, hr_weights_name(config));
}

/* Refuses to overwrite weights whose checkpoints are missing, for example because a disk is not
 * mounted. A log without a checkpoint is of a run that was killed before its first. */
static hr_status check_missing_checkpoints(const hr_config *config, const hr_train_options *options,
                                           hr_error *err)
{
    char weights[HR_PATH_BYTES + 32], log[HR_PATH_BYTES + 32];
    const char *out = config->train.out;
    hr_status status = hr_path_join(out, hr_weights_name(config), weights, sizeof weights, err);
    if (status == HR_OK) status = hr_path_join(out, hr_log_name, log, sizeof log, err);
    if (status != HR_OK || options->fresh || !hr_file_exists(weights) || !hr_metrics_has_save(log))
        return status;
    return hr_fail(err, HR_USAGE,
                   "%.300s: has the weights and the log of a run but no checkpoint; restore "
                   "checkpoints/ to resume, use --fresh to start over, or another --out",
                   out);
}

/* Checks that a new run does not overwrite files of another model or mix with them. The model is
 * that of an earlier run if there is a checkpoint of it, a checkpoint in the log, or a log beside
 * an empty checkpoints/, which --fresh leaves if it is killed at once. */
static hr_status check_new_run(const hr_config *config, const hr_train_options *options,
                               const char *store, hr_error *err)
{
    char log[HR_PATH_BYTES + 32];
    int64_t newest = -1;
    hr_status status = check_missing_checkpoints(config, options, err);
    if (status == HR_OK) status = hr_checkpoint_store_newest(store, INT64_MAX, &newest, err);
    if (status == HR_OK)
        status = hr_path_join(config->train.out, hr_log_name, log, sizeof log, err);
    if (status != HR_OK) return status;
    bool is_run = hr_metrics_has_save(log) || (hr_file_exists(store) && hr_file_exists(log));
    if (newest >= 0) {
        char name[HR_STEP_NAME_BYTES], place[HR_STEP_PATH_BYTES];
        status = hr_path_join(store, hr_step_name(newest, name), place, sizeof place, err);
        if (status != HR_OK) return status;
        is_run = !hr_folder_has_another_model(config, place);
    }
    return hr_folder_check(config, options, is_run, err);
}

hr_status hr_resume_enter(hr_memory *memory, const hr_config *config,
                          const hr_train_options *options, int *lock, hr_resume *resume,
                          hr_error *err)
{
    char store[HR_CHECKPOINT_STORE_PATH_BYTES];
    hr_status status = check_allowed_keys(options, err);
    if (status != HR_OK || !config->train.out[0]) return status;
    status = hr_checkpoint_store_path(config->train.out, store, err);
    if (status != HR_OK) return status;
    if (!hr_file_exists(store)) return check_new_run(config, options, store, err);
    status = hr_checkpoint_store_lock(config->train.out, lock, err);
    if (status == HR_OK) status = find(memory, store, config, options, resume, err);
    return status == HR_OK && !resume->found ? check_new_run(config, options, store, err) : status;
}

hr_status hr_resume_check_writable(const hr_config *config, hr_error *err)
{
    char store[HR_CHECKPOINT_STORE_PATH_BYTES];
    if (!config->train.out[0]) return HR_OK;
    const hr_status status = hr_checkpoint_store_path(config->train.out, store, err);
    return status == HR_OK ? hr_directory_check(store, err) : status;
}

/* New checkpoints mean that another run started and ended in the meantime. */
hr_status hr_resume_lock(const hr_config *config, int *lock, hr_error *err)
{
    char store[HR_CHECKPOINT_STORE_PATH_BYTES];
    if (!config->train.out[0] || *lock >= 0) return HR_OK;
    hr_status status = hr_checkpoint_store_lock(config->train.out, lock, err);
    if (status == HR_OK) status = hr_checkpoint_store_path(config->train.out, store, err);
    if (status != HR_OK || !hr_file_exists(store)) return status;
    return hr_fail(err, HR_USAGE, "%s: another run has written to it in the meantime; start again",
                   config->train.out);
}

/* Returns whether the log has exactly its last line after the part that the last checkpoint covers.
 * A run that was killed before that, or that logged a signal, still has to write it. A missing or
 * different log counts as complete. */
static bool has_last_line(const hr_config *config, int64_t log_bytes)
{
    static const char last[] = "{\"arena_bytes_planned\":";
    char path[HR_PATH_BYTES + 16], line[512];
    int file;
    int64_t bytes;
    hr_error ignored;
    if (hr_path_join(config->train.out, hr_log_name, path, sizeof path, &ignored) != HR_OK ||
        hr_file_open(path, &file, &bytes, &ignored) != HR_OK)
        return true;
    const int64_t rest = bytes - log_bytes;
    bool has = rest < 0;
    if (rest > 0 && rest < (int64_t)sizeof line) {
        const hr_status read = hr_file_read(file, path, log_bytes, line, rest, &ignored);
        line[read == HR_OK ? rest : 0] = 0;
        has = !strncmp(line, last, sizeof last - 1) && strchr(line, '\n') == line + rest - 1;
    }
    hr_file_close(&file);
    return has;
}

bool hr_resume_is_done(const hr_resume *resume, const hr_config *config,
                       const hr_train_options *options)
{
    const hr_run_state *state = &resume->manifest.state;
    return resume->found && (state->step == state->steps || state->ended) &&
           state->kept == state->step && (!resume->changed || resume->only_fewer_steps) &&
           !options->allowed_count && has_last_line(config, state->log_bytes);
}

/* Warns if the learning rate of the next step differs from that of the earlier schedule. */
static void warn_of_schedule(const hr_resume *resume, const hr_config *config,
                             const hr_train_options *options, int64_t steps)
{
    hr_stages stages;
    char line[256];
    const hr_run_state *state = &resume->manifest.state;
    if (state->steps == steps || state->step >= steps ||
        config->train.schedule.kind == HR_SCHEDULE_CONSTANT)
        return;
    if (hr_config_stages(config, &stages, NULL) != HR_OK) return;
    const hr_stages *of = stages.count ? &stages : NULL;
    const double now = hr_schedule_lr(config, of, state->step, steps);
    if (state->step < state->steps)
        snprintf(line, sizeof line,
                 "the run has %lld steps, and had %lld: from step %lld on the learning rate "
                 "follows the longer or shorter schedule, with %g in place of %g",
                 (long long)steps, (long long)state->steps, (long long)state->step + 1, now,
                 hr_schedule_lr(config, of, state->step, state->steps));
    else
        snprintf(line, sizeof line,
                 "the run has %lld steps, and was complete with %lld: from step %lld on the "
                 "learning rate follows the longer schedule, with %g",
                 (long long)steps, (long long)state->steps, (long long)state->step + 1, now);
    warn(options, line);
}

void hr_resume_report(const hr_resume *resume, const hr_config *config,
                      const hr_train_options *options, const char *rung, int64_t steps)
{
    char line[HR_PATH_BYTES + 256];
    const hr_train_events *events = &options->events;
    snprintf(line, sizeof line, "resume %.1000s", resume->place);
    if (events->text) events->text(events->context, line);
    warn_of_schedule(resume, config, options, steps);
    if (!strcmp(resume->manifest.kernels, rung)) return;
    snprintf(line, sizeof line,
             "the steps so far used %s kernels, the next ones use %s: the result will not "
             "be bit-identical to an uninterrupted run",
             resume->manifest.kernels, rung);
    warn(options, line);
}

static hr_status check_text(const hr_train_options *options, const char *key, const char *what,
                            const char *before, const char *now, hr_error *err)
{
    if (!strcmp(before, now) || hr_recipe_change_allows(options, key)) return HR_OK;
    hr_recipe_change_refuse(options, key);
    return hr_fail(err, HR_USAGE,
                   "%s: the %s has changed since the run began; use --allow-change %s to "
                   "resume anyway, or --fresh to start over",
                   key, what, key);
}

/* Another tokenizer makes other ids of each text: they are compared with the same one only. */
hr_status hr_resume_check_texts(const hr_resume *resume, const hr_config *config,
                                const hr_train_options *options, const hr_manifest_texts *now,
                                hr_error *err)
{
    const char *key = config->data.fixed_batch[0] ? "data.fixed_batch" : "data.train";
    const hr_manifest_texts *before = &resume->manifest.texts;
    hr_error other; /* check both, to report both keys */
    if (hr_recipe_change_allows(options, "data.tokenizer")) return HR_OK;
    if (*before->tokenizer && strcmp(before->tokenizer, now->tokenizer) != 0)
        return check_text(options, "data.tokenizer", "tokenizer", before->tokenizer, now->tokenizer,
                          err);
    const hr_status valid = check_text(options, "data.valid", "text", before->valid, now->valid,
                                       &other);
    const hr_status train = check_text(options, key, "text", before->train, now->train, err);
    if (train != HR_OK || valid == HR_OK) return train;
    return hr_fail(err, valid, "%s", other.message);
}

hr_status hr_resume_prune(const hr_resume *resume, const hr_config *config, hr_error *err)
{
    char store[HR_CHECKPOINT_STORE_PATH_BYTES];
    const hr_status status = hr_checkpoint_store_path(config->train.out, store, err);
    return status == HR_OK ? hr_checkpoint_store_prune(store, config, &resume->manifest.state, err)
                           : status;
}

/* Removes the oldest first: if this is killed, the newest checkpoints remain. */
hr_status hr_resume_remove_checkpoints(const hr_config *config, hr_error *err)
{
    char store[HR_CHECKPOINT_STORE_PATH_BYTES];
    hr_status status = hr_checkpoint_store_path(config->train.out, store, err);
    if (status == HR_OK) status = hr_checkpoint_store_remove_partial(store, err);
    while (status == HR_OK) {
        int64_t oldest = -1, step = INT64_MAX;
        while (status == HR_OK && step >= 0) {
            oldest = step < INT64_MAX ? step : oldest;
            status = hr_checkpoint_store_newest(store, step, &step, err);
        }
        if (status != HR_OK || oldest < 0) break;
        status = hr_checkpoint_store_remove(store, oldest, err);
    }
    return status;
}
