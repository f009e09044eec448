/* SPDX-License-Identifier: Apache-2.0 */
/* train/checkpoints.c - a folder's checkpoints for people: told, judged, removed. */
#include "headroom/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "ckpt/checkpoint_store.h"
#include "ckpt/recipe.h"
#include "train/resume.h"

typedef struct {
    const hr_checkpoint_events *events;
    const volatile sig_atomic_t *interrupts;
    char store[HR_CHECKPOINT_STORE_PATH_BYTES], place[HR_STEP_PATH_BYTES];
    hr_manifest manifest;
    int64_t best_step; /* as the newest that can be read knows it; -1: none was read yet */
    _Alignas(4096) char memory[64 << 10];
} looking;

static hr_status open_folder(looking *l, const char *folder, hr_error *err)
{
    int64_t newest;
    hr_status status = hr_checkpoint_store_path(folder, l->store, err);
    if (status == HR_OK) status = hr_checkpoint_store_newest(l->store, INT64_MAX, &newest, err);
    if (status != HR_OK || newest >= 0) return status;
    return hr_fail(err, HR_USAGE, "%s: has no checkpoints; give the --out of a run", folder);
}

static bool tell_reading(void *context, int64_t bytes_done, int64_t bytes_total)
{
    const looking *l = context;
    const hr_checkpoint_events *events = l->events;
    if (events->reading) events->reading(events->context, bytes_done, bytes_total);
    return l->interrupts && *l->interrupts > 0;
}

static hr_status judge(looking *l, int64_t step, bool thorough, hr_error *err)
{
    char name[HR_STEP_NAME_BYTES];
    const hr_checkpoint_store_reader reader = {
        .memory = l->memory, .bytes = sizeof l->memory, .progress = tell_reading, .context = l
    };
    hr_status status = hr_path_join(l->store, hr_step_name(step, name), l->place, sizeof l->place,
                                    err);
    if (status == HR_OK)
        status = hr_checkpoint_store_read(l->store, step, l->memory, &l->manifest, err);
    if (status != HR_OK || !thorough) return status;
    status = hr_checkpoint_store_verify(l->place, &l->manifest, &reader, err);
    return status == HR_OK ? hr_resume_check_sense(l->place, &l->manifest, err) : status;
}

static void tell(looking *l, int64_t step, const char *problem)
{
    const hr_run_state *state = &l->manifest.state;
    hr_checkpoint told = { .step = step, .problem = problem };
    if (!problem) {
        if (l->best_step < 0) l->best_step = state->best_step;
        told = (hr_checkpoint){ .step = step,
                                .steps = state->steps,
                                .tokens = state->tokens,
                                .last_loss = state->last_loss,
                                .valid_loss = state->valid_loss,
                                .is_best = l->best_step == step && state->evaluated == step,
                                .kernels = l->manifest.kernels };
        for (int32_t i = 0; i < l->manifest.file_count; i++)
            told.bytes += l->manifest.files[i].bytes;
    }
    l->events->found(l->events->context, &told);
}

/* Not inlined: the buffers are large for a stack that others use too. */
static __attribute__((noinline)) hr_status list(looking *l, const char *folder, bool thorough,
                                                hr_error *err)
{
    int64_t step = INT64_MAX;
    hr_status worst = HR_OK, status = open_folder(l, folder, err);
    while (status == HR_OK) {
        hr_error found;
        status = hr_checkpoint_store_newest(l->store, step, &step, err);
        if (status != HR_OK || step < 0) break;
        const hr_status judged = judge(l, step, thorough, &found);
        if (judged == HR_CORRUPT && !hr_file_exists(l->place)) continue; /* let go of meanwhile */
        if (judged == HR_INTERRUPTED || judged == HR_FAILURE)
            return hr_fail(err, judged, "%s", found.message);
        tell(l, step, judged == HR_OK ? NULL : found.message);
        if (judged != HR_OK && worst == HR_OK) worst = hr_fail(err, judged, "%s", found.message);
    }
    return status == HR_OK && thorough ? worst : status;
}

hr_status hr_checkpoint_list(const char *folder, bool thorough, const hr_checkpoint_events *events,
                             const volatile sig_atomic_t *interrupts, hr_error *err)
{
    looking l = { .events = events, .interrupts = interrupts, .best_step = -1 };
    return list(&l, folder, thorough, err);
}

/* ---- prune */

static hr_status read_recipe(const looking *l, char *const *overrides, int32_t count,
                             hr_config *config, hr_error *err)
{
    char path[HR_STEP_PATH_BYTES + 32];
    hr_status status = hr_path_join(l->place, hr_recipe_name, path, sizeof path, err);
    hr_config_default(config);
    if (status == HR_OK) status = hr_config_read(config, path, err);
    for (int32_t i = 0; i < count && status == HR_OK; i++)
        status = hr_config_set_word(config, overrides[i], err);
    return status;
}

static hr_status remove_step(looking *l, int64_t step, hr_error *err)
{
    char name[HR_STEP_NAME_BYTES];
    const hr_status status = hr_checkpoint_store_remove(l->store, step, err);
    if (status == HR_OK && l->events->removed)
        l->events->removed(l->events->context, hr_step_name(step, name));
    return status;
}

/* The newest whole one is found before anything goes; of the others the damaged go too. */
static hr_status find_whole(looking *l, int64_t *step, hr_error *err)
{
    for (*step = INT64_MAX;;) {
        hr_status status = hr_checkpoint_store_newest(l->store, *step, step, err);
        if (status != HR_OK) return status;
        if (*step < 0)
            return hr_fail(err, HR_CORRUPT, "%s: has no intact checkpoint; nothing was deleted",
                           l->store);
        status = judge(l, *step, true, err);
        if (status != HR_CORRUPT) return status;
    }
}

static hr_status remove_others(looking *l, const hr_config *config, int64_t whole,
                               int64_t best_step, hr_error *err)
{
    int64_t step = INT64_MAX, kept = 0;
    for (;;) {
        hr_error ignored;
        hr_status status = hr_checkpoint_store_newest(l->store, step, &step, err);
        if (status != HR_OK || step < 0) return status;
        const hr_status judged = step == whole ? HR_OK : judge(l, step, true, &ignored);
        if (judged != HR_OK && judged != HR_CORRUPT)
            return hr_fail(err, judged, "%s", ignored.message);
        if (judged == HR_OK && hr_checkpoint_store_keeps(config, best_step, step, kept)) kept++;
        else status = remove_step(l, step, err);
        if (status != HR_OK) return status;
    }
}

static hr_status prune(looking *l, char *const *overrides, int32_t count, hr_error *err)
{
    hr_config config;
    int64_t whole;
    hr_status status = find_whole(l, &whole, err);
    if (status == HR_OK) status = read_recipe(l, overrides, count, &config, err);
    if (status == HR_OK) status = hr_checkpoint_store_remove_partial(l->store, err);
    return status == HR_OK ? remove_others(l, &config, whole, l->manifest.state.best_step, err)
                           : status;
}

hr_status hr_checkpoint_prune(const char *folder, char *const *overrides, int32_t count,
                              const hr_checkpoint_events *events,
                              const volatile sig_atomic_t *interrupts, hr_error *err)
{
    looking l = { .events = events, .interrupts = interrupts };
    int lock = -1;
    hr_status status = open_folder(&l, folder, err);
    if (status == HR_OK) status = hr_checkpoint_store_lock(folder, &lock, err);
    if (status == HR_OK) status = prune(&l, overrides, count, err);
    hr_file_close(&lock);
    return status;
}
