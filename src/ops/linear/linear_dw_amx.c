/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_dw_amx.c - dW (+)= x^T dy of bf16 on AMX tiles.
 *
 * dW of 512 x 512 over 4,096 tokens that are not in L2 takes 1.2 ms: tiles alone 0.57, stored sums
 * 0.08, packing 0.4 (a core reads 25 GB/s there, so at least 0.25); the rest is interference
 * between these.
 *
 * Tried without gain: prefetching the next block's rows during tile products, every line to every
 * eighth (it costs as much as it saves, because B from L2 uses the same miss buffers); interleaving
 * stores and loads of sums tile by tile; blocks of 256 or 352 columns; packing 256 or 384 tokens at
 * once; prefetching rows 8 to 64 ahead during packing (x arrives at 12, dy at 14 to 17 GB/s from
 * memory; a core reads 16). */
#include "ops/linear/linear_tiles.h"

enum {
    DW_TOKENS = 32,   /* tokens per step */
    DW_STEPS = 16,    /* steps packed at once: 512 columns of 512 tokens of x and of dy are 1 MiB */
    DW_STRETCH = 128, /* columns of x that are transposed together */
    DW_PANEL = DW_STEPS * TILE_WORDS +
               LINE /* stride of 16 packed columns; the extra line avoids cache conflicts */
};

/* Loads 32 columns of a row, with zeros for missing columns or rows. `whole`, a constant: nothing
 * is missing. */
ALWAYS_INLINE __m512i load_columns(bool whole, const hr_bf16 *row, bool there, int64_t columns)
{
    if (whole) return _mm512_loadu_si512(row);
    const __mmask32 mask = there ? (__mmask32)(UINT32_MAX >> (2 * LINE - columns)) : 0;
    return _mm512_maskz_loadu_epi16(mask, row);
}

/* Sums of 32 columns of dy: of the even columns, then of the odd columns. */
typedef struct {
    __m512 even, odd;
} pair_sums;

ALWAYS_INLINE pair_sums add_row(pair_sums sums, __m512i row)
{
    const __m512i odd = _mm512_and_si512(row, _mm512_set1_epi32((int)0xffff0000u));
    return (pair_sums){ _mm512_add_ps(sums.even, (__m512)_mm512_slli_epi32(row, 16)),
                        _mm512_add_ps(sums.odd, (__m512)odd) };
}

/* Packs two tiles of B: 16 and 16 columns of up to 32 tokens, in pairs, padded with zeros. Adds
 * each token to `summed` unless it is null. */
ALWAYS_INLINE void pack_pairs(bool whole, const hr_bf16 *from, int64_t row_elements, int64_t tokens,
                              int64_t columns, uint32_t *left, float *summed)
{
    uint32_t *right = left + DW_PANEL;
    const __m512i halves = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    pair_sums sums = { _mm512_setzero_ps(), _mm512_setzero_ps() };
    if (summed) sums = (pair_sums){ _mm512_load_ps(summed), _mm512_load_ps(summed + LINE) };
    for (int64_t token = 0; token < DW_TOKENS; token += 2, left += LINE, right += LINE) {
        const hr_bf16 *row = from + token * row_elements;
        const __m512i even = load_columns(whole, row, token < tokens, columns);
        const __m512i odd = load_columns(whole, row + row_elements, token + 1 < tokens, columns);
        if (summed) sums = add_row(add_row(sums, even), odd);
        const __m512i low = _mm512_permutexvar_epi64(halves, even);
        const __m512i high = _mm512_permutexvar_epi64(halves, odd);
        _mm512_store_si512(left, _mm512_unpacklo_epi16(low, high));
        _mm512_store_si512(right, _mm512_unpackhi_epi16(low, high));
    }
    if (!summed) return;
    _mm512_store_ps(summed, sums.even);
    _mm512_store_ps(summed + LINE, sums.odd);
}

/* Transposes eight rows of 32 columns: each quarter of a register becomes an 8 x 8 transpose. */
ALWAYS_INLINE void transpose_quarters(const __m512i row[8], __m512i to[8])
{
    __m512i pairs[8], fours[8];
    UNROLL
    for (int i = 0; i < 8; i += 2) {
        pairs[i] = _mm512_unpacklo_epi16(row[i], row[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_epi16(row[i], row[i + 1]);
    }
    UNROLL
    for (int i = 0; i < 8; i += 4) {
        fours[i] = _mm512_unpacklo_epi32(pairs[i], pairs[i + 2]);
        fours[i + 1] = _mm512_unpackhi_epi32(pairs[i], pairs[i + 2]);
        fours[i + 2] = _mm512_unpacklo_epi32(pairs[i + 1], pairs[i + 3]);
        fours[i + 3] = _mm512_unpackhi_epi32(pairs[i + 1], pairs[i + 3]);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        to[2 * i] = _mm512_unpacklo_epi64(fours[i], fours[4 + i]);
        to[2 * i + 1] = _mm512_unpackhi_epi64(fours[i], fours[4 + i]);
    }
}

/* Packs tiles of A: up to 128 columns of up to 32 tokens, transposed, two tiles per 32 columns. It
 * reads eight rows together, one stretch at a time, so that the hardware prefetcher recognises the
 * streams and the rows fit in L1. Quarters of four such groups of eight rows form a line. */
ALWAYS_INLINE void pack_columns(bool whole, const hr_bf16 *from, int64_t row_elements,
                                int64_t tokens, int64_t columns, uint32_t *tiles)
{
    __m512i eights[4][DW_STRETCH / 4];
    const int64_t eight_quarters = DW_STRETCH;
    for (int64_t token = 0; token < DW_TOKENS; token += 8, from += 8 * row_elements)
        for (int64_t column = 0; column < columns; column += 2 * LINE) {
            __m512i row[8];
            UNROLL
            for (int i = 0; i < 8; i++)
                row[i] = load_columns(whole, from + i * row_elements + column, token + i < tokens,
                                      hr_min(2 * LINE, columns - column));
            transpose_quarters(row, eights[token / 8] + column / 4);
        }
    for (int64_t column = 0; column < columns; column += 2 * LINE, tiles += 2 * DW_PANEL) {
        uint32_t *line = tiles;
        for (int64_t i = 0; i < 2 * LINE; i++, line += LINE) {
            const __m128i *at = (const __m128i *)(eights[0] + column / 4 + i % 8) + i / 8;
            __m512i quarters = _mm512_castsi128_si512(*at);
            quarters = _mm512_mask_broadcast_i32x4(quarters, 0x00f0, at[eight_quarters]);
            quarters = _mm512_mask_broadcast_i32x4(quarters, 0x0f00, at[2 * eight_quarters]);
            quarters = _mm512_mask_broadcast_i32x4(quarters, 0xf000, at[3 * eight_quarters]);
            _mm512_store_si512(line, quarters);
        }
    }
}

/* Packs one group of tokens. A short group must not be read past its end. */
static void pack_x(const hr_bf16 *from, int64_t row_elements, int64_t tokens, int64_t columns,
                   int64_t step, uint32_t *to)
{
    for (int64_t column = 0; column < columns; column += DW_STRETCH) {
        uint32_t *tiles = to + column / LINE * DW_PANEL + 2 * step * TILE_WORDS;
        const int64_t here = hr_min(DW_STRETCH, columns - column);
        if (tokens == DW_TOKENS && here % (2 * LINE) == 0)
            pack_columns(true, from + column, row_elements, tokens, here, tiles);
        else pack_columns(false, from + column, row_elements, tokens, here, tiles);
    }
}

static void pack_dy(const hr_bf16 *from, int64_t row_elements, int64_t tokens, int64_t columns,
                    int64_t step, uint32_t *to, float *sums)
{
    for (int64_t column = 0; column < columns; column += 2 * LINE) {
        uint32_t *left = to + column / LINE * DW_PANEL + step * TILE_WORDS;
        const int64_t here = hr_min(2 * LINE, columns - column);
        const bool whole = tokens == DW_TOKENS && here == 2 * LINE;
        if (whole && sums) pack_pairs(true, from + column, row_elements, tokens, here, left, sums);
        else if (whole) pack_pairs(true, from + column, row_elements, tokens, here, left, NULL);
        else pack_pairs(false, from + column, row_elements, tokens, here, left, sums);
        if (sums) sums += 2 * LINE;
    }
}

/* Sums over up to 64 tokens of a block's columns, in the order of add_row. */
typedef struct {
    _Alignas(64) float sums[HR_LINEAR_COLUMNS];
    float *db; /* db of the first of these columns; null: not requested */
} pending_db;

static void flush_db(pending_db *pending, int64_t columns)
{
    for (int64_t j = 0; j < columns; j += 2 * LINE) {
        float line[2 * LINE];
        join_pairs(pending->sums + j, pending->sums + j + LINE, line);
        for (int64_t i = 0; i < hr_min(2 * LINE, columns - j); i++) pending->db[j + i] += line[i];
    }
    memset(pending->sums, 0, sizeof pending->sums);
}

/* Packs columns [first, end) of up to DW_STEPS groups of tokens, moves the cursor past them, and
 * returns the number of groups. x becomes tiles of A, per 32 columns two tiles a step. */
static int64_t pack_x_groups(const hr_linear_dw *dw, int64_t first, int64_t end,
                             linear_cursor *cursor)
{
    int64_t step = 0;
    for (; step < DW_STEPS && cursor->row < dw->rows; step++) {
        const hr_bf16 *row = (const hr_bf16 *)dw->x + cursor->row * dw->K;
        const int64_t tokens = hr_linear_next_group(DW_TOKENS, dw->rows, dw->T, &cursor->row,
                                                    &cursor->position);
        pack_x(row + first, dw->K, tokens, end - first, step, dw->x_block);
    }
    return step;
}

/* The same for dy: tiles of B, panel by panel. */
static int64_t pack_dy_groups(const hr_linear_dw *dw, int64_t first, int64_t end,
                              linear_cursor *cursor, pending_db *pending)
{
    float *sums = pending->db ? pending->sums : NULL;
    int64_t step = 0;
    for (; step < DW_STEPS && cursor->row < dw->rows; step++) {
        const hr_bf16 *row = (const hr_bf16 *)dw->dy + cursor->row * dw->N;
        const int64_t tokens = hr_linear_next_group(DW_TOKENS, dw->rows, dw->T, &cursor->row,
                                                    &cursor->position);
        pack_dy(row + first, dw->N, tokens, end - first, step, dw->dy_block, sums);
        if (sums && (cursor->position % DB_TOKENS == 0 || cursor->row == dw->rows))
            flush_db(pending, end - first);
    }
    return step;
}

/* dW interleaves two rows in 32 floats; tiles need them separate. Between the first and the last
 * block of tokens the part of dW under a tile holds separate rows. split_rows and join_rows convert
 * it in place. */
static void split_rows(float *lines, int64_t rows)
{
    for (int64_t k = 0; k < rows; k += 2, lines += 2 * LINE)
        split_pairs(lines, lines, lines + LINE);
}

/* Also clears the padding, which NaN in x or dy turns into NaN. */
static void join_rows(float *lines, int64_t rows, int64_t columns)
{
    for (int64_t k = 0; k < rows; k += 2, lines += 2 * LINE) {
        if (k + 1 == rows) memset(lines + LINE, 0, LINE * sizeof *lines);
        for (int64_t j = columns; j < LINE; j++) lines[j] = lines[LINE + j] = 0;
        join_pairs(lines, lines + LINE, lines);
    }
}

/* A block of tokens: its position in the call, and its steps. */
typedef struct {
    bool first, last;
    int64_t steps;
} token_block;

/* Accumulates 32 x 32 of dW, or less at the edge. The last rows of a panel are followed by another
 * panel, so they go through a copy. */
static void accumulate_tile(const hr_linear_dw *dw, const linear_dw_tile *tile,
                            const tile_operands *operands, const token_block *tokens)
{
    const int64_t panel = hr_round_up(dw->K, 2) * LINE, panels = divide_up(tile->columns, LINE);
    const size_t bytes = (size_t)hr_round_up(tile->rows, 2) * LINE * sizeof(float);
    const bool whole = bytes == sizeof(float[2 * TILE_WORDS]);
    float *stored = dw->dw + tile->n / LINE * panel + tile->k * LINE;
    float copy[2][2 * TILE_WORDS] __attribute__((aligned(64)));
    const int64_t right = panels == 1 ? 0 : whole ? panel : 2 * TILE_WORDS;
    const tile_results results = { whole ? stored : copy[0], LINE, TILE_WORDS, right };
    const tile_results next = { stored + 2 * panel, LINE, TILE_WORDS, panel };
    const tile_operands here = *operands;
    const int64_t steps = tokens->steps;
    for (int64_t p = 0; p < panels; p++) {
        if (tokens->first && !dw->clear) split_rows(stored + p * panel, tile->rows);
        if (whole) continue;
        memset(copy[p], 0, sizeof copy[p]);
        memcpy(copy[p], stored + p * panel, bytes);
    }
    if (tokens->first && dw->clear) zero_results();
    else load_results(&results);
    for (int64_t step = 0; step < steps; step++) {
        multiply_step(&here, step);
        prefetch_results(&next, step);
    }
    store_results(&results);
    for (int64_t p = 0; p < panels; p++) {
        if (!whole) memcpy(stored + p * panel, copy[p], bytes);
        if (tokens->last)
            join_rows(stored + p * panel, tile->rows, hr_min(LINE, tile->columns - p * LINE));
    }
}

/* The token loop is inside a block of dW, which stays in L2. */
static void accumulate_tokens(const hr_linear_dw *dw, const linear_dw_tile *block)
{
    const int64_t n_end = block->n + block->columns;
    linear_cursor cursor = { 0, dw->position };
    token_block tokens = { .first = true };
    pending_db pending = { .db = dw->db && block->k == 0 ? dw->db + block->n : NULL };
    if (pending.db && dw->clear_db)
        memset(pending.db, 0, (size_t)block->columns * sizeof *pending.db);
    do {
        linear_cursor start = cursor;
        pack_x_groups(dw, block->k, block->k + block->rows, &start);
        tokens.steps = pack_dy_groups(dw, block->n, n_end, &cursor, &pending);
        tokens.last = cursor.row == dw->rows;
        for (int64_t i = 0; i < block->rows; i += STRIP_ROWS)
            for (int64_t j = 0; j < block->columns; j += TILE_COLUMNS) {
                const linear_dw_tile tile = { block->k + i, block->n + j,
                                              hr_min(STRIP_ROWS, block->rows - i),
                                              hr_min(TILE_COLUMNS, block->columns - j) };
                const tile_operands operands = {
                    .a = (const uint32_t *)dw->x_block + i / LINE * DW_PANEL,
                    .b = (const uint32_t *)dw->dy_block + j / LINE * DW_PANEL,
                    .a_row = LINE,
                    .a_low = TILE_WORDS,
                    .a_step = 2 * TILE_WORDS,
                    .b_right = tile.columns > LINE ? DW_PANEL : 0
                };
                accumulate_tile(dw, &tile, &operands, &tokens);
            }
        tokens.first = false;
    } while (!tokens.last);
}

void hr_linear_dw_bf16_amx(const hr_linear_dw *dw)
{
    if (dw->rows == 0 && !dw->clear && !(dw->db && dw->clear_db)) return;
    const int64_t rows = equal_blocks(dw->k_end - dw->k_first, GROUP_ROWS, STRIP_ROWS);
    const int64_t columns = equal_blocks(dw->n_end - dw->n_first, HR_LINEAR_COLUMNS, TILE_COLUMNS);
    hr_tile_config();
    for (int64_t k = dw->k_first; k < dw->k_end; k += rows)
        for (int64_t n = dw->n_first; n < dw->n_end; n += columns) {
            const linear_dw_tile block = { k, n, hr_min(rows, dw->k_end - k),
                                           hr_min(columns, dw->n_end - n) };
            accumulate_tokens(dw, &block);
        }
    hr_tile_release();
}
