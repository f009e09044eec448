/* SPDX-License-Identifier: Apache-2.0 */
/* ops/glu/glu.h - one product's result lets another's through: the gated activation of an MLP.
 *
 *     y[r,c]     = act(gate[r,c]) * up[r,c]
 *     dgate[r,c] = dy[r,c] * up[r,c] * act'(gate[r,c])
 *     dup[r,c]   = dy[r,c] * act(gate[r,c])
 * act is SiLU, x s(x) with s the logistic function 1 / (1 + exp(-x)).
 *
 * Operands. glu      in  gate r, up r             out  y r
 *           glu_bwd  in  dy r, gate r, up r       out  dgate r, dup r
 *
 *   all  [rows, N] activations, fp32 or bf16, one type; y may be exactly gate or up; dgate and dup,
 *        two arrays, may each be exactly any of dy, gate and up; else disjoint
 *
 * Numerics in fp32 from what is stored, rounded once. act to 4e-6 relative and 2e-36; act' to
 *          5e-7. A gate may be any number, and infinite, which gives the limits: act(-inf) = 0,
 *          act(inf) = inf, act'(-inf) = 0, act'(inf) = 1.
 * Repeat   an element depends on no other.
 * Source   Shazeer 2020, arXiv:2002.05202, eq. 5-6; SiLU: Elfwing et al. 2017, arXiv:1702.03118. */
#ifndef HR_OPS_GLU_H
#define HR_OPS_GLU_H

#include "ops/call.h"

typedef struct {
    int64_t N;
} hr_glu_attr;

hr_run_fn hr_glu_run;
hr_run_fn hr_glu_bwd_run;

#endif
