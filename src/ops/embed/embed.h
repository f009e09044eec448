/* SPDX-License-Identifier: Apache-2.0 */
/* ops/embed/embed.h - looks up rows of a table by token id, with or without learned positions.
 *
 *     y[r] = E[ids[r]] + P[skip + position(r)]
 *     dE[ids[r]] += dy[r];  dP[skip + position(r)] += dy[r], tokens in order
 *
 * Operands. embed      in  ids r, E W, P W, start W, begins R,  out  y r
 *                         rows R
 *           embed_bwd  in  ids r, dy r, begins R                out  dE A, dP A
 *
 *   ids    [rows] int32, 0 <= id < V; whoever reads the ids checks this, not the kernel
 *   E, dE  [V, D] row-major, fp32; frozen weights may be bf16. If the head shares the table: [D, V]
 *          in HR_PANEL (fp32) or HR_PANEL_PAIR (E bf16, dE fp32) layout; column v is row v of E
 *   P, dP  [positions, D] fp32
 *   start  [1] int32: position of the first row; omitted: each sequence starts at 0
 *   begins int32 [rows]: index, within its sequence of T, of the first row of the row's document,
 *          which has position 0; omitted: 0
 *   y, dy  [rows, D] activations, fp32 or bf16
 *   rows   [rows, D] in the dtype of E: the row of each token, instead of E
 *
 * Numerics y is rounded once; gradients are fp32 sums over the tokens in order.
 * Repeat   threads share the columns, so no sum is split.
 * Cost     in panel layout each token reads whole cache lines for one column: 16 times its
 *          bytes. */
#ifndef HR_OPS_EMBED_H
#define HR_OPS_EMBED_H

#include "ops/call.h"

typedef struct {
    int64_t V, D, T;
    int64_t positions, skip; /* rows of P, and offset of position 0 */
    int32_t layout, dtype;   /* hr_layout and hr_dtype of E or rows */

    /* embed_bwd only: rows of a strip of dE, and the first row of the strip of iteration 0; 0, 0:
     * all rows. dE then has the rows of one strip, row-major, and there is no dP. */
    int64_t strip, strip_first;
} hr_embed_attr;

hr_run_fn hr_embed_run;
hr_run_fn hr_embed_bwd_run;

#endif
