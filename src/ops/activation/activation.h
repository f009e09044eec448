/* SPDX-License-Identifier: Apache-2.0 */
/* ops/activation/activation.h - an activation function alone, or recomputed from its input.
 *
 *     y[r,c] = act(pre[r,c])
 *
 * A product writes pre and act(pre) in one pass (ops/linear/linear.h). If only pre was saved, this
 * operation recomputes act(pre) without the product.
 *
 * Operands. activation  in  pre r      out  y r
 *
 *   attr    the hr_linear_attr of the product; N is the row width
 *   pre, y  [rows, N] activations, fp32 or bf16; y may be exactly pre
 *
 * Repeat   bit-identical to the product's output with the same instruction set: both apply the same
 *          code to the stored pre. */
#ifndef HR_OPS_ACTIVATION_H
#define HR_OPS_ACTIVATION_H

#include "ops/call.h"
#include "ops/linear/linear.h"

hr_run_fn hr_activation_run;

#endif
