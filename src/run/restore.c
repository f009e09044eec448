/* SPDX-License-Identifier: Apache-2.0 */
/* run/restore.c - saves the state of a run, and restores it on resume and rewind. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/path.h"
#include "checkpoint/checkpoint_store.h"
#include "ops/list.h"
#include "run/recipe_change.h"
#include "run/reporting.h"
#include "run/stages.h"
#include "run/statistics.h"
#include "run/trainer.h"

/* ---- saving */

hr_status hr_trainer_collect_checkpoint(hr_trainer *trainer, bool wait, hr_error *err)
{
    const hr_train_events *events = &trainer->options->events;
    const hr_checkpoint_writer *checkpoint_writer = trainer->files.writer;
    hr_status status = HR_OK;
    if (!hr_checkpoint_writer_collect(trainer->files.writer, wait, &status, err)) return HR_OK;
    if (checkpoint_writer->made) {
        trainer->files.saved_step = checkpoint_writer->manifest.state.step;
        trainer->files.resume.found = true;
        trainer->files.resume.manifest = checkpoint_writer->manifest;
        memcpy(trainer->files.resume.place, checkpoint_writer->place,
               sizeof checkpoint_writer->place);
        hr_error left;
        if (hr_resume_remove_reformatted(trainer->config, &trainer->files.resume, &left) != HR_OK)
            hr_trainer_trouble(trainer, left.message);
    }
    if (status != HR_OK) {
        trainer->files.is_saved = false;
        return status;
    }
    trainer->result->saved = trainer->files.saved_step == trainer->state.step;
    if (checkpoint_writer->pruned != HR_OK)
        hr_trainer_trouble(trainer, checkpoint_writer->prune_err.message);
    if (events->saved)
        events->saved(events->context, trainer->files.saved_step, trainer->config->train.out);
    return HR_OK;
}

/* Saving is not interruptible: an interrupt is often the reason to save. */
hr_status hr_trainer_visit(hr_trainer *trainer, hr_error *err)
{
    hr_executor *executor = &trainer->executor;
    hr_stop_fn *stop = executor->stop;
    executor->stop = NULL;
    const hr_status status = hr_executor_run(executor,
                                             hr_program_loop(executor->program, HR_LOOP_SAVE), err);
    executor->stop = stop;
    return status;
}

static hr_status diverged(hr_trainer *trainer, hr_error *err)
{
    char what[HR_NAME_BYTES];
    snprintf(what, sizeof what, "step %lld: %.160s", (long long)trainer->state.step,
             err ? err->message : "a weight is NaN or Inf");
    return hr_trainer_diverged(trainer, what, err);
}

static void fill_manifest(hr_trainer *trainer)
{
    hr_manifest *manifest = &trainer->files.writer->manifest;
    hr_run_state *state = &trainer->state;
    hr_log_note(&trainer->log, state);
    hr_statistics_put(&trainer->guard, state);
    manifest->state = *state;
    manifest->texts = trainer->inputs.identity;
    snprintf(manifest->kernels, sizeof manifest->kernels, "%s",
             trainer->executor.plan->process.rung);
}

/* If the output folder was moved or removed, creates it again and continues there. */
static hr_status relock_folder(hr_trainer *trainer, hr_error *err)
{
    bool moved;
    char line[HR_PATH_BYTES + 128];
    const char *out = trainer->config->train.out;
    hr_status status = hr_checkpoint_store_lock_again(out, trainer->lock, &moved, err);
    if (status != HR_OK || !moved) return status;
    status = hr_log_follow(&trainer->log, trainer->state.step + 1, err);
    snprintf(line, sizeof line,
             "%.900s: the output folder has changed; the run continues there, with a new "
             "log",
             out);
    hr_trainer_trouble(trainer, line);
    return status;
}

hr_status hr_trainer_save(hr_trainer *trainer, hr_error *err)
{
    hr_checkpoint_writer *checkpoint_writer = trainer->files.writer;
    const int64_t bytes = hr_weights_text_bytes(trainer->executor.program);
    const int64_t step = trainer->state.step;
    if (!trainer->config->train.out[0]) return HR_OK;
    if (trainer->files.is_saved) return HR_OK;
    hr_status status = hr_base_files_check(&trainer->files.base, err);
    trainer->files.base_changed = status != HR_OK;
    if (status == HR_OK) status = relock_folder(trainer, err);
    if (status == HR_OK)
        status = hr_checkpoint_writer_begin(checkpoint_writer, step, trainer->files.weights_text,
                                            bytes, err);
    if (status != HR_OK) return status;
    status = hr_trainer_visit(trainer, err);
    if (status != HR_OK) {
        hr_checkpoint_writer_abort(checkpoint_writer);
        return status == HR_DIVERGED ? diverged(trainer, err) : status;
    }
    fill_manifest(trainer);
    hr_checkpoint_writer_finish(checkpoint_writer);
    trainer->files.is_saved = true;
    return HR_OK;
}

/* ---- loading */

/* Whether a change that can add this state is allowed. */
static bool may_start(const hr_trainer *trainer, const hr_state *state)
{
    if (state->average) return hr_recipe_change_allows(trainer->options, "train.ema_decay");
    return hr_recipe_change_allows(trainer->options, "train.optimizer.kind") ||
           (trainer->config->train.optimizer.kind == HR_OPTIMIZER_ADAFACTOR &&
            hr_recipe_change_allows(trainer->options, "train.optimizer.adafactor.beta1"));
}

/* Returns whether the recipe adds this state, by a change that is allowed, and reports it. */
static bool starts_anew(hr_trainer *trainer, hr_kept kept)
{
    if (kept == HR_KEPT_WEIGHTS) return false;
    const hr_state *state = &trainer->executor.program->states[kept - HR_KEPT_STATES];
    char line[256];
    if (!may_start(trainer, state)) return false;
    snprintf(line, sizeof line, "the checkpoint has no %s: %s starts at %s", state->file,
             state->name, state->average ? "the current weights" : "zero");
    /* For the log alone: until all is loaded the run has no step that may be saved. */
    const int64_t step = trainer->state.step;
    trainer->state.step = trainer->files.resume.manifest.state.step;
    hr_trainer_trouble(trainer, line);
    trainer->state.step = step;
    return true;
}

/* The folder of a file of the checkpoint: that of the files in other formats has precedence. */
static const char *place_of(const hr_resume *resume, const char *name, bool *there)
{
    char path[PATH_MAX];
    hr_error ignored;
    *there = *resume->reformatted &&
             hr_path_join(resume->reformatted, name, path, sizeof path, &ignored) == HR_OK &&
             hr_file_exists(path);
    if (*there) return resume->reformatted;
    *there = hr_manifest_find(&resume->manifest, name);
    return resume->place;
}

/* Whether the optimizer has states, and the checkpoint none of them. */
static bool moments_start(const hr_trainer *trainer)
{
    const hr_program *program = trainer->executor.program;
    bool any = false;
    for (int32_t i = 0; i < program->state_count; i++) {
        const hr_kept kept = HR_KEPT_STATES + i;
        const hr_state *state = &program->states[i];
        if (state->average || !state->file || !hr_kept_any(program, kept)) continue;
        if (trainer->files.kept[kept].file_count) return false;
        any = true;
    }
    return any;
}

static hr_status open_kept(hr_trainer *trainer, hr_error *err)
{
    const hr_program *program = trainer->executor.program;
    const hr_resume *resume = &trainer->files.resume;
    hr_status status = HR_OK;
    for (hr_kept kept = 0; kept < hr_kept_count(program) && status == HR_OK; kept++) {
        if (!hr_kept_any(program, kept)) continue;
        bool there;
        const char *place = place_of(resume, hr_kept_name(program, kept), &there);
        if (!there && starts_anew(trainer, kept)) continue;
        if (!there)
            return hr_fail(err, HR_CORRUPT, "%.300s: its manifest has no %s", place,
                           hr_kept_name(program, kept));
        status = hr_weights_in_open_kept(&trainer->files.kept[kept], program, kept, place,
                                         trainer->files.cpu_mask, trainer->files.weights_text,
                                         hr_weights_text_bytes(program), err);
    }
    return status;
}

static hr_status restore_state(hr_trainer *trainer, hr_error *err)
{
    const int64_t steps = trainer->state.steps, patience = trainer->config->train.patience;
    trainer->state = trainer->files.resume.manifest.state;
    if (!hr_statistics_read(&trainer->state, &trainer->guard))
        return hr_fail(err, HR_CORRUPT, "%.300s: its manifest has incomplete statistics",
                       trainer->files.resume.place);
    /* A recipe may have fewer steps than are done; a manifest may not. */
    trainer->state.steps = hr_max(steps, trainer->state.step);
    trainer->state.ended = patience > 0 && trainer->state.waited >= patience;
    trainer->files.saved_step = trainer->state.step;
    trainer->files.is_saved = true;
    trainer->times.seconds_before = trainer->state.seconds;
    hr_train_result *result = trainer->result;
    hr_trainer_take_result(result, &trainer->state);
    result->saved = true;
    return HR_OK;
}

hr_status hr_trainer_load(hr_trainer *trainer, hr_error *err)
{
    hr_status status = trainer->files.resume.found ? open_kept(trainer, err) : HR_OK;
    const bool anew = trainer->files.resume.found && status == HR_OK && moments_start(trainer);
    if (status == HR_OK)
        status = hr_executor_run(&trainer->executor,
                                 hr_program_loop(trainer->executor.program, HR_LOOP_LOAD), err);
    hr_run_files_close_kept(&trainer->files, trainer->executor.program);
    if (status == HR_OK && trainer->files.resume.found) status = restore_state(trainer, err);
    if (status != HR_OK) return status;
    if (anew) trainer->state.uncounted = trainer->state.step;
    trainer->is_in_stage = false;
    return hr_trainer_enter_stage(trainer, hr_max(trainer->state.step - 1, 0), err);
}

/* ---- rewinding */

/* Reads and verifies the checkpoint of a step, in buffers that the idle checkpoint writer does not
 * need. */
static hr_status read_checkpoint(hr_trainer *trainer, int64_t step, hr_error *err)
{
    hr_checkpoint_writer *checkpoint_writer = trainer->files.writer;
    hr_resume *resume = &trainer->files.resume;
    char name[HR_STEP_NAME_BYTES];
    const hr_checkpoint_store_reader reader = { .memory = checkpoint_writer->buffer,
                                                .bytes = HR_CHECKPOINT_WRITER_BUFFER };
    hr_status status = hr_path_join(checkpoint_writer->store, hr_step_name(step, name),
                                    checkpoint_writer->place, sizeof checkpoint_writer->place, err);
    if (status == HR_OK)
        status = hr_checkpoint_store_read(checkpoint_writer->store, step, checkpoint_writer->text,
                                          &checkpoint_writer->manifest, err);
    if (status == HR_OK)
        status = hr_checkpoint_store_verify(checkpoint_writer->place, &checkpoint_writer->manifest,
                                            &reader, err);
    if (status != HR_OK) return status;
    memcpy(resume->place, checkpoint_writer->place, sizeof checkpoint_writer->place);
    resume->manifest = checkpoint_writer->manifest;
    return HR_OK;
}

/* Chooses the last scheduled checkpoint, not one that a signal requested, so that interruptions do
 * not change the results. If it is damaged, chooses the newest intact one. An unreadable checkpoint
 * is not damaged: its error ends the run. */
static hr_status find_rewind_target(hr_trainer *trainer, hr_error *err)
{
    const hr_resume *resume = &trainer->files.resume;
    if (!resume->found)
        return hr_trainer_diverged(trainer, "there is no checkpoint to rewind to", err);
    const char *store = trainer->files.writer->store;
    /* After a change of formats a checkpoint older than that of the resume has those before it. */
    const int64_t kept = *resume->reformatted ? 0 : trainer->state.kept;
    const int64_t due = kept > 0 ? kept : resume->manifest.state.step;
    hr_status status = read_checkpoint(trainer, due, err);
    for (int64_t step = INT64_MAX; status == HR_CORRUPT;) {
        if (step != due && err) hr_trainer_trouble(trainer, err->message);
        status = hr_checkpoint_store_newest(store, step, &step, err);
        if (status == HR_OK && step < 0)
            return hr_trainer_diverged(trainer, "there is no intact checkpoint to rewind to", err);
        if (status == HR_OK)
            status = step == due ? HR_CORRUPT : read_checkpoint(trainer, step, err);
    }
    return status == HR_OK
               ? hr_checkpoint_store_remove_newer(store, resume->manifest.state.step, err)
               : status;
}

static hr_status load_rewind_target(hr_trainer *trainer, hr_error *err)
{
    const hr_status status = find_rewind_target(trainer, err);
    return status == HR_OK ? hr_trainer_load(trainer, err) : status;
}

/* Training continues with the batch after that of the bad step. An interrupt while loading leaves
 * weights of two steps in memory: then the state of the run is that of the checkpoint, which needs
 * no saving. */
hr_status hr_trainer_rewind(hr_trainer *trainer, hr_error *err)
{
    char line[256];
    const int64_t wrong = trainer->state.step, bad_steps = trainer->state.bad_steps;
    const int64_t next_batch = wrong + trainer->state.batch_shift + 1;
    const double seconds_before = trainer->times.seconds_before;
    hr_status status = load_rewind_target(trainer, err);
    if (status == HR_CORRUPT) { /* damaged after its hashes were verified */
        if (err) hr_trainer_trouble(trainer, err->message);
        status = load_rewind_target(trainer, err);
    }
    const hr_status taken = status == HR_INTERRUPTED ? restore_state(trainer, err) : status;
    trainer->times.seconds_before = seconds_before; /* counted from the start of this process */
    if (taken != HR_OK) return taken;
    hr_log_rewind(&trainer->log, &trainer->state);
    if (status != HR_OK) return status;
    trainer->state.bad_steps = bad_steps;
    trainer->state.batch_shift = next_batch - trainer->state.step;
    trainer->is_in_stage = false; /* its batches have moved */
    trainer->result->saved = trainer->files.is_saved =
        false; /* later steps differ from those that were saved */
    snprintf(line, sizeof line, "step %lld: rewound to step %lld, the batch is skipped",
             (long long)wrong + 1, (long long)trainer->state.step);
    hr_trainer_trouble(trainer, line);
    return HR_OK;
}

/* ---- the file of moments */

/* Reads the newest intact checkpoint. */
static hr_status find_newest(hr_trainer *trainer, hr_error *err)
{
    const char *store = trainer->files.writer->store;
    for (int64_t step = INT64_MAX;;) {
        hr_status status = hr_checkpoint_store_newest(store, step, &step, err);
        if (status == HR_OK && step < 0)
            return hr_fail(err, HR_CORRUPT, "%.900s: has no intact checkpoint", store);
        if (status == HR_OK) status = read_checkpoint(trainer, step, err);
        if (status != HR_CORRUPT) return status;
        if (err) hr_trainer_trouble(trainer, err->message);
    }
}

hr_status hr_trainer_recover(hr_trainer *trainer, hr_error *err)
{
    const int64_t step = trainer->state.step + 1;
    char line[HR_ERROR_BYTES];
    hr_error why, failed;
    const hr_status found = hr_transfer_file_failure(trainer->moments, &why);
    HR_ASSERT(found != HR_OK);
    if (hr_executor_wait(&trainer->executor, HR_OP_save, &failed) != HR_OK)
        hr_trainer_trouble(trainer, failed.message);
    if (!trainer->files.resume.found)
        return hr_fail(
            err, why.status,
            "step %lld: %.480s; there is no checkpoint yet: the same command starts over",
            (long long)step, why.message);
    if (trainer->moments_step >= step)
        return hr_fail(
            err, why.status,
            "step %lld: %.480s, again before the run has got past step %lld; the same command "
            "resumes at step %lld",
            (long long)step, why.message, (long long)trainer->moments_step,
            (long long)trainer->files.saved_step);
    trainer->moments_step = step;
    snprintf(line, sizeof line, "step %lld: %.480s", (long long)step, why.message);
    hr_trainer_trouble(trainer, line);
    const double seconds_before = trainer->times.seconds_before;
    hr_status status = find_newest(trainer, err);
    if (status == HR_OK && hr_transfer_file_open(trainer->moments, &failed) != HR_OK)
        return hr_fail(err, why.status, "%.700s; the same command resumes at step %lld",
                       failed.message, (long long)trainer->files.saved_step);
    if (status == HR_OK) status = hr_trainer_load(trainer, err);
    /* An interrupt leaves states of two steps: the state of the run is that of the checkpoint. */
    const hr_status taken = status == HR_INTERRUPTED ? restore_state(trainer, err) : status;
    trainer->times.seconds_before = seconds_before; /* counted from the start of this process */
    if (taken != HR_OK) return taken;
    hr_log_rewind(&trainer->log, &trainer->state);
    if (status != HR_OK) return status;
    snprintf(line, sizeof line, "step %lld: the run continues from the checkpoint of step %lld",
             (long long)step, (long long)trainer->state.step);
    hr_trainer_trouble(trainer, line);
    return HR_OK;
}
