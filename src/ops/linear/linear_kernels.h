/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_kernels.h - what one thread computes of a matrix product, on each rung.
 *
 * Two inner functions: `mm` serves forward and the gradient of the input, `dw` the gradient of the
 * weight. linear_run.c cuts the work among threads and lays out their scratch; an inner function
 * blocks for the caches as it likes. */
#ifndef HR_OPS_LINEAR_LINEAR_KERNELS_H
#define HR_OPS_LINEAR_LINEAR_KERNELS_H

#include "ops/linear/linear.h"

/* A *word* is what one lane of a multiply-add takes of the reduction: one fp32, or a pair of bf16.
 * In words PANEL and PANEL_PAIR are one layout: [columns / 16][words][16]. */
enum {
    HR_LINEAR_WORDS = 256,       /* of the reduction in a block: 1 KiB of a row */
    HR_LINEAR_COLUMNS = 512,     /* of packed words in a block: 512 KiB stay in L2 */
    HR_LINEAR_ROWS = 516,        /* that use a packed block before the next: 43 strips of 12 */
    HR_LINEAR_STRIP_BYTES = 1088 /* from row to row of a copied strip: never a multiple of 4 KiB */
};

/* out = epilogue(a B): B [K, N] is W, or with `transposed` the transpose of W, [N, K].
 *
 *     forward      z = a B + bias;  pre = z;  out = act(z) + residual
 *     transposed   out = act'(aux) o (a B + residual)
 *
 * Rows of a have K elements, rows of out, pre, residual and aux N; all of the activation's type. */
typedef struct {
    const void *a, *w;
    int64_t rows, K, N;     /* rows of this thread: a, out, pre, residual, aux start there */
    int64_t n_first, n_end; /* columns of this thread: multiples of 32, or to N */
    bool transposed;
    hr_act act;
    const float *bias; /* [N]; may be null, as may pre, residual and aux */
    const void *residual, *aux;
    void *out, *pre; /* out may be residual or aux */

    /* Scratch of this thread, 64-aligned. What it must hold: hr_linear_mm_bytes. */
    void *block; /* packed block of B: [columns / 16][words][16] words */
    float *sums; /* between blocks of the reduction: [rows, columns] of a block */
    void *strip; /* 32 rows of HR_LINEAR_STRIP_BYTES */
} hr_linear_mm;

/* dW[k_first..k_end, n_first..n_end] (+)= x^T dy. Writes zeros where the padding of dW is: an odd
 * last row when k_end is K, columns past N when n_end is N. With no rows and `clear`, zeros. */
typedef struct {
    const void *x, *dy; /* [rows, K], [rows, N] */
    int64_t rows, K, N, T;
    int64_t position;       /* of the first row in its sequence */
    int64_t k_first, k_end; /* k_first a multiple of the rung's tile_rows; k_end that, or K */
    int64_t n_first, n_end; /* n_first a multiple of 32; n_end that, or N */
    bool clear;             /* start from zero, not from what dW holds */
    float *dw;              /* whole matrix, in the layout of W */
    float *db;              /* [N]; null: not wanted. Only where the kernel can add it: adds_db */
    bool clear_db;

    /* Scratch of this thread, 64-aligned. What it must hold: hr_linear_dw_bytes. */
    void *x_block;  /* up to 516 columns of HR_LINEAR_WORDS words, and a line a strip */
    void *dy_block; /* up to 512 columns of HR_LINEAR_WORDS words, and a line a panel */
} hr_linear_dw;

/* db[n_first..n_end] (+)= sum over rows of dy. */
typedef struct {
    const void *dy; /* [rows, N] */
    int64_t rows, N, T, position;
    int64_t n_first, n_end;
    bool clear;
    float *db; /* [N] */
} hr_linear_db;

typedef void hr_linear_mm_fn(const hr_linear_mm *mm);
typedef void hr_linear_dw_fn(const hr_linear_dw *dw);
typedef void hr_linear_db_fn(const hr_linear_db *db);

/* What one activation type is computed with. */
typedef struct {
    hr_linear_mm_fn *mm;
    hr_linear_dw_fn *dw;
    hr_linear_db_fn *db;
    int64_t tile_rows; /* rows of a tile; even; at most 32: work is cut at multiples of it */
    bool adds_db;      /* dw adds db too, where the first position is a multiple of 64 */
} hr_linear_typed;

typedef struct {
    hr_linear_typed of[2]; /* [HR_F32], [HR_BF16] */
} hr_linear_kernels;

/* Fills the table for a mask of base/cpu.h. Any thread. */
void hr_linear_kernels_fill(hr_linear_kernels *kernels, uint32_t cpu_mask);

/* Tokens in the next group of at most `group` that does not leave its sequence; moves *row and
 * *position past it. Only the last group of a sequence is short. */
static inline int64_t hr_linear_next_group(int64_t group, int64_t rows, int64_t T, int64_t *row,
                                           int64_t *position)
{
    const int64_t tokens = hr_min(hr_min(group, T - *position), rows - *row);
    *row += tokens;
    *position += tokens;
    if (*position == T) *position = 0;
    return tokens;
}

hr_linear_mm_fn hr_linear_mm_f32_ref, hr_linear_mm_bf16_ref;
hr_linear_dw_fn hr_linear_dw_f32_ref, hr_linear_dw_bf16_ref;
hr_linear_db_fn hr_linear_db_f32_ref, hr_linear_db_bf16_ref;

hr_linear_mm_fn hr_linear_mm_f32_avx2, hr_linear_mm_bf16_avx2;
hr_linear_dw_fn hr_linear_dw_f32_avx2, hr_linear_dw_bf16_avx2;
hr_linear_db_fn hr_linear_db_f32_avx2, hr_linear_db_bf16_avx2;

hr_linear_mm_fn hr_linear_mm_f32_avx512, hr_linear_mm_bf16_avx512;
hr_linear_dw_fn hr_linear_dw_f32_avx512, hr_linear_dw_bf16_avx512;
hr_linear_db_fn hr_linear_db_f32_avx512, hr_linear_db_bf16_avx512;

hr_linear_mm_fn hr_linear_mm_bf16_avx512bf16;
hr_linear_dw_fn hr_linear_dw_bf16_avx512bf16;

hr_linear_mm_fn hr_linear_mm_bf16_amx;
hr_linear_dw_fn hr_linear_dw_bf16_amx;

#endif
