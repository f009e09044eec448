/* SPDX-License-Identifier: Apache-2.0 */
/* ops/rope/rope.h - rotary positions on the first `rotary` elements of some heads of a row.
 *
 * With half = rotary / 2, c and s from the table row of the token's position, for e < half:
 *     y[e] = x[e] c[e] - x[e + half] s[e];   y[e + half] = x[e + half] c[e] + x[e] s[e]
 * and with the sine's sign turned for `inverse`, which is also the gradient. Elements of a row that
 * no rotation touches are copied.
 *
 * Operands. rope        in  x r, table w     out  y r
 *           rope_table  in  -                out  table w
 *
 *   x, y   [rows, width] activations; y may be exactly x
 *   table  [T, rotary] fp32: half cosines, then half sines; angle = position / theta^(2e / rotary),
 *          computed in double and rounded once
 *
 * Head h of run u starts at offset[u] + h * head_stride; runs are, say, the queries and the keys.
 * Source   Su et al. 2021, arXiv:2104.09864, eq. 34; halves split as in GPT-NeoX. */
#ifndef HR_OPS_ROPE_H
#define HR_OPS_ROPE_H

#include <stdbool.h>

#include "ops/call.h"

typedef struct {
    int64_t width, T;
    int32_t rotary; /* even */
    int32_t heads;  /* in each run */
    int32_t runs;   /* 1 or 2 */
    int64_t offset[2], head_stride;
    double theta;
    bool inverse;
} hr_rope_attr;

hr_run_fn hr_rope_run;
hr_run_fn hr_rope_table_run;

#endif
