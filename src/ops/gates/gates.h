/* SPDX-License-Identifier: Apache-2.0 */
/* ops/gates/gates.h - the sum of branches of attention, each with a gate for every head.
 *
 *     s[r,h,b]   = 1 / (1 + exp(-z[r, B h + b]))
 *     o[r,h]     = sum over branches b of s[r,h,b] x_b[r,h]
 *     dx_b[r,h]  = s[r,h,b] do[r,h]
 *     dz[r,h,b]  = s (1 - s) (do[r,h] . x_b[r,h])
 *
 * Operands. gates      in  z r, x_0 r, x_1 r, x_2 R               out  o r
 *           gates_bwd  in  do r, z r, x_0 r, x_1 r, x_2 R         out  dz r, dx_0 r, dx_1 r, dx_2 R
 *
 *   z, dz  [rows, B H] activations; B is 2 or 3, the number of branches
 *   others [rows, H head_width] activations
 *
 * Numerics computed in fp32 from the stored values, rounded once.
 * Repeat   rows are independent. */
#ifndef HR_OPS_GATES_H
#define HR_OPS_GATES_H

#include "ops/call.h"

enum { HR_GATES_MOST = 3 };

typedef struct {
    int32_t H, head_width, branches;
} hr_gates_attr;

hr_run_fn hr_gates_run;
hr_run_fn hr_gates_bwd_run;

#endif
