/* SPDX-License-Identifier: Apache-2.0 */
/* run/schedule.h - the learning rate as a function of the step. */
#ifndef HR_RUN_SCHEDULE_H
#define HR_RUN_SCHEDULE_H

#include "headroom/config.h"

/* Returns the learning rate at `step` (from 0) of `steps`. The warm-up rises linearly and reaches
 * the full rate at its last step; then, with x the completed share of all steps,
 *   constant  lr
 *   linear    falls to final_fraction * lr at the end
 *   cosine    lr * (final + (1 - final) * (1 + cos(pi x)) / 2)
 *   wsd       lr, then over the last decay_fraction of the steps linearly to final_fraction * lr
 * Pure. */
double hr_schedule_lr(const hr_config *config, int64_t step, int64_t steps);

#endif
