/* SPDX-License-Identifier: Apache-2.0 */
/* run/reporting.c - what a run tells: progress, problems, its result. */
#include "run/reporting.h"

#include <stdio.h>

#include "ops/list.h"

void hr_trainer_report_progress(const hr_trainer *trainer, const char *work, int64_t done,
                                int64_t total)
{
    const hr_train_events *events = &trainer->options->events;
    if (events->working) events->working(events->context, work, done, total);
}

void hr_trainer_trouble(hr_trainer *trainer, const char *line)
{
    const hr_train_events *events = &trainer->options->events;
    if (events->trouble) events->trouble(events->context, line);
    hr_log_trouble(&trainer->log, trainer->state.step, line);
}

/* Names the step of the last checkpoint: its weights are finite, but the divergence may have begun
 * before it. */
hr_status hr_trainer_diverged(hr_trainer *trainer, const char *what, hr_error *err)
{
    hr_error failed;
    char kept[HR_PATH_BYTES + 64] = "no weights are saved";
    if (hr_executor_wait(&trainer->executor, HR_OP_save, &failed) != HR_OK)
        hr_trainer_trouble(trainer, failed.message);
    if (trainer->files.saved_step)
        snprintf(kept, sizeof kept, "%.200s has the weights of step %lld",
                 trainer->config->train.out, (long long)trainer->files.saved_step);
    return hr_fail(err, HR_DIVERGED,
                   "%s; %s; try a lower train.optimizer.lr, more train.schedule.warmup_steps, "
                   "or train.optimizer.clip",
                   what, kept);
}

void hr_trainer_take_result(hr_train_result *result, const hr_run_state *state)
{
    result->steps = state->step;
    result->tokens = state->tokens;
    result->first_loss = state->first_loss;
    result->last_loss = state->last_loss;
    result->valid_loss = state->valid_loss;
    result->seconds = state->seconds;
}
