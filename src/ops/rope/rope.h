/* SPDX-License-Identifier: Apache-2.0 */
/* ops/rope/rope.h - rotary position embedding (RoPE) on the first `rotary` elements of some heads.
 *
 * With half = rotary / 2, c and s from the table row of the token's position, for e < half:
 *     y[e] = x[e] c[e] - x[e + half] s[e];   y[e + half] = x[e + half] c[e] + x[e] s[e]
 * With `inverse`, which is also the gradient, s has the opposite sign. Other elements of a row are
 * copied.
 *
 * Operands. rope        in  x r, table w, position W, begins R     out  y r
 *           rope_table  in  -                            out  table w
 *
 *   x, y   [rows, width] activations; y may be exactly x
 *   position  int32 [1], position of the first row of one continued sequence; omitted: whole
 *             sequences of T
 *   begins int32 [rows]: index, within its sequence of T, of the first row of the row's document,
 *          which has position 0; omitted: 0
 *   table  [T, rotary] fp32: half cosines, then half sines; angle = position * f(e), computed in
 *          double and rounded once. Split, for many positions: [near + far, rotary] in double, of
 *          the positions 0 to near - 1, then of the multiples of near; c and s are then those of
 *          the sum of two angles, computed in double and rounded once.
 *          f(e) = theta^(-2e / rotary), scaled:
 *            linear  f / factor
 *            llama3  with w = original positions * f / (2 pi), the number of periods: f / factor if
 *                    w < low, f if w > high, otherwise a linear interpolation with weight
 *                    (w - low) / (high - low) for f
 *            yarn    with d(w) = rotary ln(original / (2 pi w)) / (2 ln theta), the place at which
 *                    a frequency has w periods: f up to floor(d(high)), f / factor from
 *                    ceil(d(low)) on, and a linear interpolation in e between them; cosines and
 *                    sines times `length`
 *            dynamic f of theta (factor T / original - factor + 1)^(rotary / (rotary - 2)), if T
 *                    is more than original
 *
 * Head h of run u starts at offset[u] + h * head_stride. Runs are, for example, the queries and the
 * keys.
 * Source   Su et al. 2021, arXiv:2104.09864, eq. 34; halves split as in GPT-NeoX; llama3: the model
 *          card of Llama 3.1; yarn: Peng et al. 2023, arXiv:2309.00071; both as in transformers. */
#ifndef HR_OPS_ROPE_H
#define HR_OPS_ROPE_H

#include <stdbool.h>

#include "ops/call.h"

typedef enum {
    HR_ROPE_NONE,
    HR_ROPE_LINEAR,
    HR_ROPE_LLAMA3,
    HR_ROPE_YARN,
    HR_ROPE_DYNAMIC
} hr_rope_scaling_kind;

typedef struct {
    int32_t kind; /* hr_rope_scaling_kind */
    double factor, low, high;
    int64_t original;
    double length; /* yarn: of the cosines and sines; 0: 0.1 ln(factor) + 1 */
} hr_rope_scaling;

/* Positions of the first part of a split table, positions from which on a table is split, and the
 * most elements of a row of one. */
enum { HR_ROPE_NEAR = 512, HR_ROPE_SPLIT_FROM = 32768, HR_ROPE_ROTARY_MAX = 1024 };

typedef struct {
    int64_t width, T;
    int32_t rotary; /* even */
    int32_t heads;  /* heads per run */
    int32_t runs;   /* 1 or 2 */
    int64_t offset[2], head_stride;
    double theta;
    bool inverse, split;
    hr_rope_scaling scaling; /* rope_table */
} hr_rope_attr;

/* Rows of a split table of T positions. */
static inline int64_t hr_rope_split_rows(int64_t T)
{
    return HR_ROPE_NEAR + (T + HR_ROPE_NEAR - 1) / HR_ROPE_NEAR;
}

hr_run_fn hr_rope_run;
hr_run_fn hr_rope_table_run;

#endif
