/* SPDX-License-Identifier: Apache-2.0 */
/* ops/muon/muon.h - the update of Muon: of a matrix the momentum, made nearly orthogonal, which
 * gives its singular values about the same size.
 *
 *     g = scale * gradient;  m = beta1 m + (1 - beta1) g
 *     u = (1 - beta1) g + beta1 m with nesterov, else m
 *     X = u / max(|u|, 1e-7);  `steps` times:  A = X X^T,  X = a X + (b A + c A A) X
 *     w = w (1 - lr * decay) - lr * shape * X
 *
 * with a, b, c = 3.4445, -4.775, 2.0315; X is transposed if u has more rows than columns. lr is
 * multiplied by lr_scale.
 *
 * Operands. in  gradient w, norm_scale W, lr w  out  master u, m u, weight W, scales u, residual u
 *
 *   as those of sgd (ops/update/update.h). The layout of the weight tells the dtype of X: fp32 with
 *   HR_PANEL, bf16 with HR_PANEL_PAIR
 *
 * Numerics the products are those of ops/linear, in the dtype of X. X is divided by a^i after i
 *          steps, so that no pass multiplies by a; |u| in double.
 * Repeat   no bit depends on threads.
 * Cost     with M <= L the sides of the matrix, steps * (4 M^2 L + 2 M^3) floating-point
 *          operations.
 * Phases   3 + 6 * steps.
 * Source   Jordan et al. 2024, kellerjordan.github.io/posts/muon; order and eps as
 *          torch.optim.Muon has them. */
#ifndef HR_OPS_MUON_H
#define HR_OPS_MUON_H

#include "ops/update/update.h"

typedef struct {
    hr_update_attr update; /* first: ops/update/update_blocks.h */
    int64_t K, N;
    double shape;   /* factor of the update */
    uint8_t layout; /* hr_layout */
    uint8_t steps;
    bool nesterov;
} hr_muon_attr;

hr_run_fn hr_muon_run;

#endif
