/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/score.c - the cross-entropy of one row, as it is written in books. */
#include "evaluate/score.h"

#include <math.h>

#include "base/bf16.h"

static double logit_at(const void *logits, hr_dtype dtype, int64_t i)
{
    return dtype == HR_BF16 ? (double)hr_bf16_to_f32(((const hr_bf16 *)logits)[i])
                            : (double)((const float *)logits)[i];
}

double hr_score(const void *logits, hr_dtype dtype, int64_t count, int32_t target)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const double x = logit_at(logits, dtype, i);
        if (!(x <= most)) most = x; /* what is no number stays */
    }
    for (int64_t i = 0; i < count; i++) sum += exp(logit_at(logits, dtype, i) - most);
    return log(sum) + (most - logit_at(logits, dtype, target));
}
