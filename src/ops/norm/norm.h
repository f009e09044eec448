/* SPDX-License-Identifier: Apache-2.0 */
/* ops/norm/norm.h - LayerNorm and RMSNorm of rows, or of groups within rows.
 *
 * A row has `groups` groups of D elements. Each group is normalised on its own, with the same gain.
 * Over the elements c of one group,
 *     centered      m = mean_c(x[c]),  rstd = 1 / sqrt(mean_c((x[c] - m)^2) + eps)
 *                  y[c] = (x[c] - m) * rstd * gain[c] + bias[c]                 LayerNorm
 *     not centered  rstd = 1 / sqrt(mean_c(x[c]^2) + eps)
 *                  y[c] = x[c] * rstd * gain[c]                                 RMSNorm
 * and with h = (x - m) * rstd (m = 0 in RMSNorm) and t = dy * gain:
 *     dx = addend + rstd * (t - mean_c(t) - h * mean_c(t * h)), without mean_c(t) in RMSNorm
 *     dgain += sum over rows and groups of dy * h;   dbias += sum of dy
 *
 * Operands. norm      in  x r, gain w, bias W                         out  y r, stat R
 *           norm_bwd  in  dy r, x r, stat r, gain w, addend R         out  dx r, dgain A, dbias A
 *
 *   x, y, dy, dx, addend  [rows, groups * D] activations, fp32 or bf16; y may be exactly x; dx may
 *   be exactly dy, x or addend; otherwise disjoint
 *   stat                  [rows, groups * hr_norm_stats(attr)] fp32: mean and rstd of each group,
 *                         or only rstd
 *   gain, bias, dgain, dbias  [D] fp32; RMSNorm has no bias and no dbias
 *
 * Numerics statistics of a group are at least fp32, centered ones in two passes; the sum of squares
 *          must stay below 3e38. dgain and dbias: fp32 partial sums over blocks of 64 tokens
 *          counted from the start of each sequence (length T), within a token by group, added in
 *          order to the accumulator (double inside a block in the reference).
 * Repeat   bit-identical for any number of threads and any split at multiples of 64 tokens within a
 *          sequence.
 * Phases   norm 1; norm_bwd 2 (rows with partial sums per block; then columns).
 * Source   Ba et al. 2016, arXiv:1607.06450, eq. 3-4; Zhang and Sennrich 2019, arXiv:1910.07467,
 *          eq. 4. */
#ifndef HR_OPS_NORM_H
#define HR_OPS_NORM_H

#include "ops/call.h"

typedef struct {
    int64_t D, groups, T;
    float eps;
    bool centered;
} hr_norm_attr;

/* Statistics saved per group for the backward pass: mean and rstd, or only rstd. */
static inline int64_t hr_norm_stats(const hr_norm_attr *attr)
{
    return attr->centered ? 2 : 1;
}

hr_run_fn hr_norm_run;
hr_run_fn hr_norm_bwd_run;

#endif
