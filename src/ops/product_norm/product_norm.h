/* SPDX-License-Identifier: Apache-2.0 */
/* ops/product_norm/product_norm.h - the sum of squares of the gradient of a weight, from the
 * operands of the product that computes it:
 *
 *     |x^T dy|^2 = sum over tokens i, j of (x_i . x_j) (dy_i . dy_j)
 *
 * Of a table of embeddings x_i . x_j is 1 for equal ids, else 0. For fewer tokens than K N / (K +
 * N) it takes fewer operations than x^T dy, and the gradient need not exist.
 *
 * Operands. in  x w, dy w      out  part w
 *
 *   x     [rows, K] activations; or ids [rows] int32, with K = 0
 *   dy    [rows, N] activations
 *   part  [1] double
 *
 * Numerics dot products as those of ops/linear, in fp32 over all of K and of N; the rest in double.
 *          The result is at least 0. It differs from sumsq (ops/update/update.h) by rounding: about
 *          2^-24 of the sum of all |x_i . x_j| |dy_i . dy_j|.
 * Repeat   no bit depends on threads.
 * Cost     rows^2 (K + N) floating-point operations, and about half a block of tokens more for each
 *          token. A block of tokens is copied once for each block up to it.
 * Phases   for each pair of blocks two for each piece of K and of N, and one; at the end one. */
#ifndef HR_OPS_PRODUCT_NORM_H
#define HR_OPS_PRODUCT_NORM_H

#include "ops/call.h"

typedef struct {
    int64_t rows, K, N;
    int32_t param; /* whose gradient it is */
} hr_product_norm_attr;

hr_run_fn hr_product_norm_run;

#endif
