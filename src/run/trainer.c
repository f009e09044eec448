/* SPDX-License-Identifier: Apache-2.0 */
/* run/trainer.c - runs the sections of a run in order. */
#include "run/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "ops/list.h"
#include "run/loss_scale.h"
#include "run/reporting.h"
#include "run/stages.h"
#include "sections/assemble.h"

/* Places the file of moments and layer inputs. */
static hr_status place_moments(hr_region *region, hr_trainer *trainer, hr_error *err)
{
    const hr_config *config = trainer->config;
    const int64_t bytes = trainer->stages ? trainer->stages->file_bytes
                                          : trainer->executor.plan->spaces[HR_SPACE_FILE].bytes;
    if (bytes == 0) return HR_OK;
    hr_file_space_name(config, trainer->moments_name);
    const hr_block_file_options of = { hr_file_space_directory(config), trainer->moments_name,
                                       config->train.out, bytes };
    trainer->moments = hr_transfer_file_place(region, &of);
    trainer->transfers.file = trainer->moments;
    return trainer->moments ? HR_OK : hr_fail(err, HR_FAILURE, "out of memory for the moments");
}

/* Places the reader of weights that stay in files (memory.weights=file). */
static hr_status place_base(hr_region *region, hr_trainer *trainer, hr_error *err)
{
    if (trainer->executor.plan->spaces[HR_SPACE_BASE].bytes == 0) return HR_OK;
    trainer->base = hr_weights_stream_place(region, hr_weights_width_most(trainer->config));
    if (!trainer->base) return hr_fail(err, HR_FAILURE, "out of memory for reading the base");
    trainer->transfers.base = hr_weights_stream_source(trainer->base);
    return HR_OK;
}

/* Places the tables of the executor, with room for the program of any stage. */
static hr_status place_tables(hr_region *region, hr_trainer *trainer, hr_error *err)
{
    const hr_model_limits limits = hr_model_limits_of(trainer->config);
    const hr_program most = { .step_count = limits.steps,
                              .tensor_count = limits.tensors,
                              .loop_count = limits.loops };
    if (!trainer->stages) return hr_executor_place(region, &trainer->executor, err);
    const int64_t bytes = hr_executor_bytes(&most) + limits.tensors;
    trainer->tables = hr_region_over(hr_region_take(region, bytes, 1), bytes);
    if (!trainer->tables.base)
        return hr_fail(err, HR_FAILURE, "out of memory for the tables of the stages");
    return hr_executor_place(&trainer->tables, &trainer->executor, err);
}

static void before(void *context, const hr_executor *executor, int32_t step)
{
    const hr_trainer *trainer = context;
    trainer->observer->before(trainer->observer->context, executor, step);
}

static void watch(void *context, const hr_executor *executor, int32_t step)
{
    const hr_trainer *trainer = context;
    trainer->observer->watch(trainer->observer->context, executor, step);
}

static hr_status begin_observing(hr_trainer *trainer, hr_error *err)
{
    const hr_observer *observer = trainer->observer;
    if (observer->services.count) hr_executor_serve(&trainer->executor, observer->services);
    if (observer->before) trainer->executor.before = before;
    if (observer->watch) trainer->executor.watch = watch;
    return observer->placed
               ? observer->placed(observer->context, &trainer->executor, trainer->rates, err)
               : HR_OK;
}

hr_status hr_trainer_place(hr_region *region, const hr_program *program, hr_trainer *trainer,
                           hr_error *err)
{
    trainer->executor.program = program;
    hr_status status = place_moments(region, trainer, err);
    if (status == HR_OK) status = place_base(region, trainer, err);
    if (status == HR_OK) status = place_tables(region, trainer, err);
    if (status != HR_OK) return status;
    if (trainer->moments || trainer->base)
        hr_executor_serve(&trainer->executor, hr_transfer_services(&trainer->transfers));
    hr_executor_serve(&trainer->executor, hr_trainer_services(trainer));
    if (trainer->observer) status = begin_observing(trainer, err);
    if (status != HR_OK) return status;
    status = hr_executor_check_services(&trainer->executor, err);
    if (status != HR_OK) return status;
    status = hr_sample_place(region, trainer->config, &trainer->sample, err);
    if (status != HR_OK) return status;
    return hr_run_files_place(region, program, &trainer->files, err);
}

bool hr_trainer_poll(hr_trainer *trainer)
{
    if (hr_requests_report(&trainer->requests)) {
        hr_log_signal(&trainer->log, trainer->state.step, "SIGUSR2");
        hr_trainer_report_memory(trainer);
    }
    return hr_requests_stop(&trainer->requests);
}

/* ---- a step */

static bool has_section(const hr_trainer *trainer, hr_loop_id id)
{
    return hr_program_loop(trainer->executor.program, id) != HR_NONE;
}

static hr_status run_section(hr_trainer *trainer, hr_loop_id id, hr_error *err)
{
    return hr_executor_run(&trainer->executor, hr_program_loop(trainer->executor.program, id), err);
}

static hr_status run_step_sections(hr_trainer *trainer, hr_error *err)
{
    hr_executor *executor = &trainer->executor;
    executor->clock = trainer->state.step;
    executor->uncounted = trainer->state.uncounted;
    executor->committed = false;
    trainer->measures.is_bad = trainer->measures.overflowed = false;
    hr_status status = run_section(trainer, HR_LOOP_FETCH, err);
    if (status == HR_OK && has_section(trainer, HR_LOOP_NORM))
        status = run_section(trainer, HR_LOOP_NORM, err);
    if (status == HR_OK) status = run_section(trainer, HR_LOOP_STEP, err);
    if (status == HR_OK && has_section(trainer, HR_LOOP_UPDATE))
        status = run_section(trainer, HR_LOOP_UPDATE, err);
    return status;
}

/* The share of the batch that has no target. */
static double padding(const hr_trainer *trainer)
{
    const hr_config *config = trainer->config;
    const double all = (double)config->train.batch * (double)config->train.seq_len;
    return 1 - (double)trainer->measures.targets / all;
}

static void log_step(hr_trainer *trainer, double rate)
{
    const hr_run_state *state = &trainer->state;
    const hr_metrics_step line = { .step = state->step,
                                   .loss = trainer->measures.loss,
                                   .lr = trainer->measures.lr,
                                   .grad_norm = trainer->measures.grad_norm,
                                   .tokens = state->tokens,
                                   .tokens_per_second = rate,
                                   .seconds = trainer->result->seconds,
                                   .no_targets = trainer->measures.targets == 0,
                                   .pulls = trainer->config->train.z_loss > 0,
                                   .z_loss = trainer->measures.z_loss,
                                   .loss_scale = trainer->measures.loss_scale,
                                   .fraction_of_ceiling = rate * trainer->ceiling_seconds,
                                   .stage = trainer->stages ? trainer->stages->current + 1 : 0,
                                   .padding = padding(trainer) };
    hr_log_step(&trainer->log, &line);
}

/* Returns the number of batches of an evaluation. */
static int64_t evaluation_batches(const hr_trainer *trainer)
{
    const hr_program *program = trainer->executor.program;
    const int64_t there = hr_batches_view(trainer->inputs.valid)->batches;
    if (!trainer->config->train.eval_batches) return there;
    return hr_min(program->loops[hr_program_loop(program, HR_LOOP_EVALUATION_BATCH)].count, there);
}

/* The steps of later stages, counted in steps of the present one by their predicted times, beyond
 * their number. */
static double later_steps(const hr_trainer *trainer)
{
    const hr_stage_set *set = trainer->stages;
    double more = 0;
    for (int32_t i = set ? set->current + 1 : 0; set && i < set->list.count; i++) {
        const int64_t first = set->list.at[i].first_step;
        const int64_t end = i + 1 < set->list.count ? set->list.at[i + 1].first_step
                                                    : trainer->state.steps;
        const double ratio = set->plans[i].step_seconds / set->plans[set->current].step_seconds;
        more += (double)hr_max(end - first, 0) * (ratio - 1);
    }
    return more;
}

/* An evaluated token takes a third of the time of a trained one: the backward pass takes twice as
 * long as the forward pass. A sampled token takes the forward pass of a window. */
static double seconds_left(const hr_trainer *trainer)
{
    const hr_config *config = trainer->config;
    const hr_plan_answer *plan = &trainer->result->plan;
    const double save = config->train.out[0] && plan->disk_rate > 0
                            ? (double)plan->disk.tensor_bytes / plan->disk_rate
                            : 0;
    const double sampled = (double)config->train.sample_tokens /
                           (3.0 * (double)config->train.batch);
    hr_remaining remaining = {
        .step = trainer->state.step,
        .steps = trainer->state.steps,
        .more_steps = later_steps(trainer),
        .every = { [HR_WORK_EVALUATION] = trainer->inputs.valid ? config->train.eval_every
                                                                : HR_EVERY_NONE,
                   [HR_WORK_SAMPLE] = has_section(trainer, HR_LOOP_SAMPLE)
                                          ? config->train.sample_every
                                          : HR_EVERY_NONE,
                   [HR_WORK_SAVE] = config->train.out[0] ? config->train.checkpoint_every
                                                         : HR_EVERY_NONE },
        .in_steps = { [HR_WORK_SAMPLE] = sampled },
        .in_seconds = { [HR_WORK_SAVE] = save },
        .end_seconds = 2 * save /* flush and read back */
    };
    if (trainer->inputs.valid)
        remaining.in_steps[HR_WORK_EVALUATION] = (double)evaluation_batches(trainer) *
                                                 (double)plan->micro_batch /
                                                 (3.0 * (double)config->train.batch);
    return hr_remaining_seconds(&remaining, &trainer->times);
}

static void count_step(hr_trainer *trainer, int64_t before_ns)
{
    const hr_train_events *events = &trainer->options->events;
    hr_train_result *result = trainer->result;
    hr_run_state *state = &trainer->state;
    const int64_t now_ns = hr_clock_ns();
    state->step++;
    state->tokens += trainer->measures.targets;
    if (trainer->measures.targets) {
        if (isnan(state->first_loss)) state->first_loss = trainer->measures.loss;
        state->last_loss = trainer->measures.loss;
    }
    state->seconds = trainer->times.seconds_before +
                     (double)(now_ns - trainer->times.start_ns) * 1e-9;
    hr_trainer_take_result(result, state);
    result->saved = trainer->files.is_saved = false;
    hr_run_times_add(&trainer->times, HR_WORK_STEP, (double)(now_ns - before_ns) * 1e-9);
    const double rate = (double)trainer->measures.targets * 1e9 /
                        (double)hr_max(now_ns - before_ns, 1);
    const hr_train_step event = { .step = state->step,
                                  .steps = state->steps,
                                  .loss = trainer->measures.loss,
                                  .lr = trainer->measures.lr,
                                  .grad_norm = trainer->measures.grad_norm,
                                  .tokens = state->tokens,
                                  .seconds = result->seconds,
                                  .tokens_per_second = rate,
                                  .seconds_left = seconds_left(trainer),
                                  .targets = trainer->measures.targets,
                                  .fraction_of_ceiling = rate * trainer->ceiling_seconds,
                                  .saved_step = trainer->files.saved_step };
    if (events->step) events->step(events->context, &event);
    log_step(trainer, rate);
}

/* Handles a bad step as the recipe says. The run ends if weights have already changed or if there
 * were too many bad steps. */
static hr_status skip_or_rewind(hr_trainer *trainer, int64_t before_ns, hr_error *err)
{
    const hr_config *config = trainer->config;
    const bool rewinds = config->train.bad_steps == HR_BAD_STEPS_REWIND;
    if (config->train.bad_steps == HR_BAD_STEPS_STOP || (!rewinds && trainer->executor.committed))
        return HR_DIVERGED;
    if (trainer->state.bad_steps >= config->train.bad_steps_max) {
        const hr_error why = err ? *err : (hr_error){ .status = HR_DIVERGED };
        return hr_fail(err, HR_DIVERGED, "after %lld bad steps (train.bad_steps_max), %s",
                       (long long)trainer->state.bad_steps, why.message);
    }
    trainer->state.bad_steps++;
    if (rewinds) return hr_trainer_rewind(trainer, err);
    char line[HR_ERROR_BYTES];
    trainer->state.uncounted++;
    snprintf(line, sizeof line, "%.*s; the update is skipped",
             (int)strcspn(err ? err->message : "bad step", ";"), err ? err->message : "bad step");
    count_step(trainer, before_ns);
    hr_trainer_trouble(trainer, line);
    return HR_OK;
}

/* A step whose gradient overflowed f16 counts, without an update; the next has a smaller factor. */
static hr_status skip_overflow(hr_trainer *trainer, int64_t before_ns, hr_error *err)
{
    char line[HR_ERROR_BYTES];
    const hr_train_events *events = &trainer->options->events;
    hr_loss_scale *scale = &trainer->state.loss_scale;
    const double before = scale->factor;
    hr_loss_scale_count(scale, true);
    trainer->measures.grad_norm = (double)NAN;
    if (scale->overflows > trainer->config->train.bad_steps_max)
        return hr_fail(err, HR_DIVERGED,
                       "step %lld: the gradient overflows fp16 for %lld steps in a row, now at a "
                       "loss scale of %g; use train.dtype=bf16, or a lower train.optimizer.lr",
                       (long long)trainer->state.step + 1, (long long)scale->overflows, before);
    snprintf(line, sizeof line,
             "step %lld: the gradient overflows fp16 at a loss scale of %g; the update is skipped, "
             "the loss scale is %g",
             (long long)trainer->state.step + 1, before, scale->factor);
    trainer->state.uncounted++;
    count_step(trainer, before_ns);
    if (events->text) events->text(events->context, line);
    return HR_OK;
}

/* Waits for a small pending checkpoint to reach the disk before the step counts, so that a kill
 * loses at most one interval. A large one completes during later steps. Returns nanoseconds, which
 * are not part of the step time. */
static int64_t wait_for_disk(hr_trainer *trainer)
{
    const int64_t before_ns = hr_clock_ns();
    hr_checkpoint_writer_linger(trainer->files.writer);
    return hr_clock_ns() - before_ns;
}

/* Tells the observer of a step, with what transfers have moved so far. */
static hr_status tell_observer(hr_trainer *trainer, hr_error *err)
{
    const hr_observer *observer = trainer->observer;
    hr_measures *measures = &trainer->measures;
    if (!observer || !observer->stepped) return HR_OK;
    if (trainer->moments) measures->moved = hr_space_file_moved(&trainer->moments->file);
    if (trainer->base) {
        const hr_stream_times times = hr_weights_stream_times(trainer->base);
        measures->base_moved = (hr_space_moved){ .read_bytes = times.bytes,
                                                 .busy_ns = times.read_ns };
    }
    return observer->stepped(observer->context, &trainer->state, measures, err);
}

static hr_status train_step(hr_trainer *trainer, hr_error *err)
{
    const int64_t before_ns = hr_clock_ns();
    hr_status status = run_step_sections(trainer, err);
    if (status == HR_DIVERGED && trainer->measures.overflowed)
        return skip_overflow(trainer, before_ns, err);
    if (status == HR_DIVERGED && trainer->measures.is_bad)
        return skip_or_rewind(trainer, before_ns, err);
    if (status == HR_OK) hr_loss_scale_count(&trainer->state.loss_scale, false);
    if (status == HR_OK) count_step(trainer, before_ns + wait_for_disk(trainer));
    return status == HR_OK ? tell_observer(trainer, err) : status;
}

/* ---- work between steps */

/* Updates the best evaluation. Evaluations without targets have no loss and are not passed here. */
static void update_best(hr_trainer *trainer)
{
    hr_run_state *state = &trainer->state;
    const bool best = !(state->valid_loss >= state->best_loss);
    state->waited = best ? 0 : state->waited + 1;
    if (best) {
        state->best_loss = state->valid_loss;
        state->best_step = state->step;
    }
    const int64_t patience = trainer->config->train.patience;
    state->ended = patience > 0 && state->waited >= patience;
}

static hr_status evaluate(hr_trainer *trainer, hr_error *err)
{
    const hr_train_events *events = &trainer->options->events;
    trainer->executor.count[hr_program_loop(trainer->executor.program, HR_LOOP_EVALUATION_BATCH)] =
        evaluation_batches(trainer);
    trainer->measures.evaluated_tokens = 0;
    trainer->executor.committed = false;
    const hr_status status = run_section(trainer, HR_LOOP_EVALUATION, err);
    if (status != HR_OK) return status;
    trainer->result->valid_loss = trainer->state.valid_loss = trainer->measures.evaluation_loss;
    trainer->state.evaluated = trainer->state.step;
    trainer->files.is_saved = false;
    if (trainer->measures.evaluated_tokens) update_best(trainer);
    if (events->evaluated)
        events->evaluated(events->context, trainer->state.step, trainer->measures.evaluation_loss,
                          trainer->measures.evaluated_tokens);
    hr_log_evaluation(&trainer->log, trainer->state.step, trainer->measures.evaluation_loss,
                      trainer->measures.evaluated_tokens);
    if (!trainer->measures.evaluated_tokens || isfinite(trainer->measures.evaluation_loss))
        return HR_OK;
    char what[128];
    snprintf(what, sizeof what, "step %lld: the validation loss is %g over %lld tokens",
             (long long)trainer->state.step, trainer->measures.evaluation_loss,
             (long long)trainer->measures.evaluated_tokens);
    return hr_trainer_diverged(trainer, what, err);
}

/* Samples a continuation of the prompt. */
static hr_status sample(hr_trainer *trainer, hr_error *err)
{
    const hr_train_events *events = &trainer->options->events;
    int64_t bytes = 0;
    trainer->executor.committed = false;
    /* Needed if this is the first work after the start. */
    trainer->executor.clock = trainer->state.step - 1;
    hr_status status = run_section(trainer, HR_LOOP_SAMPLE, err);
    if (status == HR_OK)
        status = hr_sample_take(&trainer->sample, trainer->inputs.vocabulary, &bytes, err);
    if (status != HR_OK) return status;
    trainer->state.sampled = trainer->state.step;
    trainer->files.is_saved = false;
    if (events->sample) events->sample(events->context, trainer->sample.text, bytes);
    hr_log_sample(&trainer->log, trainer->state.step, trainer->sample.text, bytes);
    return HR_OK;
}

static bool due(int64_t every, int64_t step)
{
    return every > 0 && step % every == 0;
}

/* Turns a failed checkpoint into a warning, unless it is the last: the existing ones stay, and the
 * next interval tries again. Without its base no later one would be whole. */
static hr_status tolerate_failure(hr_trainer *trainer, hr_status status, bool last,
                                  const hr_error *err)
{
    char line[HR_ERROR_BYTES + 64];
    const bool passes = status == HR_FAILURE || status == HR_USAGE || status == HR_CORRUPT;
    if (last || !passes || trainer->files.base_changed) return status;
    snprintf(line, sizeof line, "step %lld: %s: %s", (long long)trainer->state.step,
             trainer->files.writer->made ? "a checkpoint alone" : "no checkpoint", err->message);
    hr_trainer_trouble(trainer, line);
    return HR_OK;
}

/* The last checkpoint of a run is not tried again. Says what is lost unless there is a checkpoint
 * of this step. */
static hr_status fail_save(const hr_trainer *trainer, const hr_error *why, hr_error *err)
{
    const long long step = trainer->state.step, saved = trainer->files.saved_step;
    const bool lost = why->status == HR_FAILURE || why->status == HR_USAGE ||
                      why->status == HR_CORRUPT;
    if (trainer->files.base_changed)
        return hr_fail(err, why->status, "step %lld: %.480s; the adapters after step %lld are lost",
                       step, why->message, saved);
    if (!lost || saved == step) return hr_fail(err, why->status, "%s", why->message);
    if (saved)
        return hr_fail(err, why->status,
                       "step %lld: the weights after step %lld are lost: %.480s; the same command "
                       "then resumes at step %lld",
                       step, saved, why->message, saved);
    return hr_fail(err, why->status,
                   "step %lld: the weights of this run are lost: %.480s; the same command then "
                   "starts over",
                   step, why->message);
}

static hr_status collect_checkpoint(hr_trainer *trainer, bool wait, bool last, hr_error *err)
{
    hr_error why = { .status = HR_OK };
    if (wait && trainer->files.writer->pending)
        hr_trainer_report_progress(trainer, "writing the checkpoint", 0, 0);
    hr_status status = wait ? hr_executor_wait(&trainer->executor, HR_OP_save, &why)
                            : hr_trainer_collect_checkpoint(trainer, false, &why);
    status = tolerate_failure(trainer, status, last, &why);
    return status == HR_OK ? HR_OK : fail_save(trainer, &why, err);
}

/* Makes a checkpoint; waits for the last one of a run. */
static hr_status save_checkpoint(hr_trainer *trainer, bool last, hr_error *err)
{
    hr_error why = { .status = HR_OK };
    hr_status status = collect_checkpoint(trainer, true, false, err);
    if (status != HR_OK) return status;
    status = tolerate_failure(trainer, hr_trainer_save(trainer, &why), last, &why);
    if (status != HR_OK) return fail_save(trainer, &why, err);
    return last ? collect_checkpoint(trainer, true, true, err) : HR_OK;
}

/* Logs a scheduled checkpoint before it is made, so that the log of a resumed run equals that of an
 * uninterrupted one. */
static hr_status save_due(hr_trainer *trainer, bool last, hr_error *err)
{
    hr_run_state *state = &trainer->state;
    if (!trainer->config->train.out[0]) return HR_OK;
    if (state->kept < state->step) {
        state->kept = state->step;
        hr_log_save(&trainer->log, state->step, trainer->result->seconds);
    }
    return save_checkpoint(trainer, last, err);
}

typedef hr_status work_fn(hr_trainer *trainer, hr_error *err);

/* Does work that is due, and measures its time. */
static hr_status measure(hr_trainer *trainer, work_fn *work, hr_run_work kind, hr_error *err)
{
    const int64_t before_ns = hr_clock_ns();
    const hr_status status = work(trainer, err);
    hr_run_times_add(&trainer->times, kind, (double)(hr_clock_ns() - before_ns) * 1e-9);
    return status;
}

static hr_status save_last(hr_trainer *trainer, hr_error *err)
{
    return save_due(trainer, true, err);
}

static hr_status save_next(hr_trainer *trainer, hr_error *err)
{
    return save_due(trainer, false, err);
}

/* Does the work that is due after a step, unless it was done before an interrupt. */
static hr_status after_step(hr_trainer *trainer, hr_error *err)
{
    const hr_config *config = trainer->config;
    hr_run_state *state = &trainer->state;
    const int64_t step = state->step;
    hr_status status = HR_OK;
    if (step == 0) return HR_OK;
    if (trainer->inputs.valid && state->evaluated < step &&
        (step == state->steps || due(config->train.eval_every, step)))
        status = measure(trainer, evaluate, HR_WORK_EVALUATION, err);
    const bool last = step == state->steps || state->ended;
    if (status == HR_OK && has_section(trainer, HR_LOOP_SAMPLE) && state->sampled < step &&
        (last || due(config->train.sample_every, step)))
        status = measure(trainer, sample, HR_WORK_SAMPLE, err);
    const bool best = config->train.keep_best && state->evaluated == step &&
                      state->best_step == step;
    if (status == HR_OK && (last || best || due(config->train.checkpoint_every, step)))
        status = measure(trainer, last ? save_last : save_next, HR_WORK_SAVE, err);
    return status;
}

/* Makes a checkpoint if a signal requested one; else collects a completed one. */
static hr_status save_requested(hr_trainer *trainer, hr_error *err)
{
    if (trainer->state.step == 0 || !hr_requests_save(&trainer->requests))
        return collect_checkpoint(trainer, false, false, err);
    hr_log_signal(&trainer->log, trainer->state.step, "SIGUSR1");
    return save_checkpoint(trainer, false, err);
}

/* Whether the run ends here because its observer has seen enough steps. */
static bool is_observed(const hr_trainer *trainer)
{
    return trainer->observer && trainer->state.step >= trainer->observer->last_step;
}

static bool has_steps_left(const hr_trainer *trainer)
{
    return trainer->state.step < trainer->state.steps && !trainer->state.ended;
}

/* Goes on from a checkpoint if the file of moments has failed in a step, or while saving. */
static hr_status recover(hr_trainer *trainer, hr_status status, hr_error *err)
{
    const bool failed = trainer->moments &&
                        hr_transfer_file_failure(trainer->moments, NULL) != HR_OK;
    return status != HR_OK && status != HR_INTERRUPTED && failed ? hr_trainer_recover(trainer, err)
                                                                 : status;
}

/* The writer of a checkpoint reads the program, which a switch replaces: it ends first. */
static hr_status enter_stage(hr_trainer *trainer, hr_error *err)
{
    const hr_stage_set *set = trainer->stages;
    hr_status status = HR_OK;
    if (set && hr_stages_find(&set->list, trainer->state.step) != set->current)
        status = collect_checkpoint(trainer, true, false, err);
    return status == HR_OK ? hr_trainer_enter_stage(trainer, trainer->state.step, err) : status;
}

static hr_status run_steps(hr_trainer *trainer, hr_error *err)
{
    hr_status status = after_step(trainer, err);
    while (status == HR_OK && has_steps_left(trainer) && !is_observed(trainer) &&
           !hr_trainer_poll(trainer)) {
        status = enter_stage(trainer, err);
        if (status == HR_OK) status = train_step(trainer, err);
        if (status == HR_OK) status = after_step(trainer, err);
        if (status == HR_OK) status = save_requested(trainer, err);
        status = recover(trainer, status, err);
    }
    return status;
}

static void log_signal(hr_trainer *trainer)
{
    const volatile sig_atomic_t *signal = trainer->options->signal;
    const char *name = !signal || !*signal ? "time" : *signal == SIGTERM ? "SIGTERM" : "SIGINT";
    hr_log_signal(&trainer->log, trainer->state.step, name);
}

static hr_status end_interrupted(hr_trainer *trainer, hr_error *err)
{
    const int64_t steps = trainer->state.steps;
    const long long most = (long long)(trainer->observer
                                           ? hr_min(steps, trainer->observer->last_step)
                                           : steps);
    const long long step = trainer->state.step;
    if (step == 0)
        return hr_fail(err, HR_INTERRUPTED, "interrupted before the first step; nothing was saved");
    const hr_status status = save_checkpoint(trainer, true, err);
    /* Logged after the size in the checkpoint, so a resumed run truncates this line. */
    if (has_steps_left(trainer)) log_signal(trainer);
    if (status != HR_OK) return status;
    return hr_fail(err, HR_INTERRUPTED, "interrupted after step %lld of %lld%s", step, most,
                   trainer->result->saved ? "; the weights are saved" : "; nothing was saved");
}

/* Shows the observer the final weights and states. Saves them if the run has an output folder. */
static hr_status end_observed(hr_trainer *trainer, hr_error *err)
{
    const hr_observer *observer = trainer->observer;
    const bool shows = observer->last != NULL;
    hr_status status = shows ? observer->last(observer->context, &trainer->executor, err) : HR_OK;
    if (status == HR_OK && shows) status = hr_trainer_visit(trainer, err);
    trainer->executor.before = trainer->executor.watch = NULL; /* it has seen everything once */
    return status == HR_OK ? save_checkpoint(trainer, true, err) : status;
}

hr_status hr_trainer_run(hr_trainer *trainer, hr_error *err)
{
    hr_error ignored;
    hr_status status = hr_trainer_load(trainer, err);
    if (status != HR_OK && status != HR_INTERRUPTED) return status;
    trainer->times.start_ns = hr_clock_ns();
    if (status == HR_OK) status = run_steps(trainer, err);
    const bool stops = hr_requests_stop(&trainer->requests);
    if (status == HR_OK && trainer->observer && !stops) return end_observed(trainer, err);
    if (status == HR_INTERRUPTED || (status == HR_OK && (has_steps_left(trainer) || stops)))
        return end_interrupted(trainer, err);
    (void)!hr_executor_wait(&trainer->executor, HR_OP_save, &ignored);
    return status;
}
