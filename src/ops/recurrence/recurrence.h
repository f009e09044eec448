/* SPDX-License-Identifier: Apache-2.0 */
/* ops/recurrence/recurrence.h - a gated linear recurrence over the tokens of a sequence, each
 * channel for itself, and what of it is above zero added to the stream.
 *
 *     a    = 1 / (1 + exp(-alpha)),  b = 1 - a
 *     s[t] = a s[t-1] + b u[t],      s[-1] = 0, or where a state is given what it holds
 *     y[t] = x[t] + max(s[t], 0)
 * and backward from the last token of a sequence to its first
 *     g[t]  = dy[t] [s[t] > 0] + a g[t+1],  g[T] = 0
 *     du[t] = b g[t];   dalpha += a b sum over tokens of g[t] (s[t-1] - u[t]);   dx = dy
 *
 * Operands. recurrence        in  u r, x r, alpha w        out  y r, state U
 *           recurrence_bwd    in  dy r, u r, alpha w       out  du r, dalpha A
 *           recurrence_clear  in  -                        out  state w: zeros, a sequence begins
 *
 *   u, x, y, dy, du  [rows, C] activations, fp32 or bf16, one type. Rows begin with a sequence, and
 *                    sequences have T; the last may be short. y may be exactly u or x, du exactly
 *                    dy or u; else disjoint
 *   alpha, dalpha    [C] fp32
 *   state            [C] fp32, in and out: all rows continue one sequence from it, however many
 *                    there are
 *
 * s is kept nowhere: whoever has u has s, and du may lie where u lay. Keeping u costs what keeping
 * s would, u comes again from a product, and s as the backward pass makes it is fp32 in bf16 too:
 * both passes agree on every sign, and s[t-1] - u[t] does not lose what rounding s would take.
 *
 * Numerics a and b each to 2e-6 relative. s is rounded to fp32 once a token: a fused multiply-add
 *          onto b u. y and du are rounded once. dalpha: fp32 partial sums over blocks of 64 tokens
 *          counted from the start of each sequence, within a block from its last token to its
 *          first, added in token order to the carried sum (double inside a block in the reference).
 *          What is not a number stays so, forward; backward it counts as above zero.
 * Repeat   a sequence depends on no other, a channel on no other. Neither threads nor cuts between
 *          sequences change a bit, nor, with a state, cuts anywhere.
 * Cost     memory: forward u, x and y once; backward dy and du once, u twice or thrice, of which
 *          all but the first from the cache where a sequence of HR_RECURRENCE_STRIPE channels fits.
 * Phases   recurrence and recurrence_clear 1; recurrence_bwd 2 (stripes of sequences, sums by
 *          block; then channels).
 * Threads  share (sequence, stripe of channels): no sum is split.
 * Source   Martin and Cundy 2018, arXiv:1709.04057, eq. 4 and 6. */
#ifndef HR_OPS_RECURRENCE_H
#define HR_OPS_RECURRENCE_H

#include "ops/call.h"

typedef struct {
    int64_t C, T;
} hr_recurrence_attr;

/* Tokens whose part of a gradient is summed up before it is added, and most channels of a piece:
 * half a KiB of a row and more is read in one go, and a block of states, 32 KiB, stays in cache. */
enum { HR_RECURRENCE_BLOCK = 64, HR_RECURRENCE_STRIPE = 128 };

static inline int64_t hr_recurrence_stripes(int64_t C)
{
    return (C + HR_RECURRENCE_STRIPE - 1) / HR_RECURRENCE_STRIPE;
}

int64_t hr_recurrence_bwd_scratch_bytes(const void *attr, int64_t rows, int32_t threads);

hr_run_fn hr_recurrence_run;
hr_run_fn hr_recurrence_bwd_run;
hr_run_fn hr_recurrence_clear_run;

#endif
