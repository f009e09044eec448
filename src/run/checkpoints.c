/* SPDX-License-Identifier: Apache-2.0 */
/* run/checkpoints.c - lists, verifies and prunes the checkpoints of a folder. */
#include "headroom/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "base/directory.h"
#include "base/file.h"
#include "base/path.h"
#include "checkpoint/checkpoint_store.h"
#include "checkpoint/recipe.h"
#include "config/config.h"
#include "run/file_space.h"
#include "run/resume.h"

typedef struct {
    const hr_checkpoint_events *events;
    const volatile sig_atomic_t *interrupts;
    char store[HR_CHECKPOINT_STORE_PATH_BYTES], place[HR_STEP_PATH_BYTES];
    hr_manifest manifest;
    int64_t best_step; /* from the newest readable checkpoint; -1: none was read yet */
    _Alignas(4096) char memory[64 << 10];
} listing;

static hr_status open_folder(listing *l, const char *folder, hr_error *err)
{
    int64_t newest;
    hr_status status = hr_directory_find(folder, err);
    if (status == HR_OK) status = hr_checkpoint_store_path(folder, l->store, err);
    if (status == HR_OK) status = hr_checkpoint_store_newest(l->store, INT64_MAX, &newest, err);
    if (status != HR_OK || newest >= 0) return status;
    return hr_fail(err, HR_USAGE, "%s: has no checkpoints; give the --out of a run", folder);
}

static bool report_reading(void *context, int64_t bytes_done, int64_t bytes_total)
{
    const listing *l = context;
    const hr_checkpoint_events *events = l->events;
    if (events->reading) events->reading(events->context, bytes_done, bytes_total);
    return l->interrupts && *l->interrupts > 0;
}

static hr_status check_checkpoint(listing *l, int64_t step, bool thorough, hr_error *err)
{
    char name[HR_STEP_NAME_BYTES];
    const hr_checkpoint_store_reader reader = {
        .memory = l->memory, .bytes = sizeof l->memory, .progress = report_reading, .context = l
    };
    hr_status status = hr_path_join(l->store, hr_step_name(step, name), l->place, sizeof l->place,
                                    err);
    if (status == HR_OK)
        status = hr_checkpoint_store_read(l->store, step, l->memory, &l->manifest, err);
    if (status != HR_OK || !thorough) return status;
    status = hr_checkpoint_store_verify(l->place, &l->manifest, &reader, err);
    return status == HR_OK ? hr_resume_check_manifest(l->place, &l->manifest, err) : status;
}

static void report_found(listing *l, int64_t step, const char *problem)
{
    const hr_run_state *state = &l->manifest.state;
    hr_checkpoint info = { .step = step, .problem = problem };
    if (!problem) {
        if (l->best_step < 0) l->best_step = state->best_step;
        info = (hr_checkpoint){ .step = step,
                                .steps = state->steps,
                                .tokens = state->tokens,
                                .last_loss = state->last_loss,
                                .valid_loss = state->valid_loss,
                                .is_best = l->best_step == step && state->evaluated == step,
                                .kernels = l->manifest.kernels };
        for (int32_t i = 0; i < l->manifest.file_count; i++)
            info.bytes += l->manifest.files[i].bytes;
    }
    l->events->found(l->events->context, &info);
}

/* Not inlined: the buffers are large, and other callers use the same stack. */
static __attribute__((noinline)) hr_status list(listing *l, const char *folder, bool thorough,
                                                hr_error *err)
{
    int64_t step = INT64_MAX;
    hr_status worst = HR_OK, status = open_folder(l, folder, err);
    while (status == HR_OK) {
        hr_error found;
        status = hr_checkpoint_store_newest(l->store, step, &step, err);
        if (status != HR_OK || step < 0) break;
        const hr_status checked = check_checkpoint(l, step, thorough, &found);
        /* A run has removed it in the meantime. */
        if (checked == HR_CORRUPT && !hr_file_exists(l->place)) continue;
        if (checked == HR_INTERRUPTED || checked == HR_FAILURE)
            return hr_fail(err, checked, "%s", found.message);
        report_found(l, step, checked == HR_OK ? NULL : found.message);
        if (checked != HR_OK && worst == HR_OK) worst = hr_fail(err, checked, "%s", found.message);
    }
    return status == HR_OK && thorough ? worst : status;
}

hr_status hr_checkpoint_list(const char *folder, bool thorough, const hr_checkpoint_events *events,
                             const volatile sig_atomic_t *interrupts, hr_error *err)
{
    listing l = { .events = events, .interrupts = interrupts, .best_step = -1 };
    return list(&l, folder, thorough, err);
}

/* ---- prune */

static hr_status read_recipe(const listing *l, char *const *overrides, int32_t count,
                             hr_config *config, hr_error *err)
{
    char path[HR_STEP_PATH_BYTES + 32];
    hr_status status = hr_path_join(l->place, hr_recipe_name, path, sizeof path, err);
    hr_config_default(config);
    if (status == HR_OK) status = hr_config_read(config, path, err);
    for (int32_t i = 0; i < count && status == HR_OK; i++) {
        if (strncmp(overrides[i], "train.keep_", strlen("train.keep_")) != 0)
            return hr_fail(err, HR_USAGE, "%.60s: prune takes only the train.keep_* keys",
                           overrides[i]);
        status = hr_config_set_word(config, overrides[i], err);
    }
    return status;
}

static hr_status remove_step(listing *l, int64_t step, hr_error *err)
{
    char name[HR_STEP_NAME_BYTES];
    const hr_status status = hr_checkpoint_store_remove(l->store, step, err);
    if (status == HR_OK && l->events->removed)
        l->events->removed(l->events->context, hr_step_name(step, name));
    return status;
}

/* Finds the newest intact checkpoint before anything is removed. Pruning also removes damaged
 * ones. */
static hr_status find_intact(listing *l, int64_t *step, hr_error *err)
{
    for (*step = INT64_MAX;;) {
        hr_status status = hr_checkpoint_store_newest(l->store, *step, step, err);
        if (status != HR_OK) return status;
        if (*step < 0)
            return hr_fail(err, HR_CORRUPT, "%s: has no intact checkpoint; nothing was deleted",
                           l->store);
        status = check_checkpoint(l, *step, true, err);
        if (status != HR_CORRUPT) return status;
    }
}

static hr_status remove_others(listing *l, const hr_config *config, int64_t intact,
                               int64_t best_step, hr_error *err)
{
    int64_t step = INT64_MAX, kept = 0;
    for (;;) {
        hr_error ignored;
        hr_status status = hr_checkpoint_store_newest(l->store, step, &step, err);
        if (status != HR_OK || step < 0) return status;
        const hr_status checked = step == intact ? HR_OK
                                                 : check_checkpoint(l, step, true, &ignored);
        if (checked != HR_OK && checked != HR_CORRUPT)
            return hr_fail(err, checked, "%s", ignored.message);
        if (checked == HR_OK && hr_checkpoint_store_keeps(config, best_step, step, kept)) kept++;
        else status = remove_step(l, step, err);
        if (status != HR_OK) return status;
    }
}

static hr_status prune(listing *l, const char *folder, char *const *overrides, int32_t count,
                       hr_error *err)
{
    hr_config config;
    int64_t intact;
    hr_status status = find_intact(l, &intact, err);
    if (status == HR_OK) status = read_recipe(l, overrides, count, &config, err);
    if (status == HR_OK) status = hr_checkpoint_store_remove_partial(l->store, err);
    if (status != HR_OK) return status;
    snprintf(config.train.out, sizeof config.train.out, "%s", folder);
    hr_file_space_clear(&config);
    return remove_others(l, &config, intact, l->manifest.state.best_step, err);
}

hr_status hr_checkpoint_prune(const char *folder, char *const *overrides, int32_t count,
                              const hr_checkpoint_events *events,
                              const volatile sig_atomic_t *interrupts, hr_error *err)
{
    listing l = { .events = events, .interrupts = interrupts };
    int lock = -1;
    hr_status status = open_folder(&l, folder, err);
    if (status == HR_OK) status = hr_checkpoint_store_lock(folder, &lock, err);
    if (status == HR_OK) status = prune(&l, folder, overrides, count, err);
    hr_file_close(&lock);
    return status;
}
