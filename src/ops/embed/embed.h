/* SPDX-License-Identifier: Apache-2.0 */
/* ops/embed/embed.h - rows of a table by token id, with learned positions or without.
 *
 *     y[r] = E[ids[r]] + P[skip + position(r)]
 *     dE[ids[r]] += dy[r];  dP[skip + position(r)] += dy[r], tokens in order
 *
 * Operands. embed      in  ids r, E w, P W, start W, begins R   out  y r
 *           embed_bwd  in  ids r, dy r, begins R                out  dE A, dP A
 *
 *   ids    [rows] int32, 0 <= id < V: checked where the ids are read, not here
 *   E, dE  [V, D] row-major, fp32, of weights that nobody trains bf16 too; or, where the head
 *          shares the table, a weight of products: [D, V] in HR_PANEL (fp32) or HR_PANEL_PAIR
 *          order (E bf16, dE fp32), column v the row of token v
 *   P, dP  [positions, D] fp32
 *   start  [1] int32: position of the first row; left out: each sequence starts at 0
 *   begins int32 [rows]: where in its sequence of T a row's document begins, which is position 0;
 *          left out: all begin at 0
 *   y, dy  [rows, D] activations, fp32 or bf16
 *
 * Numerics y rounded once; gradients are fp32 chains over the tokens in order.
 * Repeat   threads share the columns, so no sum is split.
 * Cost     of panels each token reads whole lines for one column: 16 times its bytes, in a run. */
#ifndef HR_OPS_EMBED_H
#define HR_OPS_EMBED_H

#include "ops/call.h"

typedef struct {
    int64_t V, D, T;
    int64_t positions, skip; /* rows of P, and how many of them come before position 0 */
    int32_t layout, dtype;   /* hr_layout and hr_dtype of E */
} hr_embed_attr;

hr_run_fn hr_embed_run;
hr_run_fn hr_embed_bwd_run;

#endif
