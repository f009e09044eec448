/* SPDX-License-Identifier: Apache-2.0 */
/* config/schedule.c - the learning rate as a function of the step. */
#include "config/schedule.h"

#include <math.h>

#include "config/config.h"

static double factor(const hr_config *config, double done)
{
    const double pi = 3.14159265358979323846, end = config->train.schedule.final_fraction;
    const double share = config->train.schedule.decay_fraction;
    switch (config->train.schedule.kind) {
    case HR_SCHEDULE_LINEAR: return 1 - (1 - end) * done;
    case HR_SCHEDULE_COSINE: return end + (1 - end) * 0.5 * (1 + cos(pi * done));
    case HR_SCHEDULE_WSD:
        return done < 1 - share ? 1 : 1 - (1 - end) * (done - (1 - share)) / share;
    default: return 1;
    }
}

/* Part `done` of `all`, at most 1. */
static double risen(int64_t done, int64_t all)
{
    return done < all ? (double)done / (double)all : 1;
}

/* Tokens of the batches before a step. */
static int64_t tokens_before(const hr_config *config, const hr_stages *stages, int64_t step)
{
    return stages ? hr_stages_tokens(stages, step)
                  : step * config->train.batch * config->train.seq_len;
}

static double stage_factor(const hr_stages *stages, int64_t step)
{
    if (!stages) return 1;
    const int32_t index = hr_stages_find(stages, step);
    const hr_stage *stage = &stages->at[index];
    const double from = index ? stage[-1].lr_scale : 0;
    return from +
           (stage->lr_scale - from) * risen(step - stage->first_step + 1, stage->warmup_steps);
}

double hr_schedule_lr(const hr_config *config, const hr_stages *stages, int64_t step, int64_t steps)
{
    const bool counts_tokens = config->train.schedule.unit == HR_SCHEDULE_TOKENS;
    double rise = risen(step + 1, config->train.schedule.warmup_steps);
    double done = (double)step / (double)steps;
    if (counts_tokens)
        done = (double)tokens_before(config, stages, step) /
               (double)tokens_before(config, stages, steps);
    if (config->train.schedule.warmup_tokens)
        rise *= risen(tokens_before(config, stages, step + 1),
                      config->train.schedule.warmup_tokens);
    return config->train.optimizer.lr * rise * factor(config, done) * stage_factor(stages, step);
}
