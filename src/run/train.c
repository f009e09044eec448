/* SPDX-License-Identifier: Apache-2.0 */
/* run/train.c - the phases of a run: admission, preparation, memory, seal, training. */
#include "headroom/train.h"
#include "base/path.h"
#include "dev/devices.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "admission/admit.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/options.h"
#include "data/paths.h"
#include "data/prepare.h"
#include "hf/hf_config.h"
#include "model/family.h"
#include "ops/list.h"
#include "planning/disk.h"
#include "planning/measure.h"
#include "planning/stopping.h"
#include "run/folder.h"
#include "run/reporting.h"
#include "run/stages.h"
#include "run/trainer.h"

/* All resources of a run, so that one function closes them. */
typedef struct {
    const hr_config *config;
    const hr_train_options *options;
    hr_memory *memory;
    hr_admission admission;
    hr_region run_region;
    hr_pool pool;
    hr_devices devices;
    hr_text text;
    hr_batch_mixture mixture;
    hr_trainer trainer;
    hr_folder_before before;
    int64_t log_room;  /* bytes for the log beside the checkpoints; negative: no limit */
    bool is_in_folder; /* the run has written to train.out; token shards do not count */
    int lock;          /* lock of train.out; -1: not held */
} run;

/* The prompt of the samples begins the validation text, or the training text if there is none. */
static hr_status read_prompt(run *r, hr_error *err)
{
    const hr_text_part *part = r->text.valid.shard[0] ? &r->text.valid : &r->text.train[0];
    return hr_sample_read_prompt(&r->trainer.sample, r->config, part->shard, &r->run_region, err);
}

static bool report_base(void *context, int64_t done, int64_t all)
{
    run *r = context;
    const hr_train_events *events = &r->options->events;
    if (events->preparing) events->preparing(events->context, "checking the base", done, all);
    return hr_trainer_poll(&r->trainer);
}

/* Finds the weights of model.from, with the help of a temporary region. */
static hr_status open_source(run *r, hr_error *err)
{
    hr_run_files *files = &r->trainer.files;
    const char *path = r->config->model.from;
    hr_region region;
    const bool adapts = r->admission.compiled.program.adapts;
    if (!*path || (files->resume.found && !adapts)) return HR_OK;
    hr_status status = hr_memory_region_open(r->memory, "reading the names of tensors",
                                             hr_weights_in_scratch_bytes(path), &region, err);
    if (status != HR_OK) return status;
    status = hr_weights_in_open(&files->source, &r->admission.compiled.program, HR_PART_MODEL, path,
                                r->admission.cpu_mask, &r->run_region, &region, err);
    region.used = 0;
    if (status == HR_OK && adapts)
        status = hr_base_files_open(&files->base, path, r->options->calibrations, report_base, r,
                                    &r->run_region, &region, err);
    hr_memory_region_close(r->memory, &region);
    return status;
}

/* Finds the adapters that a new run starts from. */
static hr_status open_adapters(run *r, hr_error *err)
{
    hr_run_files *files = &r->trainer.files;
    hr_region region;
    if (!r->config->train.adapter.from[0] || files->resume.found) return HR_OK;
    hr_status status = hr_adapter_path(r->config->train.adapter.from, files->adapters_path, err);
    if (status == HR_OK)
        status = hr_memory_region_open(r->memory, "reading the names of tensors",
                                       hr_weights_in_scratch_bytes(files->adapters_path), &region,
                                       err);
    if (status != HR_OK) return status;
    status = hr_weights_in_open(&files->adapters, &r->admission.compiled.program, HR_PART_ADAPTERS,
                                files->adapters_path, r->admission.cpu_mask, &r->run_region,
                                &region, err);
    hr_memory_region_close(r->memory, &region);
    return status;
}

/* A resumed run goes on with the base that it began with. */
static hr_status check_base(const run *r, hr_error *err)
{
    const hr_run_files *files = &r->trainer.files;
    if (!r->admission.compiled.program.adapts || !files->resume.found) return HR_OK;
    return hr_base_files_compare(&files->base, files->resume.place, err);
}

/* Warns of an average from an earlier run, which this run does not update. */
static void warn_of_old_average(const run *r)
{
    char line[HR_PATH_BYTES + 128], path[HR_PATH_BYTES + 64];
    hr_error ignored;
    const hr_train_events *events = &r->options->events;
    const char *out = r->config->train.out;
    if (!*out || r->config->train.ema_decay > 0 || !events->trouble) return;
    if (hr_path_join(out, "average/model.safetensors", path, sizeof path, &ignored) != HR_OK ||
        !hr_file_exists(path))
        return;
    snprintf(line, sizeof line,
             "%.1000s: is from an earlier run with train.ema_decay; this run does not "
             "change it",
             path);
    events->trouble(events->context, line);
}

/* Warns of adapters that nothing can use: their model is not saved with them. */
static void warn_of_random_base(const run *r)
{
    const hr_config *config = r->config;
    const hr_train_events *events = &r->options->events;
    if (r->admission.compiled.program.adapts && !*config->model.from && *config->train.out &&
        events->trouble)
        events->trouble(events->context, "the model under the adapters has random weights, which "
                                         "are not saved: model.from=FOLDER adapts a trained one");
}

static hr_status flush_log(const void *log, hr_error *err)
{
    return hr_log_flush(log, err);
}

/* What is wrong with the place of the base, and the time that reading it takes at least. */
static void tell_about_base(const run *r)
{
    char line[HR_ERROR_BYTES];
    char size[HR_COUNT_BYTES], time[HR_COUNT_BYTES];
    const hr_train_events *events = &r->options->events;
    const hr_weights_in *source = &r->trainer.files.source;
    const hr_program *program = source->program;
    double in_files = 0, in_memory = 0;
    if (events->trouble && hr_weights_stream_note(r->trainer.base, line))
        events->trouble(events->context, line);
    for (int32_t p = 0; p < program->param_count; p++) {
        const int32_t weight = program->params[p].weight;
        if (!hr_tensor_is_away(program, weight)) continue;
        in_files += (double)hr_weights_in_bytes_of_tensor(source, weight);
        in_memory += (double)hr_tensor_bytes(&program->tensors[weight]);
    }
    const double rate = hr_weights_stream_rate(r->trainer.base);
    const double bytes = (double)r->admission.answer.read_bytes * in_files / fmax(in_memory, 1);
    if (!events->text || rate <= 0) return;
    snprintf(line, sizeof line,
             "base   a step reads %s of weights, which takes %s with a disk that reads %.0f MB/s",
             hr_size_print((int64_t)bytes, size), hr_duration_print(bytes / rate, time),
             1e-6 * rate);
    events->text(events->context, line);
}

static void note_times(const run *r, hr_train_result *result)
{
    if (!r->trainer.base) return;
    const hr_stream_times times = hr_weights_stream_times(r->trainer.base);
    result->read_bytes = times.bytes;
    result->read_seconds = 1e-9 * (double)times.read_ns;
    result->read_waited_seconds = 1e-9 * (double)times.waited_ns;
}

static hr_status open_run(run *r, hr_error *err)
{
    hr_trainer *trainer = &r->trainer;
    const hr_config *config = r->config;
    const hr_compiled *compiled = &r->admission.compiled;
    hr_status status = hr_memory_region_open(r->memory, "tables of the run",
                                             r->admission.needs.run_bytes, &r->run_region, err);
    trainer->files.cpu_mask = r->admission.cpu_mask;
    trainer->rates = &r->admission.rates;
    if (status == HR_OK)
        status = hr_trainer_place(&r->run_region, &compiled->program, trainer, err);
    if (status == HR_OK) status = open_source(r, err);
    if (status == HR_OK && trainer->base)
        status = hr_weights_stream_open(trainer->base, &trainer->files.source, err);
    if (status == HR_OK && trainer->base) tell_about_base(r);
    if (status == HR_OK) status = check_base(r, err);
    if (status == HR_OK) status = open_adapters(r, err);
    if (status != HR_OK) return status;
    /* A text that is too short for a prompt is too short for a window: that error takes
     * precedence. */
    hr_error prompt_err;
    const hr_status prompt = config->train.sample_tokens ? read_prompt(r, &prompt_err) : HR_OK;
    status = hr_inputs_open(&trainer->inputs, &r->admission.config, r->options, &r->text,
                            &r->mixture, trainer->stages, &r->run_region, &trainer->state.steps,
                            err);
    if (status == HR_OK && trainer->stages)
        status = hr_trainer_count_stages(trainer, &trainer->state.steps, err);
    if (status != HR_OK) return status;
    if (prompt != HR_OK) return hr_fail(err, prompt, "%s", prompt_err.message);
    if (config->train.sample_tokens && *config->model.from)
        status = hr_hf_read_ends(config->model.from, config, &trainer->sample_ends, err);
    if (status != HR_OK) return status;
    status = hr_inputs_open_vocabulary(&trainer->inputs, config, &r->text, &r->run_region, err);
    if (status == HR_OK)
        status = hr_checkpoint_writer_open(
            &trainer->files.writer, flush_log, &trainer->log, config, &compiled->program,
            r->admission.answer.strategy, compiled->program.adapts ? &trainer->files.base : NULL,
            r->admission.answer.disk.checkpoint_bytes, &r->run_region, err);
    if (status == HR_OK) warn_of_old_average(r);
    if (status == HR_OK) warn_of_random_base(r);
    return status;
}

/* Opens the log and copies the sidecar files: what train.out gets before the first step. */
static hr_status enter_folder(run *r, hr_error *err)
{
    hr_trainer *trainer = &r->trainer;
    const hr_run_state *from = trainer->files.resume.found ? &trainer->files.resume.manifest.state
                                                           : NULL;
    const hr_status status = hr_log_open(&trainer->log, &r->options->events, r->config->train.out,
                                         r->options->metrics, from, r->log_room, &r->run_region,
                                         err);
    r->is_in_folder = status == HR_OK;
    return status == HR_OK ? hr_prepare_sidecars(r->config, trainer->inputs.vocabulary, err)
                           : status;
}

/* Seconds per token at the calibrated rate of matrix products alone; 0: not calibrated. */
static double ceiling_seconds(const hr_admission *admission)
{
    const hr_dtype dtype = hr_product_dtype(hr_config_dtype(&admission->config));
    const hr_rates *rates = &admission->rates;
    if (!rates->pace_us[0]) return 0;
    return (double)admission->answer.flops_per_token * 1e-18 *
           (double)rates->op[HR_OP_linear][dtype].unit_as[HR_TERM_FLOPS];
}

static bool should_stop(void *context)
{
    return hr_trainer_poll(context);
}

/* The arena of the run: that of its plan, or of its largest stage. */
static int64_t arena_bytes(const run *r)
{
    const hr_stage_set *set = r->trainer.stages;
    return set ? set->arena_bytes : r->admission.compiled.plan.arena_bytes;
}

static hr_status take_memory(run *r, hr_error *err)
{
    const hr_plan *plan = &r->admission.compiled.plan;
    const int32_t threads = plan->process.threads;
    const int64_t stacks_bytes = hr_pool_bytes(threads);
    void *stacks;
    hr_trainer_report_progress(&r->trainer, "allocating memory", 0, 0);
    hr_status status = hr_memory_stacks_open(r->memory, stacks_bytes, &stacks, err);
    if (status == HR_OK) status = hr_pool_open(&r->pool, stacks, stacks_bytes, threads, err);
    if (status == HR_OK)
        status = hr_memory_arena_open(r->memory, &plan->process, arena_bytes(r),
                                      r->options->interrupts, err);
    if (status == HR_INTERRUPTED)
        status = hr_fail(err, HR_INTERRUPTED,
                         "interrupted before the first step; nothing was saved");
    if (status == HR_OK) status = hr_memory_seal(r->memory, &plan->process, err);
    if (status != HR_OK) return status;
    hr_executor *executor = &r->trainer.executor;
    status = hr_device_open(&r->devices, r->admission.backend, &r->pool, r->admission.cpu_mask,
                            &executor->device, err);
    if (status != HR_OK) return status;
    const hr_observer *observer = r->trainer.observer;
    if (observer && observer->device)
        executor->device = observer->device(observer->context, executor->device, &r->pool);
    executor->pool = &r->pool;
    executor->seed = (uint64_t)r->config->train.seed;
    executor->stop = should_stop;
    executor->context = &r->trainer;
    r->trainer.ceiling_seconds = ceiling_seconds(&r->admission);
    return HR_OK;
}

/* Writes the last line of the log, and checks the measured memory against the plan. */
static hr_status report_end(run *r, hr_error *err)
{
    hr_train_result *result = r->trainer.result;
    result->arena_bytes_used = r->memory->arena_bytes_used;
    result->process_bytes_measured = hr_memory_peak_bytes(r->memory);
    const hr_metrics_last last = { result->arena_bytes_planned, result->arena_bytes_used,
                                   result->process_bytes_planned, result->process_bytes_measured,
                                   result->valid_loss };
    const hr_status status = hr_log_end(&r->trainer.log, &last, err);
    if (status != HR_OK || !hr_process_is_exact()) return status;
    if (result->process_bytes_measured > result->process_bytes_planned)
        return hr_fail(err, HR_BROKEN, "the plan was %lld bytes, the process used %lld",
                       (long long)result->process_bytes_planned,
                       (long long)result->process_bytes_measured);
    return HR_OK;
}

/* Does what a run that was killed after its last checkpoint still had to do: publish the weights
 * and remove older checkpoints. */
static hr_status finish_earlier_run(const run *r, hr_error *err)
{
    char buffer[16 << 10];
    hr_error left;
    const hr_train_events *events = &r->options->events;
    const hr_resume *resume = &r->trainer.files.resume;
    const hr_status status = hr_checkpoint_writer_publish(resume->place, r->config, buffer,
                                                          sizeof buffer, err);
    if (status == HR_OK && hr_resume_prune(resume, r->config, &left) != HR_OK && events->trouble)
        events->trouble(events->context, left.message);
    return status;
}

static void report_complete(const run *r, int64_t step)
{
    char line[HR_PATH_BYTES + 128];
    const hr_train_events *events = &r->options->events;
    snprintf(line, sizeof line,
             "%.900s  the run is complete, at step %lld; use --fresh to start over",
             r->config->train.out, (long long)step);
    if (events->text) events->text(events->context, line);
}

/* Reports a run that is complete already; nothing is computed. */
static hr_status report_done(run *r, hr_error *err)
{
    hr_train_result *result = r->trainer.result;
    const hr_run_state *state = &r->trainer.files.resume.manifest.state;
    hr_trainer_take_result(result, state);
    result->saved = true;
    report_complete(r, state->step);
    return finish_earlier_run(r, err);
}

/* Reports the resume, and checks that the texts are unchanged. */
static hr_status check_resume(run *r, hr_error *err)
{
    const hr_resume *resume = &r->trainer.files.resume;
    if (!resume->found) return HR_OK;
    hr_resume_report(resume, r->config, r->options, r->admission.compiled.plan.process.rung,
                     r->trainer.state.steps);
    const hr_run_state *state = &resume->manifest.state;
    const hr_status status = hr_resume_check_texts(resume, r->config, r->options,
                                                   &r->trainer.inputs.identity, err);
    const bool is_last = state->step == state->steps || state->ended;
    return status == HR_OK && is_last ? finish_earlier_run(r, err) : status;
}

/* With --fresh: removes the earlier checkpoints once the run has its memory and is about to
 * start. */
static hr_status remove_earlier_run(run *r, hr_error *err)
{
    return r->options->fresh && r->config->train.out[0]
               ? hr_resume_remove_checkpoints(r->config, err)
               : HR_OK;
}

/* Of the file of moments and layer inputs; 0: there is none. */
static int64_t file_bytes(const run *r)
{
    return r->admission.answer.file_bytes;
}

/* Checks the disk space; the number of steps is known now, even if the recipe gives epochs. */
static hr_status check_disk(run *r, hr_error *err)
{
    char line[192], log_count[HR_COUNT_BYTES], free_count[HR_COUNT_BYTES];
    int64_t free_bytes;
    const hr_train_events *events = &r->options->events;
    const hr_resume *resume = &r->trainer.files.resume;
    const int64_t done = resume->found ? resume->manifest.state.step : 0;
    hr_plan_disk *disk = &r->trainer.result->plan.disk;
    hr_disk_of(r->config, &r->admission.compiled.program, file_bytes(r), r->trainer.state.steps,
               disk);
    const int64_t moments_bytes = hr_file_space_out_bytes(r->config, file_bytes(r));
    const hr_status status = hr_disk_check_run(r->config, disk, done, moments_bytes, &free_bytes,
                                               err);
    r->log_room = -1;
    if (status != HR_OK || free_bytes < 0 || free_bytes >= disk->log_bytes) return status;
    r->log_room = free_bytes;
    snprintf(line, sizeof line,
             "disk   the log may grow to %s bytes, and %s are free beside the checkpoints; lines "
             "without room are left out",
             hr_count_print(disk->log_bytes, log_count), hr_count_print(free_bytes, free_count));
    if (events->text) events->text(events->context, line);
    return HR_OK;
}

/* A warmup that is longer than the run: accepted, because a run may be resumed with more steps. */
static void note_warmup(const run *r)
{
    char line[192], warmup[HR_COUNT_BYTES], count[HR_COUNT_BYTES];
    const hr_train_events *events = &r->options->events;
    const int64_t steps = r->trainer.state.steps;
    if (!events->text || r->config->train.schedule.warmup_steps <= steps) return;
    snprintf(line, sizeof line,
             "lr     warmup takes %s steps and the run has %s: the learning rate does not reach "
             "train.optimizer.lr",
             hr_count_print(r->config->train.schedule.warmup_steps, warmup),
             hr_count_print(steps, count));
    events->text(events->context, line);
}

static hr_status open_moments(run *r, hr_error *err)
{
    const hr_status status = hr_transfer_file_open(r->trainer.moments, err);
    if (status == HR_OK) hr_file_space_warn(r->config, &r->options->events);
    return status;
}

static void report_planning(void *context)
{
    run *r = context;
    hr_trainer_report_progress(&r->trainer, "planning", 1, 0);
}

static bool report_preparing(void *context, const char *work, int64_t bytes_done,
                             int64_t bytes_total)
{
    run *r = context;
    const hr_train_events *events = &r->options->events;
    if (events->preparing) events->preparing(events->context, work, bytes_done, bytes_total);
    return hr_trainer_poll(&r->trainer);
}

static void report_note(void *context, const char *line)
{
    const run *r = context;
    const hr_train_events *events = &r->options->events;
    if (events->text) events->text(events->context, line);
}

/* Admits all stages, and leaves the plan of the one that the run begins with, or goes on in. */
static hr_status admit_stages(run *r, const hr_admission_machine *machine, hr_error *err)
{
    hr_trainer *trainer = &r->trainer;
    hr_admission *a = &r->admission;
    const hr_resume *resume = &trainer->files.resume;
    const int64_t done = resume->found ? resume->manifest.state.step : 0;
    hr_status status = hr_admit_stages(machine, r->config, a, &trainer->stages, err);
    if (status != HR_OK) return status;
    const int32_t index = hr_stages_find(&trainer->stages->list, hr_max(done - 1, 0));
    status = hr_stage_set_compile(trainer->stages, index, a, err);
    a->region.used = trainer->stages->share.kept_bytes;
    trainer->admission = a;
    trainer->config = &trainer->stages->config;
    return status;
}

static hr_status admit(run *r, hr_error *err)
{
    hr_admission *a = &r->admission;
    hr_measured measured;
    const hr_admission_machine machine = hr_measure(r->memory, r->options->calibrations, &measured);
    const hr_status status = hr_config_has_stages(r->config)
                                 ? admit_stages(r, &machine, err)
                                 : hr_admit(&machine, r->config, false, NULL, a, err);
    if (!a->compiled.program.step_count) return status;
    hr_disk_of(r->config, &a->compiled.program, a->answer.file_bytes, 0, &a->answer.disk);
    hr_stopping_describe(&a->compiled.program, &a->rates, &a->answer);
    return status;
}

static hr_status run_phases(run *r, hr_error *err)
{
    hr_train_result *result = r->trainer.result;
    const hr_train_events *events = &r->options->events;
    hr_status status = hr_resume_enter(r->memory, r->config, r->options, &r->lock,
                                       &r->trainer.files.resume, err);
    if (status == HR_OK && hr_resume_is_done(&r->trainer.files.resume, r->config, r->options))
        return report_done(r, err);
    if (status == HR_OK) status = hr_resume_check_writable(r->config, err);
    if (status == HR_OK) hr_trainer_report_progress(&r->trainer, "planning", 0, 0);
    r->admission.progress = (hr_plan_progress){ report_planning, r };
    if (status == HR_OK) status = admit(r, err);
    if (status == HR_OK && r->admission.answer.away_bytes && !*r->config->model.from)
        status = hr_fail(err, HR_USAGE,
                         "memory.weights=file leaves weights in the files of a model: give its "
                         "folder with model.from");
    result->plan = r->admission.answer;
    hr_error refused = *err;
    if (status == HR_NO_FIT && result->plan.minimum_bytes)
        return hr_fail(err, HR_NO_FIT, "%s, or look for other changes with headroom plan",
                       refused.message);
    if (status != HR_OK) return status;
    hr_memory_region_trim(r->memory, &r->admission.region);
    result->arena_bytes_planned = arena_bytes(r);
    result->process_bytes_planned = r->admission.compiled.plan.process.bytes;
    if (events->planned) events->planned(events->context, &result->plan);
    const char *note = hr_hf_config_note(r->config);
    if (note && events->text) events->text(events->context, note);
    r->trainer.executor.plan = &r->admission.compiled.plan;
    r->trainer.executor.memory = r->memory;

    /* A budget may exceed the machine: refused before texts are read, which may take minutes. */
    status = hr_memory_check_room(&r->admission.compiled.plan.process, err);
    if (status == HR_OK) status = hr_file_space_check(r->config, events, file_bytes(r), err);
    const hr_text_progress progress = { report_preparing, r, report_note };
    if (status == HR_OK)
        status = hr_prepare(r->memory, r->config, r->options->cache_limit_bytes, &progress,
                            &r->text, &r->mixture, err);
    if (status == HR_OK) status = hr_resume_lock(r->config, &r->lock, err);
    if (status != HR_OK) return status;
    status = hr_prepare_identify(r->config, &progress, &r->text, &r->trainer.inputs.identity, err);
    if (status == HR_OK) status = open_run(r, err);
    if (status == HR_OK) status = check_resume(r, err);
    if (status == HR_OK) status = check_disk(r, err);
    if (status == HR_OK) note_warmup(r);
    if (status == HR_OK && r->trainer.moments) status = open_moments(r, err);
    if (status == HR_OK && !r->trainer.moments) hr_file_space_clear(r->config);
    if (status == HR_OK)
        status = hr_resume_reformat(r->memory, r->config, r->options, &r->trainer.files.resume,
                                    err);
    if (status == HR_OK) status = enter_folder(r, err);
    if (status == HR_OK) status = take_memory(r, err);
    if (status == HR_OK) status = remove_earlier_run(r, err);
    if (status != HR_OK) return status;
    hr_error end_error;
    const int64_t begun = r->trainer.files.resume.found
                              ? r->trainer.files.resume.manifest.state.step
                              : -1;
    status = hr_trainer_run(&r->trainer, err);
    if (status == HR_OK && r->trainer.state.step == begun && r->trainer.files.resume.changed)
        report_complete(r, begun);
    if (status != HR_OK && !r->trainer.times.start_ns) return status; /* the log stays unchanged */
    const hr_status end_status = report_end(r, &end_error);
    if (end_status == HR_OK || (status != HR_OK && status != HR_INTERRUPTED)) return status;
    *err = end_error;
    return end_status;
}

/* Not inlined: the stack depth when the memory is opened is part of the plan, and `plan` has to get
 * the same number of bytes. */
static __attribute__((noinline)) hr_status train_in(hr_memory *memory, const hr_config *config,
                                                    const hr_train_options *options,
                                                    const hr_observer *observer,
                                                    hr_train_result *result, hr_error *err)
{
    run r = { .config = config,
              .options = options,
              .memory = memory,
              .lock = -1,
              .before = hr_folder_look(config),
              .trainer = { .config = config,
                           .options = options,
                           .observer = observer,
                           .lock = &r.lock,
                           .result = result,
                           .requests = { .options = options,
                                         .most_seconds = config->train.max_seconds,
                                         .begun_ns = hr_clock_ns() },
                           .state = { .first_loss = NAN,
                                      .last_loss = NAN,
                                      .valid_loss = NAN,
                                      .best_loss = NAN },
                           .inputs = { .train_rows.file = -1, .valid_rows.file = -1 } } };
    hr_error left;
    const hr_status status = run_phases(&r, err);
    if (hr_resume_remove_reformatted(config, &r.trainer.files.resume, &left) != HR_OK)
        hr_trainer_trouble(&r.trainer, left.message);
    hr_transfer_file_close(r.trainer.moments);
    hr_checkpoint_writer_close(r.trainer.files.writer);
    hr_log_close(&r.trainer.log);
    hr_pool_close(&r.pool);
    hr_inputs_close(&r.trainer.inputs);
    hr_weights_stream_close(r.trainer.base);
    note_times(&r, result);
    hr_weights_in_close(&r.trainer.files.source);
    hr_weights_in_close(&r.trainer.files.adapters);
    hr_text_release(&r.text);
    if (status != HR_OK && (!r.is_in_folder || !r.trainer.times.start_ns))
        hr_folder_undo(config, &r.before, r.lock >= 0);
    hr_file_close(&r.lock);
    return status;
}

hr_status hr_train(const hr_config *config, const hr_train_options *given, hr_train_result *result,
                   hr_error *err)
{
    hr_train_options options;
    const hr_status status = hr_options_take(&options, sizeof options, given, err);
    return status == HR_OK ? hr_train_observed(config, &options, NULL, result, err) : status;
}

hr_status hr_train_observed(const hr_config *config, const hr_train_options *options,
                            const hr_observer *observer, hr_train_result *result, hr_error *err)
{
    static hr_error ignored; /* not on the stack, whose size is planned; a process has one run */
    hr_memory memory = { 0 };
    if (!err) err = &ignored;
    *result = (hr_train_result){ .valid_loss = NAN };
    hr_status status = hr_paths_check(config, options->metrics, err);
    if (status == HR_OK) status = hr_file_space_find(config, err);
    if (status == HR_OK) status = hr_log_check_metrics(config->train.out, options->metrics, err);
    if (status == HR_OK) status = hr_memory_open(&memory, err);
    if (status == HR_OK) status = train_in(&memory, config, options, observer, result, err);
    result->plan.stages = NULL; /* they end with the memory */
    hr_memory_close(&memory);
    return status;
}
