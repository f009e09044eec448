/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_kernels.h - the share of a matrix product that one thread computes, per
 * instruction set.
 *
 * Two kernels: `mm` serves forward and the gradient of the input, `dw` the gradient of the weight.
 * linear_run.c splits the work over threads and lays out their scratch; a kernel chooses its own
 * cache blocking. */
#ifndef HR_OPS_LINEAR_LINEAR_KERNELS_H
#define HR_OPS_LINEAR_LINEAR_KERNELS_H

#include "ops/linear/linear_scratch.h"

/* out = epilogue(a B): B [K, N] is W, or with `transposed` the transpose of W, [N, K].
 *
 *     forward      z = a B + bias;  pre = z;  out = act(z) + residual
 *     transposed   out = act'(aux) * (a B + residual)
 *
 * Rows of a have K elements, rows of out, pre, residual and aux N; all have the dtype of
 * activations. */
typedef struct {
    const void *a, *w;
    int64_t rows, K, N;     /* rows of this thread: a, out, pre, residual, aux start there */
    int64_t n_first, n_end; /* columns of this thread: multiples of 32, or to N */
    bool transposed;
    hr_act act;
    const float *bias; /* [N]; may be null, as may pre, residual and aux */
    const void *residual, *aux;
    void *out, *pre; /* out may be residual or aux */
    /* [rows, N] fp32 sums that the product continues, and where it leaves them instead of out.
     * Null: from zero, and to out. They may be one array. */
    const float *before;
    float *after;

    /* Scratch of this thread, 64-byte aligned, laid out by linear_run.c. */
    void *block; /* packed block of B: [columns / 16][words][16] words */
    float *sums; /* sums between blocks of the reduction: [rows, columns] of a block */
    void *strip; /* 32 rows of HR_LINEAR_STRIP_BYTES */
} hr_linear_mm;

/* dW[k_first..k_end, n_first..n_end] (+)= x^T dy. Writes zeros to the padding of dW: an odd last
 * row if k_end is K, and the columns behind n_end in its panel. With no rows and `clear`, writes
 * zeros. Of a strip of dW, dy and dw begin at its first column, and columns count from there. */
typedef struct {
    const void *x, *dy; /* [rows, K], [rows, N] */
    int64_t rows, K, N, T;
    int64_t position;       /* position of the first row in its sequence */
    int64_t k_first, k_end; /* k_first: multiple of tile_rows; k_end: the same, or K */
    int64_t n_first, n_end; /* n_first: multiple of 32; n_end: the same, or the last */
    bool clear;             /* start from zero instead of the values in dW */
    float *dw;              /* in the layout of W */
    float *db;              /* [N]; null: not requested. Only kernels with adds_db accept it */
    bool clear_db;

    /* Scratch of this thread, 64-byte aligned, laid out by linear_run.c. */
    void *x_block;  /* up to 516 columns of HR_LINEAR_WORDS words, and one cache line per strip */
    void *dy_block; /* up to 512 columns of HR_LINEAR_WORDS words, and one cache line per panel */
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

/* Kernels for one dtype of activations. */
typedef struct {
    hr_linear_mm_fn *mm;
    hr_linear_dw_fn *dw;
    hr_linear_db_fn *db;
    int64_t tile_rows; /* rows of a tile; even; at most 32; work is split at multiples of it */
    bool adds_db;      /* dw also computes db, if the first position is a multiple of 64 */
} hr_linear_typed;

typedef struct {
    hr_linear_typed of[HR_ACTIVATIONS];
} hr_linear_kernels;

/* Fills the table for a CPU feature mask (base/cpu.h). Any thread. */
void hr_linear_kernels_fill(hr_linear_kernels *kernels, uint32_t cpu_mask);

/* Tokens in the next group of at most `group` that stays within its sequence; moves *row and
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

hr_linear_mm_fn hr_linear_mm_f32_ref, hr_linear_mm_bf16_ref, hr_linear_mm_f16_ref;
hr_linear_dw_fn hr_linear_dw_f32_ref, hr_linear_dw_bf16_ref, hr_linear_dw_f16_ref;
hr_linear_db_fn hr_linear_db_f32_ref, hr_linear_db_bf16_ref, hr_linear_db_f16_ref;

hr_linear_mm_fn hr_linear_mm_f32_avx2, hr_linear_mm_bf16_avx2, hr_linear_mm_f16_avx2;
hr_linear_dw_fn hr_linear_dw_f32_avx2, hr_linear_dw_bf16_avx2, hr_linear_dw_f16_avx2;
hr_linear_db_fn hr_linear_db_f32_avx2, hr_linear_db_bf16_avx2, hr_linear_db_f16_avx2;

hr_linear_mm_fn hr_linear_mm_f32_avx512, hr_linear_mm_bf16_avx512, hr_linear_mm_f16_avx512;
hr_linear_dw_fn hr_linear_dw_f32_avx512, hr_linear_dw_bf16_avx512, hr_linear_dw_f16_avx512;
hr_linear_db_fn hr_linear_db_f32_avx512, hr_linear_db_bf16_avx512, hr_linear_db_f16_avx512;

hr_linear_mm_fn hr_linear_mm_bf16_avx512bf16;
hr_linear_dw_fn hr_linear_dw_bf16_avx512bf16;

hr_linear_mm_fn hr_linear_mm_bf16_amx;
hr_linear_dw_fn hr_linear_dw_bf16_amx;

#endif
