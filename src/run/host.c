/* SPDX-License-Identifier: Apache-2.0 */
/* run/host.c - the services of training: loading, batches, samples, reports, saving. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/element.h"
#include "base/random.h"
#include "checkpoint/load.h"
#include "checkpoint/save.h"
#include "config/schedule.h"
#include "ops/host/host.h"
#include "run/initialize.h"
#include "run/loss_scale.h"
#include "run/reporting.h"
#include "run/trainer.h"

static hr_weights_place place_of(const hr_program *program, const hr_call *call)
{
    const hr_host_attr *attr = call->attr;
    const bool scaled = program->params[attr->param].scales != HR_NONE;
    const int32_t residual = hr_program_residual_state(program);
    return (hr_weights_place){
        .master = call->out[0],
        .weight = call->out[1],
        .scales = scaled ? call->out[HR_LOAD_SCALES] : NULL,
        .residual = hr_program_residual_at(
            program, residual == HR_NONE || scaled ? NULL : call->out[2 + residual])
    };
}

/* States that a step of loading may have: a weight with scales is frozen, and has none. */
static int32_t states_of(const hr_call *call, const hr_program *program)
{
    const hr_host_attr *attr = call->attr;
    const hr_param_rule *rule = &program->params[attr->param].rule;
    return rule->frozen && !rule->rests ? 0 : program->state_count;
}

/* Loads one state of a parameter from a checkpoint. */
static hr_status load_kept(hr_trainer *trainer, const hr_call *call, hr_kept kept,
                           hr_weights_place place, hr_error *err)
{
    const hr_host_attr *attr = call->attr;
    return hr_load(&trainer->files.kept[kept], attr->param, trainer->executor.pool, place,
                   call->scratch, attr->staging_bytes, trainer->options->interrupts, err);
}

static void init_state(const hr_program *program, int32_t state, const hr_call *call)
{
    const hr_host_attr *attr = call->attr;
    hr_initialize_state(program, attr->param, state, place_of(program, call), call->out[2 + state]);
}

/* Where a state is loaded: fp32 like a master, or as it is stored. */
static hr_weights_place place_of_state(const hr_program *program, int32_t step, int32_t state,
                                       const hr_call *call)
{
    const hr_tensor *tensor = &program->tensors[program->steps[step].out[2 + state]];
    void *to = call->out[2 + state];
    if (tensor->dtype == HR_F32) return (hr_weights_place){ .master = to };
    return (hr_weights_place){ .weight = to, .zero = program->states[state].zero };
}

/* A state in a file is loaded by a step of its own. */
static bool has_weights(const hr_call *call)
{
    return call->out[0] || call->out[1];
}

/* Loads the states that the checkpoint has; the others start anew. */
static hr_status load_states(hr_trainer *trainer, int32_t step, const hr_call *call, hr_error *err)
{
    const hr_program *program = trainer->executor.program;
    hr_status status = has_weights(call)
                           ? load_kept(trainer, call, HR_KEPT_WEIGHTS, place_of(program, call), err)
                           : HR_OK;
    for (int32_t i = 0; i < states_of(call, program) && status == HR_OK; i++)
        if (call->out[2 + i] && trainer->files.kept[HR_KEPT_STATES + i].file_count)
            status = load_kept(trainer, call, HR_KEPT_STATES + i,
                               place_of_state(program, step, i, call), err);
        else if (call->out[2 + i]) init_state(program, i, call);
    return status;
}

/* The files that a new run reads a parameter from; null: it has initial values. */
static const hr_weights_in *source_of(const hr_trainer *trainer, int32_t param)
{
    const hr_param *of = &trainer->executor.program->params[param];
    const bool starts = *trainer->config->train.adapter.from;
    if (starts && hr_param_is_in_adapters(of)) return &trainer->files.adapters;
    return of->adapts == HR_NONE && *trainer->config->model.from ? &trainer->files.source : NULL;
}

static hr_status initialize(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                            hr_error *err)
{
    hr_trainer *trainer = context;
    const hr_host_attr *attr = call->attr;
    const volatile sig_atomic_t *interrupts = trainer->options->interrupts;
    hr_status status = HR_OK;
    hr_trainer_report_progress(trainer,
                               trainer->files.resume.found      ? "loading the checkpoint"
                               : trainer->config->model.from[0] ? "loading weights"
                                                                : "initializing weights",
                               attr->param, executor->program->param_count);
    const bool base = executor->program->params[attr->param].rule.base;
    if (trainer->files.resume.found && !base) return load_states(trainer, step, call, err);
    const hr_weights_in *source = source_of(trainer, attr->param);
    if (has_weights(call) && source)
        status = hr_load(source, attr->param, executor->pool, place_of(executor->program, call),
                         call->scratch, attr->staging_bytes, interrupts, err);
    else if (has_weights(call))
        hr_initialize(executor->program, attr->param, (uint64_t)trainer->config->train.seed,
                      place_of(executor->program, call), interrupts);
    if (status != HR_OK) return status;
    if (hr_requests_stop(&trainer->requests)) return HR_INTERRUPTED;
    for (int32_t i = 0; i < states_of(call, executor->program); i++)
        if (call->out[2 + i]) init_state(executor->program, i, call);
    return HR_OK;
}

/* Writes the states of a parameter to the files of the checkpoint. */
static hr_status save(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                      hr_error *err)
{
    hr_trainer *trainer = context;
    (void)step;
    const hr_host_attr *attr = call->attr;
    const hr_program *program = executor->program;
    const int32_t residual = hr_program_residual_state(program);
    hr_status status = HR_OK;
    hr_trainer_report_progress(trainer, "saving", attr->param, program->param_count);
    for (hr_kept kept = 0; kept < hr_kept_count(program) && status == HR_OK; kept++) {
        hr_weights_out *file = hr_checkpoint_writer_file(trainer->files.writer, kept);
        if (!file || !call->in[kept]) continue;
        status = hr_save(
            file, attr->param, executor->pool, call->in[kept],
            hr_program_residual_at(program, residual == HR_NONE || kept != HR_KEPT_WEIGHTS
                                                ? NULL
                                                : call->in[HR_KEPT_STATES + residual]),
            program->params[attr->param].scales == HR_NONE ? NULL : call->in[HR_SAVE_SCALES],
            call->scratch, attr->staging_bytes, err);
    }
    return status;
}

static hr_status wait_for_checkpoint(void *context, hr_error *err)
{
    return hr_trainer_collect_checkpoint(context, true, err);
}

/* Counts the targets of the whole batch before its first micro-batch. A batch without targets has
 * no gradient. */
static hr_status fetch(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                       hr_error *err)
{
    hr_trainer *trainer = context;
    (void)executor, (void)step;
    const hr_run_state *state = &trainer->state;
    const hr_status status = hr_batches_targets(
        trainer->inputs.train, state->step + state->batch_shift, &trainer->measures.targets, err);
    if (status != HR_OK) return status;
    trainer->measures.lr = hr_schedule_lr(trainer->config,
                                          trainer->stages ? &trainer->stages->list : NULL,
                                          state->step, state->steps);
    double *scale = call->out[2];
    scale[1] = hr_loss_scale_of(trainer->config, &trainer->state.loss_scale);
    trainer->measures.loss_scale = trainer->state.loss_scale.factor;
    scale[0] = scale[1] / (double)hr_max(trainer->measures.targets, 1);
    *(double *)call->out[3] = trainer->measures.lr;
    return HR_OK;
}

/* Reads rows [row, row + rows) of a batch, and the positions where documents begin if the program
 * needs them. */
static hr_status read_rows(hr_batches *batches, int64_t batch, int64_t row, int64_t rows,
                           const hr_call *call, int64_t *targets, hr_error *err)
{
    const hr_status status = hr_batches_fill(batches, batch, row, rows, call->out[0], call->out[1],
                                             targets, err);
    if (status != HR_OK || !call->out[4]) return status;
    return hr_batches_begins(batches, batch, row, rows, call->out[4], err);
}

static hr_status fetch_rows(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                            hr_error *err)
{
    hr_trainer *trainer = context;
    (void)executor, (void)step;
    const int64_t T = trainer->config->train.seq_len;
    int64_t targets;
    return read_rows(trainer->inputs.train, trainer->state.step + trainer->state.batch_shift,
                     call->row_first / T, call->rows / T, call, &targets, err);
}

static hr_status fetch_evaluation(void *context, hr_executor *executor, int32_t step,
                                  const hr_call *call, hr_error *err)
{
    hr_trainer *trainer = context;
    const int32_t batch = executor->program->steps[step].loop;
    int64_t targets;
    if (hr_requests_stop(&trainer->requests)) return HR_INTERRUPTED;
    hr_trainer_report_progress(trainer, "evaluating", executor->turn[batch],
                               executor->count[batch]);
    const hr_status status = read_rows(trainer->inputs.valid, executor->turn[batch], 0,
                                       call->rows / trainer->config->train.seq_len, call, &targets,
                                       err);
    if (status == HR_OK) trainer->measures.evaluated_tokens += targets;
    return status;
}

static hr_status prompt(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                        hr_error *err)
{
    hr_trainer *trainer = context;
    (void)step, (void)err;
    executor->rows_here = hr_sample_window(&trainer->sample, trainer->config->train.seq_len,
                                           call->out[0]);
    return HR_OK;
}

static float logit(const hr_call *call, int64_t v)
{
    return hr_element_get(call->in[0], v, call->dtype);
}

/* Appends the most likely token, or one sampled from the softmax of logits / temperature. An end
 * token is not appended and ends the sample. */
static hr_status sample_token(void *context, hr_executor *executor, int32_t step,
                              const hr_call *call, hr_error *err)
{
    hr_trainer *trainer = context;
    (void)err;
    const int64_t V = trainer->config->model.vocab_size;
    const int32_t loop = executor->program->steps[step].loop;
    const double temperature = trainer->config->train.sample_temperature;
    if (hr_requests_stop(&trainer->requests)) return HR_INTERRUPTED;
    hr_sample *sample = &trainer->sample;
    hr_trainer_report_progress(trainer, "sampling", sample->count - sample->prompt,
                               trainer->config->train.sample_tokens);
    int64_t best = 0;
    for (int64_t v = 1; v < V; v++)
        if (logit(call, v) > logit(call, best)) best = v;
    if (temperature > 0) {
        const float top = logit(call, best);
        const hr_random_stream stream = hr_random_stream_of(call->seed, (uint64_t)call->clock,
                                                            HR_SITE_SAMPLE, 0);
        const hr_random_row row = hr_random_row_of(stream, 0, (uint32_t)sample->count);
        double sum = 0;
        for (int64_t v = 0; v < V; v++) sum += exp((logit(call, v) - top) / temperature);
        double left = sum * hr_random_unit(hr_random_wide(&row, 0));
        for (int64_t v = 0; v < V; v++) {
            left -= exp((logit(call, v) - top) / temperature);
            if (left < 0) {
                best = v;
                break;
            }
        }
    }
    const bool ends = hr_end_ids_have(&trainer->sample_ends, best);
    executor->count[loop] = ends ? executor->turn[loop] + 1 : executor->program->loops[loop].count;
    if (!ends) sample->ids[sample->count++] = (int32_t)best;
    return HR_OK;
}

/* Clears the sign of a NaN, which x86 sets for computed NaNs and printf would print. */
static double without_nan_sign(double value)
{
    return isnan(value) ? (double)NAN : value;
}

static hr_status report_bad(hr_trainer *trainer, hr_guard_verdict verdict, hr_error *err)
{
    char what[192];
    trainer->measures.is_bad = true;
    if (hr_loss_scale_overflows(&trainer->state.loss_scale, trainer->measures.loss,
                                trainer->measures.grad_norm)) {
        trainer->measures.overflowed = true;
        return HR_DIVERGED;
    }
    if (verdict == HR_GUARD_NOT_FINITE) {
        snprintf(what, sizeof what, "step %lld: the loss is %g and the gradient norm %g",
                 (long long)trainer->state.step + 1, trainer->measures.loss,
                 trainer->measures.grad_norm);
    } else {
        const bool loss = verdict == HR_GUARD_LOSS_SPIKE;
        snprintf(
            what, sizeof what, "step %lld: spike: the %s is %g, in the steps before at most %g",
            (long long)trainer->state.step + 1, loss ? "loss" : "gradient norm",
            loss ? trainer->measures.loss : trainer->measures.grad_norm,
            loss ? hr_guard_loss_limit(&trainer->guard) : hr_guard_norm_limit(&trainer->guard));
    }
    return hr_trainer_diverged(trainer, what, err);
}

/* Without targets the sums are 0, which would look like a perfect loss. */
static hr_status report_no_targets(hr_trainer *trainer, const hr_call *call)
{
    trainer->measures.loss = trainer->measures.z_loss = (double)NAN;
    trainer->measures.grad_norm = call->in[1] ? *(const double *)call->in[1] : (double)NAN;
    return HR_OK;
}

/* Without the norm (updates that release gradients and do not clip) the first report checks only
 * the loss, before the first weight changes. */
static hr_status report(void *context, hr_executor *executor, int32_t step, const hr_call *call,
                        hr_error *err)
{
    hr_trainer *trainer = context;
    const hr_program *program = executor->program;
    const double *sums = call->in[0], targets = (double)hr_max(trainer->measures.targets, 1);
    const bool pulls = trainer->config->train.z_loss > 0;
    if (trainer->measures.targets == 0) return report_no_targets(trainer, call);
    trainer->measures.loss = without_nan_sign(hr_report_loss(program, &program->steps[step], sums) /
                                              targets);
    trainer->measures.z_loss = pulls ? without_nan_sign(sums[1] / targets) : 0;
    trainer->measures.grad_norm = call->in[1] ? without_nan_sign(*(const double *)call->in[1])
                                              : (double)NAN;
    const hr_guard_verdict verdict = call->in[1]
                                         ? hr_guard_judge(&trainer->guard, trainer->measures.loss,
                                                          trainer->measures.grad_norm)
                                         : hr_guard_peek(&trainer->guard, trainer->measures.loss);
    if (verdict == HR_GUARD_FINE) return HR_OK;
    if (verdict != HR_GUARD_NOT_FINITE && !trainer->config->train.detect_spikes) return HR_OK;
    return report_bad(trainer, verdict, err);
}

static hr_status report_evaluation(void *context, hr_executor *executor, int32_t step,
                                   const hr_call *call, hr_error *err)
{
    hr_trainer *trainer = context;
    (void)executor, (void)step, (void)err;
    trainer->measures.evaluation_loss = trainer->measures.evaluated_tokens
                                            ? without_nan_sign(
                                                  *(const double *)call->in[0] /
                                                  (double)trainer->measures.evaluated_tokens)
                                            : (double)NAN;
    return HR_OK;
}

/* Batches and reports of training are in the step and, depending on the plan, in sections of their
 * own. */
static const hr_service services[] = {
    { HR_OP_initialize, HR_LOOP_LOAD, initialize, NULL },
    { HR_OP_batch, HR_LOOP_FETCH, fetch, NULL },
    { HR_OP_batch, HR_LOOP_EVALUATION, fetch_evaluation, NULL },
    { HR_OP_batch, HR_LOOP_OTHER, fetch_rows, NULL },
    { HR_OP_report, HR_LOOP_EVALUATION, report_evaluation, NULL },
    { HR_OP_report, HR_LOOP_OTHER, report, NULL },
    { HR_OP_prompt, HR_LOOP_SAMPLE, prompt, NULL },
    { HR_OP_sample, HR_LOOP_SAMPLE, sample_token, NULL },
    { HR_OP_save, HR_LOOP_SAVE, save, wait_for_checkpoint },
};

hr_services hr_trainer_services(hr_trainer *trainer)
{
    return (hr_services){ services, sizeof services / sizeof *services, trainer };
}
