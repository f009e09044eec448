/* SPDX-License-Identifier: Apache-2.0 */
/* config/schedule.h - the learning rate as a function of the step. */
#ifndef HR_CONFIG_SCHEDULE_H
#define HR_CONFIG_SCHEDULE_H

#include "headroom/stages.h"

/* Returns the learning rate at `step` (from 0) of `steps`. The warm-up rises linearly and reaches
 * the full rate at its last step; then, with x the completed share of all steps,
 *   constant  lr
 *   linear    falls to final_fraction * lr at the end
 *   cosine    lr * (final + (1 - final) * (1 + cos(pi x)) / 2)
 *   wsd       lr, then over the last decay_fraction of the steps linearly to final_fraction * lr
 * With train.schedule.unit=tokens, x is the share of all tokens, and a warm-up in tokens counts
 * them. All of this is multiplied by the factor of the stage, which begins its own warm-up with the
 * factor of the stage before, or with 0. Pure.
 *
 *   stages  of the recipe; null: none */
double hr_schedule_lr(const hr_config *config, const hr_stages *stages, int64_t step,
                      int64_t steps);

#endif
