/* SPDX-License-Identifier: Apache-2.0 */
/* ops/dropout/dropout.h - drops elements of a branch, then adds the residual stream.
 *
 *     y[r,c] = residual[r,c] + (keep(r,c) ? x[r,c] / (1 - p) : 0)
 * An element is dropped when hr_random_element(hr_random_row_key(seed, clock, site, sequence,
 * position), c) < hr_random_threshold(p). The gradient of the branch is the same operation on dy
 * without a residual; the residual's gradient is dy itself.
 *
 * Operands. dropout  in  x r, residual R      out  y r
 *
 *   x, residual, y  [rows, D] activations, fp32 or bf16; y may be exactly x or residual
 *
 * Repeat   the mask is a function of its key: recomputing or cutting the batch gives the same. */
#ifndef HR_OPS_DROPOUT_H
#define HR_OPS_DROPOUT_H

#include "ops/call.h"

typedef struct {
    int64_t D, T;
    float p;
    uint64_t site;
} hr_dropout_attr;

hr_run_fn hr_dropout_run;

#endif
