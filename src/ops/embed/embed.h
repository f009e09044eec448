/* SPDX-License-Identifier: Apache-2.0 */
/* ops/embed/embed.h - rows of a table by token id, with learned positions or without.
 *
 *     y[r] = E[ids[r]] + P[position(r)]
 *     dE[ids[r]] += dy[r];  dP[position(r)] += dy[r], tokens in order
 *
 * Operands. embed      in  ids r, E w, P W      out  y r
 *           embed_bwd  in  ids r, dy r          out  dE a, dP A
 *
 *   ids    [rows] int32, 0 <= id < V: checked where the ids are read, not here
 *   E, dE  [V, D] fp32 row-major; P, dP [T, D] fp32 (positions past the end of a short row stay as
 *          they are; clearing clears all rows)
 *   y, dy  [rows, D] activations, fp32 or bf16
 *
 * Numerics y rounded once; gradients are fp32 chains over the tokens in order.
 * Repeat   threads share the columns, so no sum is split. */
#ifndef HR_OPS_EMBED_H
#define HR_OPS_EMBED_H

#include "ops/call.h"

typedef struct {
    int64_t V, D, T;
} hr_embed_attr;

hr_run_fn hr_embed_run;
hr_run_fn hr_embed_bwd_run;

#endif
