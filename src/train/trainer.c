/* SPDX-License-Identifier: Apache-2.0 */
/* train/trainer.c - the sections of a run, one after the other. */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "model/assemble.h"
#include "train/prepare.h"

static int64_t sample_most(const hr_config *config)
{
    return HR_SAMPLE_PROMPT_TOKENS + config->train.sample_tokens;
}

/* By the most that a program of the model has, so that every strategy's process is as large as its
 * arena says. */
int64_t hr_run_bytes(const hr_config *config)
{
    const hr_model_limits limits = hr_model_limits_of(config);
    const hr_program most = { .step_count = limits.steps,
                              .tensor_count = limits.tensors,
                              .loop_count = limits.loops,
                              .param_count = limits.params };
    const int64_t alignment = 8 * 64;
    const int64_t source = config->model.from[0] ? hr_weights_in_bytes(&most) : 0;
    return hr_executor_bytes(&most) + source + most.tensor_count +
           hr_batches_bytes(hr_prepare_shards(config)) + hr_batches_bytes(1) +
           hr_vocabulary_bytes(hr_config_tokenizer(config), config->model.vocab_size) +
           sample_most(config) * (int64_t)sizeof(int32_t) + HR_SAMPLE_TEXT_BYTES +
           hr_weights_text_bytes(&most) + HR_METRICS_BYTES + alignment;
}

hr_status hr_trainer_place(hr_region *region, const hr_program *program, hr_trainer *trainer,
                           hr_error *err)
{
    trainer->executor.program = program;
    hr_status status = hr_executor_place(region, &trainer->executor, err);
    if (status != HR_OK) return status;
    trainer->sample_most = sample_most(trainer->config);
    trainer->sample_ids = hr_region_take(region, trainer->sample_most, sizeof(int32_t));
    trainer->sample_text = hr_region_take(region, HR_SAMPLE_TEXT_BYTES, 1);
    trainer->weights_text = hr_region_take(region, hr_weights_text_bytes(program), 1);
    trainer->metrics = (hr_metrics){ .fd = -1,
                                     .line = hr_region_take(region, HR_METRICS_BYTES, 1) };
    if (!trainer->sample_ids || !trainer->sample_text || !trainer->weights_text ||
        !trainer->metrics.line)
        return hr_fail(err, HR_FAILURE, "no room for the run's buffers");
    trainer->load = hr_program_loop(program, "load");
    trainer->fetch = hr_program_loop(program, "fetch");
    trainer->norm = hr_program_loop(program, "norm");
    trainer->step_section = hr_program_loop(program, "step");
    trainer->update = hr_program_loop(program, "update");
    trainer->evaluation = hr_program_loop(program, "evaluation");
    trainer->evaluation_batch = hr_program_loop(program, "evaluation batch");
    trainer->sample = hr_program_loop(program, "sample");
    trainer->save = hr_program_loop(program, "save");
    return HR_OK;
}

bool hr_trainer_is_interrupted(const hr_trainer *trainer)
{
    return trainer->options->interrupts && *trainer->options->interrupts > 0;
}

/* A checkpoint of before was finite, and may still be what began to diverge: its step is named. */
hr_status hr_trainer_diverged(const hr_trainer *trainer, const char *what, hr_error *err)
{
    char kept[HR_PATH_BYTES + 64] = "no weights are saved";
    if (trainer->saved_step)
        snprintf(kept, sizeof kept, "%.200s keeps the weights after step %lld",
                 trainer->config->train.out, (long long)trainer->saved_step);
    return hr_fail(err, HR_DIVERGED,
                   "%s; %s; try a lower train.optimizer.lr, a longer train.schedule.warmup_steps, "
                   "or clipping",
                   what, kept);
}

static hr_status train_step(hr_trainer *trainer, int64_t start_ns, hr_error *err)
{
    const hr_train_events *events = &trainer->options->events;
    hr_train_result *result = trainer->result;
    const int64_t before_ns = hr_clock_ns();
    trainer->executor.clock = trainer->step;
    hr_status status = hr_executor_run(&trainer->executor, trainer->fetch, err);
    if (status == HR_OK && trainer->norm != HR_NONE)
        status = hr_executor_run(&trainer->executor, trainer->norm, err);
    if (status == HR_OK) status = hr_executor_run(&trainer->executor, trainer->step_section, err);
    if (status == HR_OK && trainer->update != HR_NONE)
        status = hr_executor_run(&trainer->executor, trainer->update, err);
    if (status != HR_OK) return status;
    const int64_t after_ns = hr_clock_ns();

    trainer->step++;
    result->steps = trainer->step;
    result->tokens += trainer->targets;
    if (trainer->step == 1) result->first_loss = trainer->loss;
    result->last_loss = trainer->loss;
    result->seconds = (double)(after_ns - start_ns) * 1e-9;
    result->saved = false;
    const double rate = (double)trainer->targets * 1e9 / (double)hr_max(after_ns - before_ns, 1);
    const hr_train_step told = { trainer->step,      trainer->steps, trainer->loss,   trainer->lr,
                                 trainer->grad_norm, result->tokens, result->seconds, rate };
    const bool pulls = trainer->config->train.z_loss > 0;
    const hr_metrics_step line = { trainer->step,      trainer->loss,  trainer->lr,
                                   trainer->grad_norm, result->tokens, rate,
                                   result->seconds,    pulls,          trainer->z_loss };
    if (events->step) events->step(events->context, &told);
    return hr_metrics_write_step(&trainer->metrics, &line, err);
}

static hr_status evaluate(hr_trainer *trainer, hr_error *err)
{
    const hr_train_events *events = &trainer->options->events;
    if (!trainer->valid) return HR_OK;
    const int64_t asked = trainer->config->train.eval_batches;
    const int64_t there = hr_batches_view(trainer->valid)->batches;
    trainer->executor.count[trainer->evaluation_batch] = asked ? hr_min(asked, there) : there;
    trainer->evaluated_tokens = 0;
    const hr_status status = hr_executor_run(&trainer->executor, trainer->evaluation, err);
    if (status != HR_OK) return status;
    trainer->result->valid_loss = trainer->evaluation_loss;
    if (events->evaluated)
        events->evaluated(events->context, trainer->step, trainer->evaluation_loss,
                          trainer->evaluated_tokens);
    if (isfinite(trainer->evaluation_loss)) return HR_OK;
    char what[128];
    snprintf(what, sizeof what, "step %lld: the validation loss is %g over %lld tokens",
             (long long)trainer->step, trainer->evaluation_loss,
             (long long)trainer->evaluated_tokens);
    return hr_trainer_diverged(trainer, what, err);
}

/* Goes on from the first tokens of the validation text, or of the training text without one. */
static hr_status sample(hr_trainer *trainer, hr_error *err)
{
    const hr_train_events *events = &trainer->options->events;
    if (trainer->sample == HR_NONE || !events->sample) return HR_OK;
    hr_status status = hr_executor_run(&trainer->executor, trainer->sample, err);
    int64_t bytes = 0;
    if (status == HR_OK)
        status = hr_vocabulary_decode(trainer->vocabulary, trainer->sample_ids,
                                      trainer->sample_count, trainer->sample_text,
                                      HR_SAMPLE_TEXT_BYTES, &bytes, err);
    if (status == HR_OK) events->sample(events->context, trainer->sample_text, bytes);
    trainer->sample_count = hr_min(HR_SAMPLE_PROMPT_TOKENS, trainer->config->train.seq_len);
    return status;
}

static hr_status save(hr_trainer *trainer, hr_error *err)
{
    const hr_train_events *events = &trainer->options->events;
    const hr_config *config = trainer->config;
    const hr_program *program = trainer->executor.program;
    const int64_t bytes = hr_weights_text_bytes(program);
    if (!config->train.out[0] || trainer->result->saved) return HR_OK;
    hr_status status = hr_weights_begin(&trainer->weights, program, config->train.out,
                                        trainer->weights_text, bytes, err);
    if (status != HR_OK) return status;
    status = hr_executor_run(&trainer->executor, trainer->save, err);
    if (status == HR_OK)
        status = hr_weights_commit(&trainer->weights, config, config->train.out,
                                   trainer->weights_text, bytes, err);
    if (status != HR_OK) {
        hr_weights_abort(&trainer->weights);
        if (status != HR_DIVERGED) return status;
        char what[HR_NAME_BYTES];
        snprintf(what, sizeof what, "step %lld: %.160s", (long long)trainer->step,
                 err ? err->message : "a weight is not finite");
        return hr_trainer_diverged(trainer, what, err);
    }
    trainer->result->saved = true;
    trainer->saved_step = trainer->step;
    if (events->saved) events->saved(events->context, config->train.out);
    return HR_OK;
}

static bool due(int64_t every, int64_t step)
{
    return every > 0 && step % every == 0;
}

/* An interrupt during loading, evaluation or sampling ends those; what to save is seen later. */
static hr_status unless_interrupted(hr_status status)
{
    return status == HR_INTERRUPTED ? HR_OK : status;
}

hr_status hr_trainer_run(hr_trainer *trainer, hr_error *err)
{
    const hr_config *config = trainer->config;
    hr_status status = unless_interrupted(hr_executor_run(&trainer->executor, trainer->load, err));
    const int64_t start_ns = hr_clock_ns();
    while (status == HR_OK && trainer->step < trainer->steps &&
           !hr_trainer_is_interrupted(trainer)) {
        status = train_step(trainer, start_ns, err);
        const bool last = trainer->step == trainer->steps;
        if (status != HR_OK || hr_trainer_is_interrupted(trainer)) break;
        if (last || due(config->train.eval_every, trainer->step))
            status = unless_interrupted(evaluate(trainer, err));
        if (status == HR_OK && (last || due(config->train.sample_every, trainer->step)))
            status = unless_interrupted(sample(trainer, err));
        if (status == HR_OK && (last || due(config->train.checkpoint_every, trainer->step)))
            status = save(trainer, err);
    }
    if (status != HR_OK || !hr_trainer_is_interrupted(trainer)) return status;
    if (trainer->step > 0) status = save(trainer, err);
    if (status != HR_OK) return status;
    if (trainer->step == 0)
        return hr_fail(err, HR_INTERRUPTED, "interrupted before the first step; nothing was saved");
    return hr_fail(err, HR_INTERRUPTED, "interrupted after step %lld of %lld%s",
                   (long long)trainer->step, (long long)trainer->steps,
                   trainer->result->saved ? "; the weights are saved" : "; nothing was saved");
}
