/* SPDX-License-Identifier: Apache-2.0 */
/* ops/gates/gates.h - adds a branch of attention with a gate for every head.
 *
 *     s[r,h]         = 1 / (1 + exp(-z[r, B h + b]))
 *     o[r,h]         = s[r,h] x[r,h] + residual[r,h]
 *     dx[r,h]        = s[r,h] do[r,h]
 *     dz[r, B h + b] = s (1 - s) (do[r,h] . x[r,h]) plus the addend; gates of other branches have
 *                      the addend alone, or zero
 *     dots[r,h]      = dx[r,h] . x[r,h], of dx as stored: attention_bwd can read it instead of x
 *
 * Operands. gates      in  z r, x r, residual R           out  o r
 *           gates_bwd  in  do r, z r, x r, addend R       out  dz r, dx r, dots R
 *
 *   z, dz, addend  [rows, B H] activations: B branches, of which this is number b
 *   dots           fp32 [rows, H]
 *   others         [rows, H head_width] activations; o may be exactly x or residual, dx exactly x,
 *                  dz exactly the addend
 *
 * Branch after branch, so that the gradient of one exists at a time.
 *
 * Numerics computed in fp32 from the stored values, rounded once.
 * Repeat   rows are independent. */
#ifndef HR_OPS_GATES_H
#define HR_OPS_GATES_H

#include "ops/call.h"

typedef struct {
    int32_t H, head_width, branches, branch;
} hr_gates_attr;

hr_run_fn hr_gates_run;
hr_run_fn hr_gates_bwd_run;

#endif
