/* SPDX-License-Identifier: Apache-2.0 */
/* ops/norm/norm.h - LayerNorm and RMSNorm of rows, or of groups within rows.
 *
 * A row is `groups` groups of D elements; each is normalised on its own, with the same gain. Over
 * the elements c of one group,
 *     centred      m = mean_c(x[c]),  rstd = 1 / sqrt(mean_c((x[c] - m)^2) + eps)
 *                  y[c] = (x[c] - m) * rstd * gain[c] + bias[c]                 LayerNorm
 *     not centred  rstd = 1 / sqrt(mean_c(x[c]^2) + eps)
 *                  y[c] = x[c] * rstd * gain[c]                                 RMSNorm
 * and with h = (x - m) * rstd, m = 0 where nothing is centred, and t = dy o gain:
 *     dx = addend + rstd * (t - mean_c(t) - h * mean_c(t o h)), without mean_c(t) in RMSNorm
 *     dgain += sum over rows and groups of dy o h;   dbias += sum of dy
 *
 * Operands. norm      in  x r, gain w, bias W                         out  y r, stat R
 *           norm_bwd  in  dy r, x r, stat r, gain w, addend R         out  dx r, dgain A, dbias A
 *
 *   x, y, dy, dx, addend  [rows, groups * D] activations, fp32 or bf16; y may be exactly x; dx may
 *                         be exactly dy, x or addend; else disjoint
 *   stat                  [rows, groups * hr_norm_stats(attr)] fp32: mean and rstd of each group,
 *                         or rstd alone
 *   gain, bias, dgain, dbias  [D] fp32; RMSNorm has no bias and no dbias
 *
 * Numerics statistics of a group in at least fp32, centred ones in two passes; the squares that are
 *          summed must sum to less than 3e38. dgain and dbias: fp32 partial sums over blocks of 64
 *          tokens counted from the start of each sequence (length T), within a token group after
 *          group, added in order to the carried sum (double inside a block in the reference).
 * Repeat   neither threads nor cuts at multiples of 64 within a sequence change a bit.
 * Phases   norm 1; norm_bwd 2 (rows, partial sums by block; then columns).
 * Source   Ba et al. 2016, arXiv:1607.06450, eq. 3-4; Zhang and Sennrich 2019, arXiv:1910.07467,
 *          eq. 4. */
#ifndef HR_OPS_NORM_H
#define HR_OPS_NORM_H

#include "ops/call.h"

typedef struct {
    int64_t D, groups, T;
    float eps;
    bool centred;
} hr_norm_attr;

/* What is kept of a group for the backward pass: mean and rstd, or rstd alone. */
static inline int64_t hr_norm_stats(const hr_norm_attr *attr)
{
    return attr->centred ? 2 : 1;
}

int64_t hr_norm_bwd_scratch_bytes(const void *attr, int64_t rows, int32_t threads);

hr_run_fn hr_norm_run;
hr_run_fn hr_norm_bwd_run;

#endif
