/* SPDX-License-Identifier: Apache-2.0 */
/* run/loss_scale.c - the rule of the loss scale. */
#include "run/loss_scale.h"

#include <math.h>

static const double first = 0x1p16, most = 0x1p32;
enum { GOOD_STEPS = 2000 };

double hr_loss_scale_of(const hr_config *config, hr_loss_scale *scale)
{
    const bool scales = config->train.dtype == HR_FORMAT_FP16;
    if (!scales) *scale = (hr_loss_scale){ 0 };
    else if (scale->factor == 0) scale->factor = first;
    return scales ? scale->factor : 1;
}

bool hr_loss_scale_overflows(const hr_loss_scale *scale, double loss, double grad_norm)
{
    return scale->factor > 0 && isfinite(loss) && !isfinite(grad_norm);
}

void hr_loss_scale_count(hr_loss_scale *scale, bool overflowed)
{
    if (scale->factor == 0) return;
    scale->overflows = overflowed ? scale->overflows + 1 : 0;
    scale->good_steps = overflowed ? 0 : scale->good_steps + 1;
    if (overflowed) scale->factor /= 2;
    if (scale->good_steps < GOOD_STEPS) return;
    scale->factor = fmin(scale->factor * 2, most);
    scale->good_steps = 0;
}
