/* SPDX-License-Identifier: Apache-2.0 */
/* run/schedule.c - the learning rate as a function of the step. */
#include "run/schedule.h"

#include <math.h>

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

double hr_schedule_lr(const hr_config *config, int64_t step, int64_t steps)
{
    const int64_t warmup = config->train.schedule.warmup_steps;
    const double rise = step + 1 < warmup ? (double)(step + 1) / (double)warmup : 1;
    return config->train.optimizer.lr * rise * factor(config, (double)step / (double)steps);
}
