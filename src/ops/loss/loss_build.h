/* SPDX-License-Identifier: Apache-2.0 */
/* ops/loss/loss_build.h - adds the loss of a chunk of logits to a program. */
#ifndef HR_OPS_LOSS_BUILD_H
#define HR_OPS_LOSS_BUILD_H

#include "graph/builder.h"
#include "ops/loss/loss.h"

/* Adds the losses of the rows to `loss_sum`, which has two elements if z is above 0. In training
 * the step also writes the gradient of the logits times `scale`; otherwise scale may be HR_NONE. */
void hr_build_loss(hr_builder *builder, int32_t logits, int32_t targets, int32_t scale, double z,
                   int32_t loss_sum);

#endif
