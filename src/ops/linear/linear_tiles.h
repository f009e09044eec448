/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_tiles.h - AMX tiles of a product; a result block of 32 x 32 takes four tiles.
 *
 * A step of 32 along the reduction loads two tiles of A from L1 and two of B from L2 for four
 * products: 2 KiB of B in 64 cycles. Other traffic between L1 and L2 adds to this time instead of
 * overlapping: stored sums, packing, result lines.
 *
 * Throughput of two cores in training steps: forward 2.4, dX 2.3, dW 1.7 TFLOP/s; the ceiling with
 * operands from L2 is 4.2. The loop alone reaches 4.4 on random data, 5.4 on zeros (AMX is slower
 * when bits toggle), and 4.2 with a store every 16 steps. */
#ifndef HR_OPS_LINEAR_TILES_H
#define HR_OPS_LINEAR_TILES_H

#include <immintrin.h>
#include <string.h>

#define LINEAR_AVX512BF16
#include "ops/linear/linear_zmm.h"

#include "ops/linear/linear_template.h"
#include "ops/simd/amx.h"

enum {
    STRIP_ROWS = 32,
    TILE_WORDS = 256, /* words, or sums, of a tile: 16 rows of 16 */
    LINE_BYTES = 64,
    GROUP_ROWS = HR_LINEAR_ROWS / STRIP_ROWS * STRIP_ROWS
};

/* Tile registers: four results, two of A, two of B. */
enum { TOP_LEFT, TOP_RIGHT, LOW_LEFT, LOW_RIGHT, A_TOP, A_LOW, B_LEFT, B_RIGHT };

/* Operands of a step. */
typedef struct {
    const uint32_t *a, *b;
    int64_t a_row, a_low, a_step; /* words to the next row, the lower tile, the next step */
    /* words to the right tile; the next step of B is TILE_WORDS further */
    int64_t b_right;
} tile_operands;

/* Where the results are stored between two blocks of the reduction. */
typedef struct {
    float *at;
    int64_t row, low, right; /* floats to the next row, the lower tile, the right tile */
} tile_results;

/* B uses streaming loads, so that A stays in L1. */
ALWAYS_INLINE void multiply_step(const tile_operands *operands, int64_t step)
{
    const uint32_t *a = operands->a + step * operands->a_step;
    const uint32_t *b = operands->b + step * TILE_WORDS;
    hr_tile_load_stream(B_LEFT, b, LINE_BYTES);
    hr_tile_load(A_TOP, a, operands->a_row * 4);
    hr_tile_dpbf16(TOP_LEFT, A_TOP, B_LEFT);
    hr_tile_load_stream(B_RIGHT, b + operands->b_right, LINE_BYTES);
    hr_tile_dpbf16(TOP_RIGHT, A_TOP, B_RIGHT);
    hr_tile_load(A_LOW, a + operands->a_low, operands->a_row * 4);
    hr_tile_dpbf16(LOW_LEFT, A_LOW, B_LEFT);
    hr_tile_dpbf16(LOW_RIGHT, A_LOW, B_RIGHT);
}

ALWAYS_INLINE void zero_results(void)
{
    hr_tile_zero(TOP_LEFT);
    hr_tile_zero(TOP_RIGHT);
    hr_tile_zero(LOW_LEFT);
    hr_tile_zero(LOW_RIGHT);
}

ALWAYS_INLINE void load_results(const tile_results *results)
{
    const float *top = results->at, *low = top + results->low;
    hr_tile_load(TOP_LEFT, top, results->row * 4);
    hr_tile_load(TOP_RIGHT, top + results->right, results->row * 4);
    hr_tile_load(LOW_LEFT, low, results->row * 4);
    hr_tile_load(LOW_RIGHT, low + results->right, results->row * 4);
}

ALWAYS_INLINE void store_results(const tile_results *results)
{
    float *top = results->at, *low = top + results->low;
    hr_tile_store(TOP_LEFT, top, results->row * 4);
    hr_tile_store(TOP_RIGHT, top + results->right, results->row * 4);
    hr_tile_store(LOW_LEFT, low, results->row * 4);
    hr_tile_store(LOW_RIGHT, low + results->right, results->row * 4);
}

/* Prefetches two rows of the results that the next tile continues, so that they arrive from L2
 * during this tile. */
ALWAYS_INLINE void prefetch_results(const tile_results *next, int64_t step)
{
    for (int64_t row = 2 * step; row < 2 * step + 2; row++) {
        __builtin_prefetch(next->at + row * next->row, 1);
        __builtin_prefetch(next->at + row * next->row + next->right, 1);
    }
}

#endif
