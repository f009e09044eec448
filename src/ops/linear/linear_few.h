/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_few.h - products of few rows, as fast as memory gives the weights.
 *
 * A token that is generated reads every weight once, so all that counts is that memory never waits:
 * panels side by side, for as many chains as hide the latency of one; no row that is not there; x
 * as it lies; lines asked for ahead. Weights are used as they are stored, pairs of bf16 too: where
 * no instruction takes pairs, the two halves of a line are two steps of the chain. So a chain is
 * the same as in the product of many rows, and so are its bits.
 *
 * A transposed weight is turned in blocks that stay in L2. Included by a rung's file after it has
 * defined what linear_template.h asks for, FEW_ROWS, the most rows, FEW_SUMS, registers for sums,
 * and
 *     vec multiply_words(vec sum, vec_bits a, vec_bits b); */
#ifndef HR_OPS_LINEAR_LINEAR_FEW_H
#define HR_OPS_LINEAR_LINEAR_FEW_H

#include "ops/linear/linear_template.h"

enum {
    FEW_COLUMNS =
        128,        /* that share their epilogue; of a transposed weight, that are turned at once */
    FEW_AHEAD = 24, /* lines of a panel that are asked for ahead */
    LINE_VECTORS = LINE / VEC_LANES
};

typedef uint32_t few_lanes __attribute__((vector_size(VEC_LANES * 4)));

/* Words of the reduction of neighbouring panels. */
typedef struct {
    const char *a; /* first word of row 0 */
    int64_t row_bytes, rows;
    const uint32_t *b;
    int64_t panel_step, words;
    bool half;  /* of a last word only the first element is there */
    bool fresh; /* from zero, not from what is in sums */
} few_block;

/* Panels that so many rows are multiplied with at once. */
ALWAYS_INLINE int few_panels(int rows)
{
    const int panels = FEW_SUMS / LINE_VECTORS / rows;
    return panels < 4 ? panels : 4;
}

/* Word `k` of a row; of a half word, the half. Rows may begin at any address. */
ALWAYS_INLINE few_lanes spread_word(const char *row, int64_t k, bool half)
{
    uint32_t word = 0;
    if (half) {
        uint16_t low;
        memcpy(&low, row + k * 4, sizeof low);
        word = low;
    } else memcpy(&word, row + k * 4, sizeof word);
    return (few_lanes)vec_bits_set(word);
}

ALWAYS_INLINE vec few_multiply(words_kind kind, vec sum, few_lanes a, few_lanes b, bool half)
{
    if (kind != WORDS_WIDENED) return multiply_words(sum, (vec_bits)a, (vec_bits)b);
    sum = multiply_words(sum, (vec_bits)(a << 16), (vec_bits)(b << 16));
    if (half) return sum;
    return multiply_words(sum, (vec_bits)(a & 0xffff0000u), (vec_bits)(b & 0xffff0000u));
}

/* One word against a line of each panel. */
ALWAYS_INLINE void few_word(words_kind kind, int rows, int panels, vec *sum, const char *const *row,
                            const few_block *block, int64_t k, bool half)
{
    few_lanes b[FEW_SUMS];
    UNROLL
    for (int p = 0; p < panels; p++) UNROLL
    for (int v = 0; v < LINE_VECTORS; v++)
        memcpy(&b[p * LINE_VECTORS + v],
               block->b + p * block->panel_step + k * LINE + v * VEC_LANES, sizeof *b);
    UNROLL
    for (int i = 0; i < rows; i++) {
        const few_lanes a = spread_word(row[i], k, half);
        UNROLL
        for (int p = 0; p < panels * LINE_VECTORS; p++)
            sum[i * panels * LINE_VECTORS + p] = few_multiply(
                kind, sum[i * panels * LINE_VECTORS + p], a, b[p], half);
    }
}

ALWAYS_INLINE void few_ask(int panels, const uint32_t *line, int64_t panel_step)
{
    UNROLL
    for (int p = 0; p < panels; p++) __builtin_prefetch(line + p * panel_step);
}

/* sums (+)= words of `rows` rows and `panels` panels; a row of sums is FEW_COLUMNS long. Ahead of
 * the words lie those of the panels that come next. Rows that are not there are the last one. */
ALWAYS_INLINE void few_tile(words_kind kind, int rows, int panels, const few_block *block,
                            float *sums)
{
    const int vectors = panels * LINE_VECTORS;
    const int64_t words = block->words, turn = hr_max(0, words - FEW_AHEAD);
    const int64_t step = block->panel_step;
    const uint32_t *ahead = block->b + FEW_AHEAD * LINE;
    const char *row[FEW_ROWS];
    vec sum[FEW_SUMS];
    UNROLL
    for (int i = 0; i < rows; i++)
        row[i] = block->a + hr_min(i, block->rows - 1) * block->row_bytes;
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int v = 0; v < vectors; v++)
        sum[i * vectors + v] = block->fresh ? vec_set(0)
                                            : vec_load_f32(sums + i * FEW_COLUMNS + v * VEC_LANES,
                                                           VEC_LANES);
    for (int64_t k = 0; k < turn; k++, ahead += LINE) {
        few_ask(panels, ahead, step);
        few_word(kind, rows, panels, sum, row, block, k, false);
    }
    ahead = block->b + panels * step;
    for (int64_t k = turn; k < words; k++, ahead += LINE) {
        few_ask(panels, ahead, step);
        few_word(kind, rows, panels, sum, row, block, k, false);
    }
    if (block->half) few_word(kind, rows, panels, sum, row, block, words, true);
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int v = 0; v < vectors; v++)
        vec_store_f32(sums + i * FEW_COLUMNS + v * VEC_LANES, sum[i * vectors + v], VEC_LANES);
}

/* All columns of a block, as many panels at once as there are registers for, then one by one. */
ALWAYS_INLINE void few_columns(words_kind kind, int rows, const few_block *block, int64_t columns,
                               float *sums)
{
    const int most = few_panels(rows);
    few_block here = *block;
    int64_t panel = 0, panels = divide_up(columns, LINE);
    for (; panel + most <= panels; panel += most, here.b += most * here.panel_step)
        few_tile(kind, rows, most, &here, sums + panel * LINE);
    for (; panel < panels; panel++, here.b += here.panel_step)
        few_tile(kind, rows, 1, &here, sums + panel * LINE);
}

/* A row that is one of few depends on no other: three are computed as four. */
ALWAYS_INLINE void multiply_block(words_kind kind, const few_block *block, int64_t columns,
                                  float *sums)
{
    if (block->rows == 1) few_columns(kind, 1, block, columns, sums);
    else if (block->rows == 2) few_columns(kind, 2, block, columns, sums);
    else few_columns(kind, 4, block, columns, sums);
}

/* The product of up to FEW_ROWS rows. A weight that lies as it is needed is one block. */
ALWAYS_INLINE void multiply_few(words_kind kind, const hr_linear_mm *mm)
{
    const words_kind stored = kind == WORDS_F32 ? WORDS_F32 : WORDS_PAIRS;
    const int64_t tokens = tokens_of(stored), words = divide_up(mm->K, tokens);
    const int64_t most = mm->transposed ? equal_blocks(words, HR_LINEAR_WORDS, LINE) : words;
    float sums[FEW_ROWS * FEW_COLUMNS] __attribute__((aligned(64)));
    for (int64_t n = mm->n_first; n < mm->n_end; n += FEW_COLUMNS) {
        const int64_t columns = hr_min(FEW_COLUMNS, mm->n_end - n);
        for (int64_t word = 0; word < words; word += most) {
            linear_block block = { .word_first = word,
                                   .words = hr_min(most, words - word),
                                   .n_first = n,
                                   .n_end = n + columns };
            place_block(stored, mm, &block);
            const bool half = (word + block.words) * tokens > mm->K;
            const few_block few = { .a = element(stored, mm->a, word * tokens),
                                    .row_bytes = mm->K * (stored == WORDS_F32 ? 4 : 2),
                                    .rows = mm->rows,
                                    .b = block.panels,
                                    .panel_step = block.panel_step,
                                    .words = block.words - half,
                                    .half = half,
                                    .fresh = word == 0 };
            multiply_block(kind, &few, columns, sums);
        }
        const linear_tile tile = { 0, mm->rows, n, columns, sums, FEW_COLUMNS };
        finish_tile(dtype_of(stored), mm, &tile);
    }
}

ALWAYS_INLINE void multiply_rows(words_kind kind, const hr_linear_mm *mm)
{
    if (mm->rows <= FEW_ROWS) multiply_few(kind, mm);
    else multiply(kind, mm);
}

#endif
