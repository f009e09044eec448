/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dropout/dropout.h - applies dropout and a scale to a branch, and adds the residual stream.
 *
 *     y[r,c] = residual[r,c] + (keep(r,c) ? x[r,c] scale / (1 - p) : 0)
 * An element is dropped if element c of row (sequence, position) of the random stream (seed, clock,
 * site, 0) is below hr_random_threshold(p) (base/random.h). The gradient of the branch is the same
 * operation on dy, with the rest of its
 * gradient as residual; the gradient of the residual is dy.
 *
 * Operands. dropout  in  x r, residual R      out  y r
 *
 *   x, residual, y  [rows, D] activations, fp32 or bf16; y may be exactly x or residual
 *
 * Repeat   the mask depends only on these values, so recompute and every micro-batch size give the
 *          same mask. */
#ifndef HR_OPS_DROPOUT_H
#define HR_OPS_DROPOUT_H

#include "ops/call.h"

typedef struct {
    int64_t D, T;
    float p; /* 0: nothing is dropped */
    uint32_t site;
    float scale;
} hr_dropout_attr;

hr_run_fn hr_dropout_run;

#endif
