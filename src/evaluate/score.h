/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/score.h - what a token costs where a model gave these logits. */
#ifndef HR_EVALUATE_SCORE_H
#define HR_EVALUATE_SCORE_H

#include <stdint.h>

#include "base/dtype.h"

/* log(sum of exp(logits)) - logits[target], in double: nats, 0 at least. Not finite where the
 * logits are not.
 *
 *   logits  [count] of dtype F32 or BF16
 *   target  below count */
double hr_score(const void *logits, hr_dtype dtype, int64_t count, int32_t target);

#endif
