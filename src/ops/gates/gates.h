/* SPDX-License-Identifier: Apache-2.0 */
/* ops/gates/gates.h - the sum of branches of attention, with a gate for every branch and head.
 *
 *     s_b[r,h]       = 1 / (1 + exp(-z[r, B h + b]))
 *     o[r,h]         = sum over branches b of s_b[r,h] x_b[r,h]
 *     dots_b[r,h]    = do[r,h] . x_b[r,h]
 *     dz[r, B h + b] = s_b (1 - s_b) dots_b[r,h]
 *     shifted_b[r,h] = lse_b[r,h] - log s_b[r,h]
 *
 * The gradient of x_b is s_b do, which nothing stores: attention_bwd reads do, dots_b and shifted_b
 * instead. Its probabilities, exp(score - shifted_b), are then those of the branch times the gate,
 * and that factor is all in which the gradients of q, k and v differ from those of an ungated
 * branch whose gradient is do.
 *
 * Operands. gates      in  z r, x_0 r, x_1 r, x_2 R                            out  o r
 *           gates_bwd  in  do r, z r, x_0 r, x_1 r, x_2 R, lse_0 r, lse_1 r, lse_2 R
 *                      out dz r, shifted_0 r, shifted_1 r, shifted_2 R, dots_0 r, dots_1 r,
 *                          dots_2 R
 *
 *   z, dz               [rows, B H] activations: B branches, 2 or 3
 *   lse, shifted, dots  fp32 [rows, H]; shifted_b may be exactly lse_b
 *   others              [rows, H head_width] activations; o may be exactly one of x, dz exactly z
 *
 * Numerics computed in fp32 from the stored values, rounded once. Each instruction set sums over a
 *          head in an order of its own.
 * Repeat   rows are independent. */
#ifndef HR_OPS_GATES_H
#define HR_OPS_GATES_H

#include "ops/call.h"

enum { HR_GATES_MOST = 3 }; /* branches */

/* The places of operands that each branch has. */
enum {
    HR_GATES_X = 1,
    HR_GATES_BWD_X = 2,
    HR_GATES_LSE = HR_GATES_BWD_X + HR_GATES_MOST,
    HR_GATES_SHIFTED = 1,
    HR_GATES_DOTS = HR_GATES_SHIFTED + HR_GATES_MOST,
};

typedef struct {
    int32_t H, head_width, branches;
} hr_gates_attr;

hr_run_fn hr_gates_run;
hr_run_fn hr_gates_bwd_run;

#endif
