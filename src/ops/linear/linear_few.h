/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_few.h - products of a few rows, bound by the memory bandwidth of the weights.
 *
 * Generating a token reads every weight once, so the kernel must never wait for memory: it
 * multiplies several panels at once to hide latency, computes no missing rows, reads x in place,
 * and prefetches. Weights are used in their stored layout. Without a pair instruction, the two
 * halves of a bf16 pair are two steps of the sum. For AMX, whose tiles are slow for few rows,
 * vector code reproduces a tile: the even and the odd products of 16 words are two sums from zero
 * that are then added. So each sum, and each bit, equals that of the product of many rows.
 *
 * A transposed weight is transposed in blocks that stay in L2. A kernel file includes this after it
 * has defined what linear_template.h needs, FEW_ROWS (most rows) and FEW_SUMS (registers for
 * sums). */
#ifndef HR_OPS_LINEAR_LINEAR_FEW_H
#define HR_OPS_LINEAR_LINEAR_FEW_H

#include "ops/linear/linear_template.h"

enum {
    FEW_COLUMNS = 128, /* columns with one epilogue; of a transposed weight, transposed together */
    FEW_AHEAD = 24,    /* prefetch distance in lines of a panel */
    FEW_STEP = 16,     /* words that an AMX tile takes at once */
    LINE_VECTORS = LINE / VEC_LANES
};

typedef uint32_t few_lanes __attribute__((vector_size(VEC_LANES * 4)));

/* Words of the reduction of adjacent panels. */
typedef struct {
    const char *a; /* first word of row 0 */
    int64_t row_bytes, rows;
    const uint32_t *b;
    int64_t panel_step, words;
    bool half;  /* the last word has only its first element */
    bool fresh; /* start from zero instead of the values in sums */
} few_block;

/* Panels to multiply with this many rows at once. */
ALWAYS_INLINE int few_panels(words_kind kind, int rows)
{
    const int sums = kind == WORDS_STEPS ? FEW_SUMS / 2 : FEW_SUMS;
    const int panels = sums / LINE_VECTORS / rows;
    return panels < 4 ? panels : 4;
}

/* Broadcasts word `k` of a row, or its lower half. Rows may start at any address. */
ALWAYS_INLINE few_lanes spread_word(words_kind kind, const char *row, int64_t k, bool half)
{
    uint32_t word = 0;
    if (kind == WORDS_HALVES) {
        uint16_t value;
        memcpy(&value, row + k * 2, sizeof value);
        return (few_lanes)vec_set_f16(value);
    }
    if (half) {
        uint16_t low;
        memcpy(&low, row + k * 4, sizeof low);
        word = low;
    } else memcpy(&word, row + k * 4, sizeof word);
    return (few_lanes)vec_bits_set(word);
}

ALWAYS_INLINE vec multiply_halves(vec sum, few_lanes a, few_lanes b, bool upper)
{
    a = upper ? a & 0xffff0000u : a << 16;
    b = upper ? b & 0xffff0000u : b << 16;
    return vec_fma((vec)a, (vec)b, sum);
}

/* sum += a b, both halves; with WORDS_STEPS sum[0] takes the lower and sum[1] the upper half. */
ALWAYS_INLINE void few_multiply(words_kind kind, vec *sum, few_lanes a, few_lanes b, bool half)
{
    switch (kind) {
    case WORDS_F32:
    case WORDS_HALVES: *sum = vec_fma((vec)a, (vec)b, *sum); break;
    case WORDS_PAIRS:
#ifdef LINEAR_AVX512BF16
        *sum = hr_dpbf16(*sum, (vec_bits)b, (vec_bits)a);
#endif
        break;
    case WORDS_WIDENED:
    case WORDS_STEPS:
        *sum = multiply_halves(*sum, a, b, false);
        if (kind == WORDS_STEPS) sum++;
        if (!half) *sum = multiply_halves(*sum, a, b, true);
        break;
    }
}

/* Multiplies one word with a line of each panel. */
ALWAYS_INLINE void few_word(words_kind kind, int rows, int panels, vec *sum, const char *const *row,
                            const few_block *block, int64_t k, bool half)
{
    const int vectors = panels * LINE_VECTORS, chains = kind == WORDS_STEPS ? 2 : 1;
    few_lanes b[FEW_SUMS];
    UNROLL
    for (int v = 0; v < vectors; v++)
        memcpy(&b[v],
               block->b + v / LINE_VECTORS * block->panel_step + k * LINE +
                   v % LINE_VECTORS * VEC_LANES,
               sizeof *b);
    UNROLL
    for (int i = 0; i < rows; i++) {
        const few_lanes a = spread_word(kind, row[i], k, half);
        UNROLL
        for (int v = 0; v < vectors; v++)
            few_multiply(kind, sum + (i * vectors + v) * chains, a, b[v], half);
    }
}

/* Multiplies words [k, end). Each word prefetches the same panels FEW_AHEAD lines ahead or, near
 * their end, the first lines of the next panels. */
ALWAYS_INLINE void few_words(words_kind kind, int rows, int panels, vec *sum,
                             const char *const *row, const few_block *block, int64_t k, int64_t end)
{
    const int64_t step = block->panel_step, last_ahead = hr_max(0, block->words - FEW_AHEAD);
    for (; k < end; k++) {
        const uint32_t *ahead = block->b + k * LINE +
                                (k < last_ahead ? FEW_AHEAD * LINE
                                                : panels * step - last_ahead * LINE);
        UNROLL
        for (int p = 0; p < panels; p++) __builtin_prefetch(ahead + p * step);
        few_word(kind, rows, panels, sum, row, block, k, false);
    }
}

/* The same in the order of an AMX tile; a half word belongs to the last 16. */
ALWAYS_INLINE void few_steps(int rows, int panels, vec *sum, const char *const *row,
                             const few_block *block)
{
    const int count = rows * panels * LINE_VECTORS;
    const int64_t words = block->words + block->half;
    for (int64_t k = 0; k < words; k += FEW_STEP) {
        vec chain[FEW_SUMS];
        UNROLL
        for (int s = 0; s < 2 * count; s++) chain[s] = vec_set(0);
        few_words(WORDS_STEPS, rows, panels, chain, row, block, k,
                  hr_min(k + FEW_STEP, block->words));
        if (block->half && k + FEW_STEP >= words)
            few_word(WORDS_STEPS, rows, panels, chain, row, block, block->words, true);
        UNROLL
        for (int s = 0; s < count; s++)
            sum[s] = vec_add(sum[s], vec_add(chain[2 * s], chain[2 * s + 1]));
    }
}

/* sums (+)= words of `rows` rows and `panels` panels; the row stride of sums is FEW_COLUMNS.
 * Missing rows repeat the last one. */
ALWAYS_INLINE void few_tile(words_kind kind, int rows, int panels, const few_block *block,
                            float *sums)
{
    const int vectors = panels * LINE_VECTORS;
    const char *row[FEW_ROWS];
    vec sum[FEW_SUMS];
    UNROLL
    for (int i = 0; i < rows; i++)
        row[i] = block->a + hr_min(i, block->rows - 1) * block->row_bytes;
    UNROLL
    for (int s = 0; s < rows * vectors; s++) {
        const float *at = sums + s / vectors * FEW_COLUMNS + s % vectors * VEC_LANES;
        sum[s] = block->fresh ? vec_set(0) : vec_load_f32(at, VEC_LANES);
    }
    if (kind == WORDS_STEPS) {
        few_steps(rows, panels, sum, row, block);
    } else {
        few_words(kind, rows, panels, sum, row, block, 0, block->words);
        if (block->half) few_word(kind, rows, panels, sum, row, block, block->words, true);
    }
    UNROLL
    for (int s = 0; s < rows * vectors; s++)
        vec_store_f32(sums + s / vectors * FEW_COLUMNS + s % vectors * VEC_LANES, sum[s],
                      VEC_LANES);
}

/* All columns of a block, with as many panels at once as there are registers, then one by one. */
ALWAYS_INLINE void few_columns(words_kind kind, int rows, const few_block *block, int64_t columns,
                               float *sums)
{
    const int most = few_panels(kind, rows);
    few_block here = *block;
    int64_t panel = 0, panels = divide_up(columns, LINE);
    for (; panel + most <= panels; panel += most, here.b += most * here.panel_step)
        few_tile(kind, rows, most, &here, sums + panel * LINE);
    for (; panel < panels; panel++, here.b += here.panel_step)
        few_tile(kind, rows, 1, &here, sums + panel * LINE);
}

/* Rows are independent, so three rows are computed as four. */
ALWAYS_INLINE void multiply_block(words_kind kind, const few_block *block, int64_t columns,
                                  float *sums)
{
    if (block->rows == 1) few_columns(kind, 1, block, columns, sums);
    else if (block->rows == 2) few_columns(kind, 2, block, columns, sums);
    else few_columns(kind, 4, block, columns, sums);
}

/* The product of up to FEW_ROWS rows. A weight that is not transposed is one block. */
ALWAYS_INLINE void multiply_few_rows(words_kind kind, const hr_linear_mm *mm)
{
    const words_kind stored = has_wide_weights(kind) ? kind : WORDS_PAIRS;
    const int64_t tokens = tokens_of(stored), words = divide_up(mm->K, tokens);
    const int64_t most = mm->transposed ? equal_blocks(words, HR_LINEAR_WORDS, LINE) : words;
    float sums[FEW_ROWS * FEW_COLUMNS] __attribute__((aligned(64)));
    for (int64_t n = mm->n_first; n < mm->n_end; n += FEW_COLUMNS) {
        const int64_t columns = hr_min(FEW_COLUMNS, mm->n_end - n);
        const linear_tile tile = { 0, mm->rows, n, columns, sums, FEW_COLUMNS };
        if (mm->before) take_sums(mm, &tile, sums);
        for (int64_t word = 0; word < words; word += most) {
            linear_block block = { .word_first = word,
                                   .words = hr_min(most, words - word),
                                   .n_first = n,
                                   .n_end = n + columns };
            place_block(stored, mm, &block);
            const bool half = (word + block.words) * tokens > mm->K;
            const few_block few = { .a = element(stored, mm->a, word * tokens),
                                    .row_bytes = mm->K * element_bytes(stored),
                                    .rows = mm->rows,
                                    .b = block.panels,
                                    .panel_step = block.panel_step,
                                    .words = block.words - half,
                                    .half = half,
                                    .fresh = word == 0 && !mm->before };
            multiply_block(kind, &few, columns, sums);
        }
        finish_tile(dtype_of(stored), mm, &tile);
    }
}

ALWAYS_INLINE void multiply_rows(words_kind kind, const hr_linear_mm *mm)
{
    if (mm->rows <= FEW_ROWS) multiply_few_rows(kind, mm);
    else multiply(kind, mm);
}

#endif
