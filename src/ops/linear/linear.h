/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear.h - matrix products: forward, gradient of the input, gradient of the weight.
 *
 *     forward    pre = x W + bias;  y = act(pre) + residual, act of pre as stored
 *     linear_dx  dx  = act'(aux) * (dy W^T + addend)
 *     linear_dw  dW += x^T dy;  db += sum over rows of dy
 *
 * Element-wise work on a result is fused as an epilogue. x, y, dy, dx are activations ([rows,
 * width], row-major, fp32 or bf16, one dtype per call). W is fp32 in HR_PANEL or bf16 in
 * HR_PANEL_PAIR layout (base/dtype.h); dW is fp32 in the layout of W; bias and db are fp32
 * vectors. */
#ifndef HR_OPS_LINEAR_H
#define HR_OPS_LINEAR_H

#include <stdbool.h>

#include "base/checked.h"
#include "ops/call.h"

/* GELU is x Phi(x), with erf; the tanh form is x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) /
 * 2. */
typedef enum { HR_ACT_NONE, HR_ACT_RELU, HR_ACT_GELU, HR_ACT_GELU_TANH } hr_act;

/* Whether the derivative needs the input of the activation, because its output does not suffice. */
static inline bool hr_act_needs_pre(hr_act act)
{
    return act == HR_ACT_GELU || act == HR_ACT_GELU_TANH;
}

/* Operands. linear    in  x r, W w, bias W, residual R      out  y r, pre R
 *           linear_dx in  dy r, W w, addend R, aux R, before R   out  dx R, after R
 *           linear_dw in  x R, dy r                          out  dW A, db A
 *
 *   pre   optional output; the derivative of both GELUs needs it
 *   aux   input of act': y for ReLU, pre for a GELU; absent with HR_ACT_NONE
 *   before, after  [rows, K] fp32 sums of a reduction in strips (sections/head.h): it begins with
 *         before, and leaves its sums in after instead of dx; after may be exactly before
 *   y     may be exactly residual; dx may be exactly addend or aux; otherwise disjoint
 *
 * Numerics one result element of forward and dx is one sequential sum over the reduction 0, 1, 2,
 *          ... (fp32: fused multiply-adds; bf16: pairs, or 32 at a time on AMX), from zero, rounded
 *          once at the end. dW adds the tokens to the old value in order; a group of tokens (a
 *          pair; 32 on AMX) never spans two sequences: a short last group is padded with zeros. db:
 *          fp32 partial sums over 64 tokens counted from the start of each sequence, added in
 *          order.
 * Repeat   a row of y or dx depends on no other row. dW and db do not depend on threads, on strips
 *          or on how the tokens are split, if every split is at a multiple of 64 within its
 *          sequence. AMX and vdpbf16ps treat denormals as zero. */
typedef struct {
    int64_t K, N; /* W is [K, N]; linear_dw with K = 0: only db, without x and dW */
    int64_t T;    /* tokens per sequence (linear_dw) */
    hr_act act;

    /* linear_dw only: columns of a strip, and the first column of the strip of iteration 0; 0, 0:
     * all columns. dW then has the panels of one strip, and there is no db. */
    int64_t strip, strip_first;
} hr_linear_attr;

/* Columns of dW that a step computes, at most. */
static inline int64_t hr_linear_columns(const hr_linear_attr *attr)
{
    return attr->strip ? attr->strip : attr->N;
}

/* The layout of the weight that products with this dtype of activations read. */
static inline hr_layout hr_linear_layout(hr_dtype activations)
{
    return activations == HR_BF16 ? HR_PANEL_PAIR : HR_PANEL;
}

/* The operations as the executor calls them: ops/linear/linear_run.c. */
hr_run_fn hr_linear_run;
hr_run_fn hr_linear_dx_run;
hr_run_fn hr_linear_dw_run;

#endif
