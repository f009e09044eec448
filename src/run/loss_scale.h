/* SPDX-License-Identifier: Apache-2.0 */
/* run/loss_scale.h - the factor of the loss with train.dtype=fp16, so that small gradients are not
 * rounded to zero in f16. The norm and the updates divide by it (ops/update/update.h).
 *
 * It begins at 2^16. A gradient that is not finite has overflowed: the step gets no update, and the
 * factor is halved. After 2,000 steps in a row without an overflow it is doubled, up to 2^32.
 *
 * Source   Micikevicius et al., "Mixed precision training" (2018), section 3.2; the numbers are
 *          those of torch.amp.GradScaler. */
#ifndef HR_RUN_LOSS_SCALE_H
#define HR_RUN_LOSS_SCALE_H

#include <stdbool.h>

#include "checkpoint/manifest.h"
#include "config/config.h"

/* The factor of the next step; 1 without fp16. Begins or ends the state as the recipe says. */
double hr_loss_scale_of(const hr_config *config, hr_loss_scale *scale);

/* Whether the gradient of a step overflowed: its loss is finite, and its norm is not. */
bool hr_loss_scale_overflows(const hr_loss_scale *scale, double loss, double grad_norm);

/* Takes note of a step. */
void hr_loss_scale_count(hr_loss_scale *scale, bool overflowed);

#endif
