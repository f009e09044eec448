/* SPDX-License-Identifier: Apache-2.0 */
/* ops/recurrence/recurrence.h - a gated linear recurrence over the tokens of a sequence, per
 * channel; ReLU of its state is added to the residual stream.
 *
 *     a    = 1 / (1 + exp(-alpha)),  b = 1 - a
 *     s[t] = a s[t-1] + b u[t],      s[-1] = 0, or the given state
 *     y[t] = x[t] + max(s[t], 0)
 * and backward from the last token of a sequence to its first
 *     g[t]  = dy[t] [s[t] > 0] + a g[t+1],  g[T] = 0
 *     du[t] = b g[t];   dalpha += a b sum over tokens of g[t] (s[t-1] - u[t]);   dx = dy
 *
 * Operands. recurrence        in  u r, x r, alpha w        out  y r, state U
 *           recurrence_bwd    in  dy r, u r, alpha w       out  du r, dalpha A
 *           recurrence_clear  in  -                        out  state w: zeros, for a new sequence
 *
 *   u, x, y, dy, du  [rows, C] activations, fp32 or bf16, all of one dtype. Rows begin with a
 *   sequence; sequences have T rows, the last may be short. y may be exactly u or x, du exactly dy
 *   or u; otherwise disjoint
 *   alpha, dalpha    [C] fp32
 *   state            [C] fp32, in and out: all rows continue one sequence from it, for any number
 *                    of rows
 *
 * s is not saved: backward recomputes it from u, and du may overwrite u. Saving u costs the same
 * memory as saving s, and a product can recompute u. The recomputed s is fp32 even in bf16 mode, so
 * both passes agree on every sign, and s[t-1] - u[t] has no rounding error of a stored s.
 *
 * Numerics relative error of a and b 2e-6. s is rounded to fp32 once per token: a fused
 *          multiply-add onto b u. y and du are rounded once. dalpha: fp32 partial sums over blocks
 *          of 64 tokens counted from the start of each sequence, within a block from its last token
 *          to its first, added in token order to the accumulator (double inside a block in the
 *          reference). Forward keeps NaN; backward treats a NaN state as above zero.
 * Repeat   sequences and channels are independent. Results are bit-identical for any number of
 *          threads and any split between sequences and, with a state, for any split.
 * Cost     memory: forward u, x and y once; backward dy and du once, u two or three times. Only the
 *          first read of u misses the cache if a sequence of HR_RECURRENCE_STRIPE channels fits in
 *          it.
 * Phases   recurrence and recurrence_clear 1; recurrence_bwd 2 (stripes of sequences with sums per
 *          block; then channels).
 * Threads  share (sequence, stripe of channels): no sum is split.
 * Source   Martin and Cundy 2018, arXiv:1709.04057, eq. 4 and 6. */
#ifndef HR_OPS_RECURRENCE_H
#define HR_OPS_RECURRENCE_H

#include "ops/call.h"

typedef struct {
    int64_t C, T;
} hr_recurrence_attr;

hr_run_fn hr_recurrence_run;
hr_run_fn hr_recurrence_bwd_run;
hr_run_fn hr_recurrence_clear_run;

#endif
