/* SPDX-License-Identifier: Apache-2.0 */
/* ops/activation/activation.h - an activation computed once more from what it was applied to.
 *
 *     y[r,c] = act(pre[r,c])
 *
 * A product writes pre and act(pre) in one pass (ops/linear/linear.h); where only pre was kept,
 * this makes the other again, without the product.
 *
 * Operands. activation  in  pre r      out  y r
 *
 *   attr    the product's own hr_linear_attr: N is the width of a row
 *   pre, y  [rows, N] activations, fp32 or bf16; y may be exactly pre
 *
 * Repeat   the bits that the product wrote, on the same rung: both compute act from pre as it is
 *          stored, by the same code. */
#ifndef HR_OPS_ACTIVATION_H
#define HR_OPS_ACTIVATION_H

#include "ops/call.h"
#include "ops/linear/linear.h"

hr_run_fn hr_activation_run;

#endif
