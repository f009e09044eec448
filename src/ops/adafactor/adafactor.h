/* SPDX-License-Identifier: Apache-2.0 */
/* ops/adafactor/adafactor.h - the update of Adafactor, whose second moment of a matrix is a row and
 * a column of means. With t as in ops/update/update.h and rms(x) = sqrt(mean of x^2):
 *
 *     g = scale * gradient;  b = 1 - t^decay_rate
 *     R = b R + (1 - b) (mean over columns of g^2 + eps1)
 *     C = b C + (1 - b) (mean over rows of g^2 + eps1)
 *     u = g / (sqrt(R / mean(R)) sqrt(C));  u = u / max(1, rms(u) / clip_threshold)
 *     rate = lr_scale lr;           with relative_step lr_scale min(lr, 1 / sqrt(t))
 *     rate = rate max(eps2, rms(w)) with scale_parameter
 *     m = beta1 m + (1 - beta1) rate u;  w = w (1 - rate * decay) - m
 *     without a moment                   w = w (1 - rate * decay) - rate u
 *
 * A vector is a matrix with one row: its C is the second moment of each element, and R / mean(R)
 * is 1.
 *
 * Operands. in  gradient w, norm_scale W, lr w  out  master u, R u, C u, m U, weight W, residual u
 *
 *   gradient, master, m  [K, N] fp32, all in `layout`, padding included (zeros stay zero)
 *   R, C                 [K], [N] fp32
 *   master               bf16, in HR_PANEL_PAIR, where the attribute says so (ops/update/masters.h)
 *   weight               bf16 copy of the new master, rounded once; omitted in fp32 and where the
 *                        master is bf16
 *   residual             as in ops/update/update.h
 *   norm_scale           [2] double: norm, scale; omitted without clipping
 *   lr                   [1] double
 *
 * Numerics elements in fp32. Squares are added in fp32 in 16 lanes over at most HR_ADAFACTOR_TILE
 *          lines, or over a row; lanes, tiles and blocks of lines in double. Squares of the
 *          master in double, over runs of elements, so that they do not depend on how it is
 *          stored. Coefficients in double, rounded once.
 * Repeat   the blocks of lines depend on the shape alone, and are added in order.
 * Cost     reads the gradient three times and, with scale_parameter, the master twice.
 * Phases   4: squares and R (by blocks), C and factors (by rows and columns), rms (by blocks),
 *          weights (by blocks).
 * Source   Shazeer and Stern 2018, arXiv:1804.04235, algorithms 4 and 5. Names, defaults and the
 *          order of moment and decay are those of Hugging Face's transformers, optimization.py;
 *          its relative_step with lr = 0.01 here. */
#ifndef HR_OPS_ADAFACTOR_H
#define HR_OPS_ADAFACTOR_H

#include <stdbool.h>

#include "ops/update/update.h"

typedef struct {
    hr_update_attr update; /* first: ops/update/update_blocks.h. moments is that of m */
    int64_t K, N;
    double eps1, eps2, clip_threshold, decay_rate;
    bool scale_parameter, relative_step;
    uint8_t layout; /* hr_layout */
} hr_adafactor_attr;

hr_run_fn hr_adafactor_run;

#endif
