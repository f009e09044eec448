/* SPDX-License-Identifier: Apache-2.0 */
/* ops/row_blocks_scratch.h - blocks of 64 tokens, counted from the start of each sequence, whose
 * sums for a vector parameter are added in order: the same bits however the rows are split. */
#ifndef HR_OPS_ROW_BLOCKS_SCRATCH_H
#define HR_OPS_ROW_BLOCKS_SCRATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { HR_ROW_BLOCK_TOKENS = 64 };

/* Blocks of a sequence of T tokens. */
static inline int64_t hr_row_blocks(int64_t T)
{
    return (T + HR_ROW_BLOCK_TOKENS - 1) / HR_ROW_BLOCK_TOKENS;
}

/* The most blocks of `rows` rows. Two more than whole sequences and whole blocks need: depending on
 * the first row, a block may be split at either end, and the last block of a sequence may be
 * short. */
static inline int64_t hr_row_blocks_most(int64_t rows, int64_t T)
{
    return rows / T * hr_row_blocks(T) + hr_row_blocks(rows % T) + 2;
}

/* Block numbers run through the whole batch; each sequence starts a new block. */
static inline int64_t hr_row_block_of(int64_t row, int64_t T)
{
    return row / T * hr_row_blocks(T) + row % T / HR_ROW_BLOCK_TOKENS;
}

static inline int64_t hr_row_block_first_row(int64_t block, int64_t T)
{
    const int64_t count = hr_row_blocks(T);
    return block / count * T + block % count * HR_ROW_BLOCK_TOKENS;
}

/* sum[c] += partial[k * stride + c], k in order, for columns [first, last). */
static inline void hr_row_blocks_add(float *sum, const float *partial, int64_t blocks,
                                     int64_t stride, int64_t first, int64_t last, bool clear)
{
    if (clear) memset(sum + first, 0, (size_t)(last - first) * sizeof *sum);
    for (int64_t k = 0; k < blocks; k++)
        for (int64_t c = first; c < last; c++) sum[c] += partial[k * stride + c];
}

#endif
