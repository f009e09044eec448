/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_amx.c - attention with AMX tiles: strips of 32 rows, products of 2 x 2
 * tiles of 16 x 16 sums, two tiles of a and two of b. Everything else, including the rounding of p,
 * is as in attention_avx512bf16.c. Two threads of a shared Intel Xeon with AMX, 2026-11, 4,096
 * tokens, 8 heads of 64: T = 128 forward 2.0 to 3.1 ms, backward 3.8 to 5.7.
 *
 * At T = 4,096, one thread, forward takes 41 ms: a third in exponentials, at 9 cycles for 16 of
 * them, and half in products, at a third to a half of the speed of tiles in L1: scores, p, keys and
 * values of a chunk have 116 KiB. With 64 keys at a time, which fit in L1, the products of scores
 * take about half as long, but the work per row and chunk (masks, maxima, sums of tiles loaded and
 * stored) makes the whole 23 to 27 % slower, with 128 keys 7 to 11 %.
 *
 * Products of tiles do not overlap with vector instructions: 4 of them take 64 cycles, 16 vectors
 * of exponentials 58, both in turns 121. So softmax, at 6 cycles for 16 scores beside 4 of
 * products, limits forward of heads of 64 to 40 % of the speed of tiles. A trial with transposed
 * scores, which need no maxima and sums across lanes, took 0.86 of the time of this one, packing
 * left out, and 0.74 with those products and exponentials in turns. */
#include "ops/simd/vec_avx512.h"

#include "ops/attention/attention_transpose_avx512.h"
#include "ops/attention/attention_words_bf16.h"
#include "ops/simd/amx.h"

/* Packed widths are multiples of WIDTH_STEP elements, reductions of REDUCE_STEP: the elements of a
 * tile row of a. */
enum { ROWS = 32, FEW_ROWS = 16, WIDTH_STEP = 32, REDUCE_STEP = 32, TILE = 16 };

#include "ops/attention/attention_pack.h"

/* Four tiles of sums, two of a, two of b. */
enum { SUM_00, SUM_01, SUM_10, SUM_11, A_0, A_1, B_0, B_1 };

/* Left operand of multiply(): word k of row i is at i * row + k * word; word is 1. */
typedef struct {
    const uint32_t *at;
    int64_t row, word;
} left;

/* Transposes ROWS rows, adjacent and with words `step` apart, into `room`, [ROWS][words]. */
VEC_INLINE left left_of_columns(const uint32_t *a, int64_t step, int64_t words, uint32_t *room)
{
    for (int64_t row = 0; row < ROWS; row += TILE)
        for (int64_t at = 0; at < words; at += TILE) {
            vec_bits line[TILE];
            UNROLL for (int k = 0; k < TILE; k++)
                line[k] = (vec_bits)load_floats((const float *)(a + (at + k) * step + row));
            transpose_words(line);
            UNROLL for (int i = 0; i < TILE; i++)
                store_words(room + (row + i) * words + at, line[i]);
        }
    return (left){ room, words, 1 };
}

/* c (+)= a b for `rows` rows (1, FEW_ROWS or ROWS: one tile or two) and `panels` (1 or 2) panels.
 * Word k of row i of a is a[i * a_row + k]; a_word is 1. Line k of panel j of b is b[j * b_panel +
 * k * 16]. */
VEC_INLINE void multiply(const int rows, const bool add, const int panels, const int64_t a_row,
                         const int64_t a_word, int64_t words, const uint32_t *a, const uint32_t *b,
                         int64_t b_panel, float *c, int64_t c_row)
{
    const int64_t c_stride = c_row * (int64_t)sizeof *c, line = TILE * (int64_t)sizeof *b;
    float *below = c + TILE * c_row;
    const bool two = rows > TILE;
    (void)a_word;
    if (add) {
        hr_tile_load(SUM_00, c, c_stride);
        if (two) hr_tile_load(SUM_10, below, c_stride);
        if (panels == 2) hr_tile_load(SUM_01, c + TILE, c_stride);
        if (two && panels == 2) hr_tile_load(SUM_11, below + TILE, c_stride);
    } else {
        hr_tile_zero(SUM_00);
        hr_tile_zero(SUM_01);
        hr_tile_zero(SUM_10);
        hr_tile_zero(SUM_11);
    }
    for (int64_t k = 0; k < words; k += TILE) {
        hr_tile_load(A_0, a + k, a_row * (int64_t)sizeof *a);
        if (two) hr_tile_load(A_1, a + k + TILE * a_row, a_row * (int64_t)sizeof *a);
        hr_tile_load(B_0, b + k * TILE, line);
        hr_tile_dpbf16(SUM_00, A_0, B_0);
        if (two) hr_tile_dpbf16(SUM_10, A_1, B_0);
        if (panels == 1) continue;
        hr_tile_load(B_1, b + b_panel + k * TILE, line);
        hr_tile_dpbf16(SUM_01, A_0, B_1);
        if (two) hr_tile_dpbf16(SUM_11, A_1, B_1);
    }
    hr_tile_store(SUM_00, c, c_stride);
    if (two) hr_tile_store(SUM_10, below, c_stride);
    if (panels == 2) hr_tile_store(SUM_01, c + TILE, c_stride);
    if (two && panels == 2) hr_tile_store(SUM_11, below + TILE, c_stride);
}

#include "ops/attention/attention_fwd.h"

#include "ops/attention/attention_bwd.h"

#include "ops/attention/attention_cached.h"
#include "ops/attention/attention_selected.h"

void hr_attention_fwd_bf16_amx(const hr_attention_task *task)
{
    hr_tile_config();
    forward_head(task);
    hr_tile_release();
}

void hr_attention_bwd_bf16_amx(const hr_attention_task *task)
{
    hr_tile_config();
    backward_chunk(task);
    hr_tile_release();
}

void hr_attention_cached_bf16_amx(const hr_attention_cached_task *task)
{
    hr_tile_config();
    cached_heads(task);
    hr_tile_release();
}

void hr_attention_selected_bf16_amx(const hr_attention_selected_task *task)
{
    hr_tile_config();
    selected_heads(task);
    hr_tile_release();
}

void hr_attention_scores_bf16_amx(const hr_attention_scores_task *task)
{
    hr_tile_config();
    probabilities(task);
    hr_tile_release();
}
