/* SPDX-License-Identifier: Apache-2.0 */
/* ops/lif/lif.h - leaky integrate-and-fire neurons over the tokens of a sequence; their spikes are
 * added to the residual stream. Neurons form blocks, and hear only neurons of their block.
 *
 *     I[t] = u[t] + sum over j < synapses of w[j] s[t-1] of the neuron 1 + 101 j further, modulo
 *            the block
 *     V[t] = 0.95 R[t-1] + I[t] - A[t-1];        all states are 0 before the first token
 *     s[t] = 1 if V[t] >= 1 and fewer than `winners` neurons of the block have a larger V[t] (or
 *            the same and a lower index), else 0
 *     R[t] = V[t] (1 - s[t]);  A[t] = 0.90 A[t-1] + s[t];  y[t] = x[t] + s[t]
 *
 * and backward in time, with h = 1 / (1 + 5 |V - 1|)^2 in place of the derivative of a winner's
 * spike, 0 for the others, and the reset R a constant factor:
 *     dA[t] = 0.90 dA[t+1] - dV[t+1]
 *     ds[t] = dy[t] + dA[t] + what the neurons that hear it add: w[j] dV[t+1]
 *     dV[t] = ds[t] h(V[t]) + 0.95 dV[t+1] (1 - s[t]);  du[t] = dV[t]
 *     dw[j] += sum over t of dV[t] s[t-1] of the neuron that j hears;  dx = dy
 *
 * Operands. lif      in  u r, x r, w w        out  y r, state U
 *           lif_bwd  in  dy r, u r, w w       out  du r, dw A
 *
 *   u, x, y, dy, du  [rows, C] activations, fp32 or bf16, all of one dtype. Rows begin with a
 *   sequence; sequences have T rows, the last may be short. y may be exactly u or x, du exactly dy
 *   or u; otherwise disjoint
 *   w, dw            [synapses, C] fp32, row-major
 *   state            [3 C] fp32: R, A, s. In and out: all rows continue one sequence from it, for
 *                    any number of rows
 *
 * V is not saved: backward recomputes it from u.
 *
 * Numerics fp32, each product and sum rounded once, in the order of j; dw of a sequence is summed
 *          from its last token to its first, then added to the accumulator. The same bits with
 *          every instruction set: one bit of V may decide over a spike. NaN never spikes.
 * Repeat   blocks and sequences are independent. Results do not depend on threads, on splits
 *          between sequences or, with a state, on any split.
 * Cost     forward 2 synapses operations for each neuron and token, backward three times as many.
 * Threads  share blocks of neurons: no sum is split.
 * Source   surrogate: Zenke and Ganguli 2018, arXiv:1705.11146, eq. 5. */
#ifndef HR_OPS_LIF_H
#define HR_OPS_LIF_H

#include "ops/call.h"

enum { HR_LIF_BLOCK_MOST = 1024, HR_LIF_UNIT = 16 /* blocks are multiples of it */ };

typedef struct {
    int64_t C, T;
    int32_t block, winners, synapses; /* synapses < block */
} hr_lif_attr;

hr_run_fn hr_lif_run;
hr_run_fn hr_lif_bwd_run;

#endif
