/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_scratch.h - block sizes of the product kernels, and the scratch of one thread:
 * one function gives both its size and its layout, for all instruction sets. */
#ifndef HR_OPS_LINEAR_SCRATCH_H
#define HR_OPS_LINEAR_SCRATCH_H

#include "ops/linear/linear.h"

/* A *word* is the part of the reduction that one lane of a multiply-add takes: one fp32, or a pair
 * of bf16. In units of words PANEL and PANEL_PAIR are the same layout: [columns /
 * 16][words][16]. */
enum {
    HR_LINEAR_WORDS = 256,        /* words of the reduction per block: 1 KiB of a row */
    HR_LINEAR_COLUMNS = 512,      /* columns per packed block: 512 KiB stay in L2 */
    HR_LINEAR_ROWS = 516,         /* rows that use a packed block: 43 strips of 12 */
    HR_LINEAR_STRIP_BYTES = 1088, /* row stride of a copied strip: not a multiple of 4 KiB */
    HR_LINEAR_TILE_COLUMNS = 32,  /* work is split at multiples of it */
    HR_LINEAR_ALIGN = 64
};

typedef struct {
    int64_t sums, strip, bytes; /* offsets; the block of B is at 0 */
} hr_linear_mm_layout;

static inline hr_linear_mm_layout hr_linear_lay_out_mm(int64_t rows, int64_t K, int64_t N)
{
    const int64_t words = hr_min(HR_LINEAR_WORDS, hr_round_up(K, HR_PANEL_WIDTH));
    const int64_t columns = hr_min(HR_LINEAR_COLUMNS, hr_round_up(N, HR_LINEAR_TILE_COLUMNS));
    /* a multiple of every strip height */
    const int64_t sum_rows = hr_min(HR_LINEAR_ROWS, hr_round_up(rows, 96));
    hr_linear_mm_layout layout;
    layout.sums = words * columns * 4;
    layout.strip = layout.sums + (K > HR_LINEAR_WORDS ? sum_rows * columns * 4 : 0);
    layout.bytes = layout.strip + 32 * HR_LINEAR_STRIP_BYTES;
    return layout;
}

typedef struct {
    int64_t dy_block, bytes; /* offset; the block of x is at 0 */
} hr_linear_dw_layout;

static inline hr_linear_dw_layout hr_linear_lay_out_dw(int64_t K, int64_t N)
{
    const int64_t most = HR_LINEAR_ROWS + HR_LINEAR_TILE_COLUMNS;
    const int64_t x_columns = hr_min(most, hr_round_up(K, HR_LINEAR_TILE_COLUMNS) +
                                               HR_LINEAR_TILE_COLUMNS);
    const int64_t panels = hr_min(HR_LINEAR_COLUMNS, hr_round_up(N, HR_LINEAR_TILE_COLUMNS)) /
                           HR_PANEL_WIDTH;
    hr_linear_dw_layout layout;
    layout.dy_block = x_columns * HR_LINEAR_WORDS * 4;
    layout.bytes = layout.dy_block + panels * (HR_LINEAR_WORDS + 1) * HR_LINEAR_ALIGN;
    return layout;
}

#endif
