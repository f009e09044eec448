/* SPDX-License-Identifier: Apache-2.0 */
/* run/stages.c - enters the stages of a run. */
#include "run/stages.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"

static const hr_stages *stages_of(const hr_trainer *trainer)
{
    return &trainer->stages->list;
}

/* Passes over the text after which it ends; 0: the recipe gives steps. A run that has skipped
 * batches goes on into the next pass, to have as many steps as without. */
static int64_t passes_of(const hr_trainer *trainer)
{
    const hr_config *config = trainer->config;
    return config->train.steps || trainer->state.batch_shift ? 0 : config->train.epochs;
}

static void enter_batches(const hr_trainer *trainer, int32_t index, int64_t batch_shift,
                          const hr_batch_cursor *cursor)
{
    const hr_stage *stage = &stages_of(trainer)->at[index];
    const hr_batch_mixture *mixture = &trainer->inputs.mixtures[index];
    hr_batch_stage of = { .T = stage->seq_len,
                          .batch = stage->batch,
                          .first = stage->first_step + batch_shift,
                          .block = mixture->count ? mixture->block : 0 };
    memcpy(of.shares, mixture->shares, sizeof of.shares);
    hr_batches_enter(trainer->inputs.train, &of, cursor, passes_of(trainer));
}

hr_status hr_trainer_count_stages(const hr_trainer *trainer, int64_t *steps, hr_error *err)
{
    const hr_stages *stages = stages_of(trainer);
    const hr_config *config = trainer->config;
    hr_batch_cursor cursor = { { 0 } };
    *steps = config->train.steps;
    for (int32_t i = 0; i < stages->count && !config->train.steps; i++) {
        const hr_stage *stage = &stages->at[i];
        enter_batches(trainer, i, 0, &cursor);
        const int64_t left = hr_batches_left(trainer->inputs.train);
        *steps = stage->first_step + left;
        if (i + 1 == stages->count) break;
        if (*steps <= stage[1].first_step)
            return hr_fail(err, HR_USAGE,
                           "train.stages, stage %d: begins at step %lld, and train.epochs=%lld "
                           "has %lld steps over this text",
                           i + 2, (long long)stage[1].first_step, (long long)config->train.epochs,
                           (long long)*steps);
        cursor = hr_batches_cursor(trainer->inputs.train, stage[1].first_step);
    }
    return HR_OK;
}

/* Goes on from the cursor in the state to the stage of the next step. */
static void enter_data(hr_trainer *trainer)
{
    const hr_stages *stages = stages_of(trainer);
    hr_run_state *state = &trainer->state;
    hr_batch_cursor cursor = { { 0 } };
    const int32_t index = hr_stages_find(stages, state->step);
    const size_t bytes = (size_t)hr_max(trainer->inputs.cursors, 1) * sizeof *cursor.at;
    /* A changed list may have moved the border: never later than the stage of the step. */
    state->stage.number = hr_max(1, hr_min(state->stage.number, index + 1));
    state->stage.cursor_count = hr_max(trainer->inputs.cursors, 1);
    memcpy(cursor.at, state->stage.cursors, bytes);
    enter_batches(trainer, (int32_t)state->stage.number - 1, state->stage.batch_shift, &cursor);
    while (state->stage.number - 1 < index) {
        const int64_t first = stages->at[state->stage.number].first_step;
        cursor = hr_batches_cursor(trainer->inputs.train, first + state->batch_shift);
        state->stage.number++;
        state->stage.batch_shift = state->batch_shift;
        enter_batches(trainer, (int32_t)state->stage.number - 1, state->batch_shift, &cursor);
    }
    memcpy(state->stage.cursors, cursor.at, bytes);
    trainer->is_in_stage = true;
}

static void report(hr_trainer *trainer)
{
    char line[192], batch[HR_COUNT_BYTES], length[HR_COUNT_BYTES];
    const hr_train_events *events = &trainer->options->events;
    const hr_stages *stages = stages_of(trainer);
    const hr_stage *stage = &stages->at[trainer->stages->current];
    snprintf(line, sizeof line, "stage %d of %d from step %lld: batches of %s x %s tokens",
             trainer->stages->current + 1, stages->count, (long long)stage->first_step + 1,
             hr_count_print(stage->batch, batch), hr_count_print(stage->seq_len, length));
    if (events->text) events->text(events->context, line);
}

hr_status hr_trainer_enter_stage(hr_trainer *trainer, int64_t step, hr_error *err)
{
    hr_stage_set *set = trainer->stages;
    hr_status status = HR_OK;
    if (!set) return HR_OK;
    if (!trainer->is_in_stage ||
        (int32_t)trainer->state.stage.number - 1 != hr_stages_find(&set->list, trainer->state.step))
        enter_data(trainer);
    const int32_t index = hr_stages_find(&set->list, step);
    if (index == set->current) return HR_OK;
    status = hr_stage_set_compile(set, index, trainer->admission, err);
    trainer->tables.used = 0;
    if (status == HR_OK) status = hr_executor_place(&trainer->tables, &trainer->executor, err);
    if (status == HR_OK && trainer->inputs.valid)
        status = hr_batches_reshape(trainer->inputs.valid, set->config.train.seq_len,
                                    set->config.memory.micro_batch, trainer->config->data.valid,
                                    err);
    if (status != HR_OK) return status;
    /* Losses and norms of other lengths and batches cannot be compared. Not when going back. */
    if (trainer->state.step == set->list.at[index].first_step) {
        trainer->state.waited = 0;
        trainer->state.best_loss = NAN;
        trainer->guard = (hr_guard){ 0 };
    }
    trainer->times.seconds[HR_WORK_STEP] = 0;
    trainer->times.count[HR_WORK_STEP] = 0;
    report(trainer);
    return HR_OK;
}
