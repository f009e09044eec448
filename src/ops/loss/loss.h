/* SPDX-License-Identifier: Apache-2.0 */
/* ops/loss/loss.h - cross-entropy of one chunk of logits, and its gradient in the same pass; or of
 * strips of columns, where the weight of the head is never whole in memory (sections/head.h).
 *
 *     loss_sum += sum over rows with target >= 0 of  log(sum_v exp(logits[r,v])) - logits[r,target]
 *     dlogits[r,v] = (softmax(logits[r])[v] - [v = target]) * scale;  0 if the target is ignored
 *
 * With z above 0 it adds the z-loss. With L[r] = log(sum_v exp(logits[r,v])),
 *
 *     z_sum += sum over rows with target >= 0 of  z L[r]^2
 *     dlogits[r,v] = (softmax(logits[r])[v] (1 + 2 z L[r]) - [v = target]) * scale
 *
 * Operands. loss       in  logits r, targets r, scale W            out  loss_sum a, dlogits R
 *           loss_part  in  logits r, targets r, before R           out  part r, loss_sum A
 *           loss_dx    in  logits r, targets r, scale W, part r    out  dlogits r
 *
 *   logits, dlogits  [rows, V] activations, fp32 or bf16; dlogits may be exactly logits; omitted in
 *                    evaluation
 *   targets          [rows] int32; negative: ignored; whoever reads them checks that they are < V
 *   scale            [1] double: 1 / counted tokens of the whole batch, times the loss scale with
 *                    f16; omitted: 1
 *   loss_sum         [1] double, not scaled; with z above 0 [2]: cross-entropy, and z_sum
 *   before, part     [rows, 4] fp32: hr_loss_part of the columns before and with these; part may be
 *                    exactly before. The last strip adds to loss_sum, and its part is that of the
 *                    row
 *
 * Numerics the largest logit is subtracted first; exponentials have a relative error of 4e-6; row
 *          sums are at least fp32 (double in the reference); rows are added in order in double. A
 *          row with a NaN, or with no logit above -inf, has loss and gradient NaN.
 * Repeat   strips of whole blocks of HR_LOSS_BLOCK columns give the bits of the whole.
 * Phases   2: rows (one loss per row into scratch); then thread 0 adds them in order.
 * Source   z-loss: Chowdhery et al., PaLM (2022), section 5, where z is 1e-4. */
#ifndef HR_OPS_LOSS_H
#define HR_OPS_LOSS_H

#include "ops/call.h"

enum { HR_LOSS_BLOCK = 2048, HR_LOSS_PART_BYTES = 16 };

typedef struct {
    int64_t V;
    double z;      /* 0: cross-entropy only */
    int64_t first; /* column of a strip */
} hr_loss_attr;

hr_run_fn hr_loss_run;
hr_run_fn hr_loss_part_run;
hr_run_fn hr_loss_dx_run;

#endif
