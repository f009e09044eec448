/* SPDX-License-Identifier: Apache-2.0 */
/* ops/glu/glu.h - gated activation of an MLP (SwiGLU).
 *
 *     y[r,c]     = act(gate[r,c]) * up[r,c]
 *     dgate[r,c] = dy[r,c] * up[r,c] * act'(gate[r,c])
 *     dup[r,c]   = dy[r,c] * act(gate[r,c])
 * act is SiLU, x s(x), with the logistic function s(x) = 1 / (1 + exp(-x)).
 *
 * Operands. glu      in  gate r, up r             out  y r
 *           glu_bwd  in  dy r, gate r, up r       out  dgate r, dup r
 *
 *   all  [rows, N] activations, fp32 or bf16, all of one dtype; y may be exactly gate or up; dgate
 *        and dup are two arrays, each of which may be exactly dy, gate or up; otherwise disjoint
 *
 * Numerics computed in fp32 from the stored values, rounded once. Error of act: 4e-6 relative plus
 *          2e-36; of act': 5e-7. An infinite gate gives the limits: act(-inf) = 0, act(inf) = inf,
 *          act'(-inf) = 0, act'(inf) = 1.
 * Repeat   elements are independent.
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
