/* SPDX-License-Identifier: Apache-2.0 */
/* ops/compress/compress.h - one key or value for each group of tokens, by a small MLP or as their
 * mean.
 *
 *     u[n,g] = (x[s n + j, g] + position[j]) for j = 0 .. L-1, side by side
 *     y[n,g] = w2' gelu(w1' u[n,g] + b1) + b2          without weights: the mean of x[s n + j, g]
 *
 * for n = 0 .. N-1 of each sequence, N = (tokens - L) / s + 1, and 0 if it has fewer than L tokens.
 * gelu is by erf. All heads g share the weights.
 *
 * Operands. compress      in  x r, position W, w1 W, b1 W, w2 W, b2 W      out  y r
 *           compress_cached  in  x w, position W, w1 W, b1 W, w2 W, b2 W, first w, added r
 *                            out y u
 *           compress_bwd  in  x r, position W, w1 W, b1 W, w2 W, dy r, addend R
 *                         out dx r, dposition A, dw1 A, db1 A, dw2 A, db2 A
 *
 *   x, dx, addend  [rows, G K] activations; dx is the gradient plus the addend
 *   y, dy          [rows, y_width]: a sequence has T y_width elements, of which [N, G, K] are used
 *   position       fp32 [L, K]
 *   w1 [L K, M], w2 [M, K]  matrices as products read them; b1 [M], b2 [K] fp32
 *
 * compress_cached  x is a cache of the T tokens of one sequence. It has `first` of them, int32 [1],
 *                  and then those `added` by the call, of which the values are not read. Of y, a
 *                  cache too, it computes what these complete.
 *
 * rows is a multiple of T except in evaluation and sampling, whose last sequence may be short.
 *
 * Numerics u and the hidden values are rounded to the dtype of activations; products as those of
 *          linear. The gradient of position is w1 times that of b1, for each sequence.
 * Repeat   the same bits for any number of threads; a sequence depends on nothing else.
 * Threads  rows of y; parts of the weights.
 * Source   Yuan et al. 2025, arXiv:2502.11089, eq. 7. */
#ifndef HR_OPS_COMPRESS_H
#define HR_OPS_COMPRESS_H

#include "ops/call.h"

typedef struct {
    int32_t G, head_width;
    int32_t length, stride; /* L, s: stride <= length */
    int32_t hidden;         /* M; 0: the mean */
    int64_t T, y_width;
} hr_compress_attr;

/* N of a sequence of so many tokens. */
static inline int64_t hr_compress_count(const hr_compress_attr *attr, int64_t tokens)
{
    return tokens < attr->length ? 0 : (tokens - attr->length) / attr->stride + 1;
}

/* y_width: the least with which T rows have room for [N, G, K]. */
static inline int64_t hr_compress_width(const hr_compress_attr *attr)
{
    const int64_t row = (int64_t)attr->G * attr->head_width;
    return (row + attr->stride - 1) / attr->stride;
}

hr_run_fn hr_compress_run;
hr_run_fn hr_compress_cached_run;
hr_run_fn hr_compress_bwd_run;

/* The phases of hr_compress_bwd_run, which depend on the call. */
int32_t hr_compress_bwd_phases(const hr_call *call);

#endif
