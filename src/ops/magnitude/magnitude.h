/* SPDX-License-Identifier: Apache-2.0 */
/* ops/magnitude/magnitude.h - columns of a product with trained lengths (DoRA), and the lengths
 * that they have.
 *
 *     length    v[n] = sqrt(sum_k (W[k,n] + scale sum_r A[k,r] B[r,n])^2),   c[n] = 1 / v[n]
 *     magnitude y[t,n] = x[t,n] c[n] m[n] + bias[n] + residual[t,n]
 * and, with c a constant,
 *     dx = addend + dy c m;   dm += sum over rows of dy x c
 *
 * x is the product without bias; c[n] is 0 where v[n] is. The matrix W + scale A B does not exist:
 * a column is summed in strips of 64 rows.
 *
 * Operands. length         in  W w, A w, B w               out  c W, c U, m U, e U
 *           magnitude      in  x r, m w, c w, bias W, residual R   out  y r
 *           magnitude_bwd  in  dy r, x r, m w, c w, addend R       out  dx r, dm A
 *
 *   W [K, N], A [K, R], B [R, N]  fp32 or bf16, in `layout`
 *   c, m, bias, dm                [N] fp32
 *   x, y, dy, dx, residual, addend  [rows, N] fp32 or bf16; y may be exactly x or residual, dx
 *   exactly dy, x or addend; otherwise disjoint
 *   e                             [N] fp32, an average of m. In m and e of `length`, elements that
 *                                 are NaN, as those of new parameters are, become v[n].
 *                                 c is written once, and updated from then on
 *
 * Numerics length: fp32 sums within a strip, doubles over strips. dm: fp32 partial sums over blocks
 *          of 64 tokens counted from the start of each sequence, added in order.
 * Repeat   bit-identical for any number of threads and any split at multiples of 64 tokens within a
 *          sequence.
 * Phases   length 1; magnitude 1; magnitude_bwd 2 (rows with partial sums per block; then columns).
 * Source   Liu et al. 2024, arXiv:2402.09353, eq. 5 and section 4.3. */
#ifndef HR_OPS_MAGNITUDE_H
#define HR_OPS_MAGNITUDE_H

#include "ops/call.h"

typedef struct {
    int64_t K, N, R;
    float scale;
    int32_t layout; /* hr_layout of the matrices */
} hr_length_attr;

typedef struct {
    int64_t N, T;
} hr_magnitude_attr;

hr_run_fn hr_length_run;
hr_run_fn hr_magnitude_run;
hr_run_fn hr_magnitude_bwd_run;

#endif
