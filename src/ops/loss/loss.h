/* SPDX-License-Identifier: Apache-2.0 */
/* ops/loss/loss.h - cross-entropy of one chunk of logits, and its gradient in the same pass.
 *
 *     loss_sum += sum over rows with target >= 0 of  log(sum_v exp(logits[r,v])) - logits[r,target]
 *     dlogits[r,v] = (softmax(logits[r])[v] - [v = target]) * scale;  0 where the target is ignored
 *
 * With z above 0, what it pulls towards 0 is added: with L[r] = log(sum_v exp(logits[r,v])),
 *
 *     z_sum += sum over rows with target >= 0 of  z L[r]^2
 *     dlogits[r,v] = (softmax(logits[r])[v] (1 + 2 z L[r]) - [v = target]) * scale
 *
 * Operands. loss  in  logits r, targets r, scale W      out  loss_sum a, dlogits R
 *
 *   logits, dlogits  [rows, V] activations, fp32 or bf16; dlogits may be exactly logits; left
 *                    out in evaluation
 *   targets          [rows] int32; negative: ignored; < V checked where they are read
 *   scale            [1] double: 1 / tokens that count in the whole batch; left out: 1
 *   loss_sum         [1] double, not scaled; with z above 0 [2]: cross-entropy, and z_sum
 *
 * Numerics the largest logit is taken out first; exponentials to 4e-6 relative, sums of a row in
 *          fp32 at least (double in the reference); rows added in order in double. A row with a
 *          NaN, or with no logit above -inf, has loss and gradient NaN.
 * Phases   2: rows (one loss a row into scratch); then thread 0 adds them in order.
 * Source   z: Chowdhery et al., PaLM (2022), section 5, where it is 1e-4. */
#ifndef HR_OPS_LOSS_H
#define HR_OPS_LOSS_H

#include "ops/call.h"

typedef struct {
    int64_t V;
    double z; /* 0: cross-entropy alone */
} hr_loss_attr;

int64_t hr_loss_scratch_bytes(const void *attr, int64_t rows, int32_t threads);

hr_run_fn hr_loss_run;

#endif
