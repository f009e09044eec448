/* SPDX-License-Identifier: Apache-2.0 */
/* ops/match/match.h - how far rows are from rows that they should equal, and the gradient of that
 * in the same pass.
 *
 *     HR_MATCH_MSE     e[r] = sum_c (y[r,c] - t[r,c])^2 / D
 *     HR_MATCH_COSINE  e[r] = 1 - y[r] . t[r] / (|y[r]| |t[r]|);  1 for a zero row, gradient 0
 *
 *     sums[slot] += weight e, over rows with label >= 0
 *     dy[r] = weight scale de[r]/dy[r];  0 if the label is ignored
 *
 * Operands. match  in  y r, t r, labels r, scale W      out  sums a, dy R
 *
 *   y, t, dy  [rows, D] activations, fp32 or bf16; dy may be exactly y or t; omitted in evaluation
 *   labels    [rows] int32; negative: ignored
 *   scale     [1] double: 1 / counted tokens of the whole batch; omitted: 1
 *   sums      [slots] double, one for each term of the loss: added in this order, they give the
 *             same bits in whatever order the terms were computed
 *
 * t is a constant: it gets no gradient.
 *
 * Numerics row sums in fp32 (double in the reference); 1 - cos is half the squared distance of the
 *          two rows divided by their lengths, so that it is exact near 0; rows are added in order
 *          in double.
 * Phases   2: rows (one error per row into scratch); then thread 0 adds them in order. */
#ifndef HR_OPS_MATCH_H
#define HR_OPS_MATCH_H

#include "ops/call.h"

typedef enum { HR_MATCH_MSE, HR_MATCH_COSINE } hr_match_measure;

typedef struct {
    int64_t D;
    double weight;
    int32_t measure; /* hr_match_measure */
    int32_t slot, slots;
} hr_match_attr;

hr_run_fn hr_match_run;

#endif
