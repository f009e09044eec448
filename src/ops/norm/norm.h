/* SPDX-License-Identifier: Apache-2.0 */
/* ops/norm/norm.h - LayerNorm of rows.
 *
 *     y[r,c]  = (x[r,c] - mean[r]) * rstd[r] * gain[c] + bias[c]
 *     rstd[r] = 1 / sqrt(mean_c((x[r,c] - mean[r])^2) + eps)
 * and with h = (x - mean) * rstd, t = dy o gain:
 *     dx = addend + rstd * (t - mean_c(t) - h * mean_c(t o h))
 *     dgain += sum_r dy o h;   dbias += sum_r dy
 *
 * Operands. norm      in  x r, gain w, bias W                         out  y r, stat R
 *           norm_bwd  in  dy r, x r, stat r, gain w, addend R         out  dx r, dgain a, dbias A
 *
 *   x, y, dy, dx, addend  [rows, D] activations, fp32 or bf16; y may be exactly x; dx may be
 *                         exactly dy, x or addend; else disjoint
 *   stat                  [rows, 2] fp32: mean, rstd
 *   gain, bias, dgain, dbias  [D] fp32
 *
 * Numerics statistics of a row in at least fp32, two passes; |x| up to 1e18. dgain and dbias: fp32
 *          partial sums over blocks of 64 tokens counted from the start of each sequence (length
 *          T), added in order to the carried sum (double inside a block in the reference).
 * Repeat   neither threads nor cuts at multiples of 64 within a sequence change a bit.
 * Phases   norm 1; norm_bwd 2 (rows, partial sums by block; then columns).
 * Source   Ba et al. 2016, arXiv:1607.06450, eq. 3-4. */
#ifndef HR_OPS_NORM_H
#define HR_OPS_NORM_H

#include "ops/call.h"

typedef struct {
    int64_t D, T;
    float eps;
} hr_norm_attr;

int64_t hr_norm_bwd_scratch_bytes(const void *attr, int64_t rows, int32_t threads);

hr_run_fn hr_norm_run;
hr_run_fn hr_norm_bwd_run;

#endif
