/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_template.h - the loops around the tile kernel, shared by all variants except
 * AMX.
 *
 * Each kernel file includes it once, after it has defined TILE_ROWS and the functions below for its
 * registers. The kind of word is a compile-time constant at every call: `kind`. */
#ifndef HR_OPS_LINEAR_LINEAR_TEMPLATE_H
#define HR_OPS_LINEAR_LINEAR_TEMPLATE_H

#include <string.h>

#include "ops/linear/linear_words.h"

/* The including file defines enum { TILE_ROWS } and:
 *
 * sums [TILE_ROWS][32] (+)= words of the reduction; fresh: from zero. Word k of row i is
 * a[i * STRIP_WORDS + k] of a strip, a[k * TILE_ROWS + i] of columns; line k of panel p is
 * b[p * panel_step + k * 16].
 *     void tile_of_strip(int64_t words, const uint32_t *a, const uint32_t *b, int64_t panel_step,
 *                        bool fresh, float *sums, const linear_prefetch *ahead);
 *     void tile_of_columns(the same);
 *
 * Transposes 16 lines of 16 words; only `lines` (1 .. 16) exist, the others are zero.
 *     void transpose_words(const uint32_t *from, int64_t lines, uint32_t *to);
 * Transposes the 16 x 16 bf16 in eight lines of 16 pairs, to pairs again.
 *     void transpose_pairs(const uint32_t *from, int64_t lines, uint32_t *to);
 * Writes `width` words (16 or TILE_ROWS) of a packed line: elements of row `even`, and in pairs
 * those of `odd` in the upper halves (null: zeros). Only `columns` exist.
 *     void pack_line(words_kind kind, const void *even, const void *odd, int64_t columns,
 *                    int64_t width, uint32_t *to);
 * Splits a line of PANEL_PAIR into two rows of 16 sums, and back.
 *     void split_pairs(const float *line, float *even, float *odd);
 *     void join_pairs(const float *even, const float *odd, float *line); */

enum {
    TILE_COLUMNS = 32,
    STRIP_WORDS = HR_LINEAR_STRIP_BYTES / 4,
    BLOCK_STRIPS = HR_LINEAR_ROWS / TILE_ROWS,
    LINE = HR_PANEL_WIDTH
};

ALWAYS_INLINE hr_dtype dtype_of(words_kind kind)
{
    return kind == WORDS_F32 ? HR_F32 : kind == WORDS_HALVES ? HR_F16 : HR_BF16;
}

ALWAYS_INLINE bool has_wide_weights(words_kind kind)
{
    return kind == WORDS_F32 || kind == WORDS_HALVES;
}

ALWAYS_INLINE int64_t tokens_of(words_kind kind) /* elements of the reduction in a word */
{
    return kind == WORDS_PAIRS ? 2 : 1;
}

ALWAYS_INLINE int64_t element_bytes(words_kind kind) /* of activations */
{
    return kind == WORDS_F32 ? 4 : 2;
}

ALWAYS_INLINE const void *element(words_kind kind, const void *array, int64_t index)
{
    return (const char *)array + index * element_bytes(kind);
}

ALWAYS_INLINE int64_t divide_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit;
}

/* Size of equal blocks of at most `most`, rounded up to whole units. */
ALWAYS_INLINE int64_t equal_blocks(int64_t total, int64_t most, int64_t unit)
{
    if (total <= most) return hr_round_up(total, unit);
    return hr_round_up(divide_up(total, divide_up(total, most)), unit);
}

/* ---- out = epilogue(a B) ---- */

/* Part of the product: a block of B, and the address of its panels. */
typedef struct {
    int64_t word_first, words;
    int64_t n_first, n_end;
    const uint32_t *panels;
    int64_t panel_step;
    bool first, last; /* first or last block of the reduction */
} linear_block;

ALWAYS_INLINE void widen_lines(const uint32_t *from, int64_t lines, uint32_t *to)
{
    for (int64_t line = 0; line < lines; line++, from += LINE, to += 2 * LINE)
        for (int64_t j = 0; j < LINE; j++) {
            to[j] = from[j] << 16;
            to[LINE + j] = from[j] & 0xffff0000u;
        }
}

/* Packs words of B from bf16 pairs to fp32. */
static void pack_widened(const hr_linear_mm *mm, const linear_block *block, uint32_t *to)
{
    const int64_t pairs = divide_up(mm->K, 2), pair_first = block->word_first / 2;
    const int64_t count = hr_min(divide_up(block->words, 2), pairs - pair_first);
    const uint32_t *from = (const uint32_t *)mm->w;
    for (int64_t n = block->n_first; n < block->n_end; n += LINE, to += block->panel_step)
        widen_lines(from + (n / LINE * pairs + pair_first) * LINE, count, to);
}

/* Packs B = W^T from W, which is [N, K] here: 16 columns of W become 16 lines of B. It reads panels
 * of W sequentially and writes whole lines. */
ALWAYS_INLINE void pack_transposed(words_kind kind, const hr_linear_mm *mm,
                                   const linear_block *block, uint32_t *to)
{
    const int64_t per_line = has_wide_weights(kind) ? 1 : 2; /* rows of W in a stored line */
    const int64_t step = LINE / tokens_of(kind);             /* words of B from 16 columns of W */
    const int64_t lines = divide_up(mm->N, per_line);
    for (int64_t word = 0; word < block->words; word += step) {
        const int64_t panel = (block->word_first + word) / step;
        const uint32_t *from = (const uint32_t *)mm->w + panel * lines * LINE;
        for (int64_t n = block->n_first; n < block->n_end; n += LINE) {
            const int64_t line = n / per_line;
            uint32_t *piece = to + (n - block->n_first) / LINE * block->panel_step + word * LINE;
            uint32_t pairs[8 * LINE];
            if (has_wide_weights(kind))
                transpose_words(from + line * LINE, hr_min(LINE, lines - line), piece);
            else
                transpose_pairs(from + line * LINE, hr_min(LINE / 2, lines - line),
                                kind == WORDS_PAIRS ? piece : pairs);
            if (kind == WORDS_WIDENED) widen_lines(pairs, 8, piece);
        }
    }
}

ALWAYS_INLINE void place_block(words_kind kind, const hr_linear_mm *mm, linear_block *block)
{
    if (!mm->transposed && kind != WORDS_WIDENED) {
        const int64_t words = divide_up(mm->K, tokens_of(kind));
        block->panel_step = words * LINE;
        block->panels = (const uint32_t *)mm->w + block->n_first / LINE * block->panel_step +
                        block->word_first * LINE;
        return;
    }
    block->panel_step = hr_round_up(block->words, LINE) * LINE;
    block->panels = mm->block;
    if (mm->transposed) pack_transposed(kind, mm, block, mm->block);
    else pack_widened(mm, block, mm->block);
}

/* Copies a block's part of TILE_ROWS rows with a fixed stride. Their stride in memory is often a
 * multiple of 4 KiB, which would map them to one set of the L1 cache. */
ALWAYS_INLINE void copy_strip(words_kind kind, const hr_linear_mm *mm, const linear_block *block,
                              int64_t row_first, int64_t rows, uint32_t *strip)
{
    const int64_t k = block->word_first * tokens_of(kind);
    const int64_t count = hr_min(block->words * tokens_of(kind), mm->K - k);
    for (int64_t i = 0; i < TILE_ROWS; i++, strip += STRIP_WORDS) {
        if (i >= rows) {
            memset(strip, 0, (size_t)block->words * 4);
            continue;
        }
        const void *from = element(kind, mm->a, (row_first + i) * mm->K + k);
        if (kind == WORDS_WIDENED) {
            for (int64_t j = 0; j < count; j++)
                strip[j] = (uint32_t)((const hr_bf16 *)from)[j] << 16;
            continue;
        }
        if (kind == WORDS_HALVES) {
            for (int64_t j = 0; j < count; j += VEC_LANES) {
                const int64_t lanes = hr_min(VEC_LANES, count - j);
                vec_store_f32((float *)strip + j, vec_load(from, j, lanes, HR_F16), lanes);
            }
            continue;
        }
        strip[block->words - 1] = 0; /* the second half of an odd last pair */
        memcpy(strip, from, (size_t)(count * element_bytes(kind)));
    }
}

/* Prefetches the operands of the tile's epilogue. */
ALWAYS_INLINE void queue_operands(words_kind kind, const hr_linear_mm *mm, int64_t row,
                                  int64_t rows, int64_t n, linear_prefetch *ahead)
{
    const void *const operands[2] = { mm->residual, mm->aux };
    const int64_t row_bytes = mm->N * element_bytes(kind);
    for (int k = 0; k < 2; k++) {
        if (!operands[k]) continue;
        const char *at = element(kind, operands[k], row * mm->N + n);
        queue_lines(ahead, at, row_bytes, rows);
        if (kind == WORDS_F32) queue_lines(ahead, at + 64, row_bytes, rows);
    }
}

/* Multiplies one strip with every column of the block. */
ALWAYS_INLINE void multiply_strip(words_kind kind, const hr_linear_mm *mm,
                                  const linear_block *block, int64_t row_first, float *sums)
{
    const int64_t rows = hr_min(TILE_ROWS, mm->rows - row_first);
    const int64_t next_rows = hr_max(0, hr_min(TILE_ROWS, mm->rows - row_first - TILE_ROWS));
    const int64_t strip_bytes = block->words * tokens_of(kind) * element_bytes(kind);
    const char *next = element(
        kind, mm->a, (row_first + TILE_ROWS) * mm->K + block->word_first * tokens_of(kind));
    const bool carried = !(block->first && block->last);
    uint32_t *strip = mm->strip;
    float here[TILE_ROWS * TILE_COLUMNS] __attribute__((aligned(64)));
    copy_strip(kind, mm, block, row_first, rows, strip);
    for (int64_t n = block->n_first; n < block->n_end; n += TILE_COLUMNS) {
        const int64_t columns = hr_min(TILE_COLUMNS, block->n_end - n);
        const uint32_t *panels = block->panels + (n - block->n_first) / LINE * block->panel_step;
        const int64_t done = (n - block->n_first) / TILE_COLUMNS * 64;
        float *tile = carried ? sums : here;
        const linear_tile place = { row_first, rows, n, columns, tile, TILE_COLUMNS };
        const bool fresh = block->first && !mm->before;
        linear_prefetch ahead = { .count = 0 };
        if (block->last) queue_operands(kind, mm, row_first, rows, n, &ahead);
        if (!block->first) queue_lines(&ahead, sums + TILE_ROWS * TILE_COLUMNS, 64, 2 * TILE_ROWS);
        if (done < strip_bytes)
            queue_lines(&ahead, next + done, mm->K * element_bytes(kind), next_rows);
        if (block->first && mm->before) take_sums(mm, &place, tile);
        /* A single last panel is read twice; the second result is not stored. */
        tile_of_strip(block->words, strip, panels, columns > LINE ? block->panel_step : 0, fresh,
                      tile, &ahead);
        if (block->last) finish_tile(dtype_of(kind), mm, &place);
        sums += TILE_ROWS * TILE_COLUMNS;
    }
}

/* `group` is the number of rows that use one block of B before the next: all if the reduction is
 * one block, otherwise as many as there is scratch for their sums. */
ALWAYS_INLINE void multiply(words_kind kind, const hr_linear_mm *mm)
{
    const int64_t words = divide_up(mm->K, tokens_of(kind));
    const int64_t block_words = equal_blocks(words, HR_LINEAR_WORDS, LINE);
    const int64_t columns = equal_blocks(mm->n_end - mm->n_first, HR_LINEAR_COLUMNS, TILE_COLUMNS);
    const int64_t strips = divide_up(mm->rows, TILE_ROWS);
    const int64_t group = words > block_words ? equal_blocks(strips, BLOCK_STRIPS, 1) : strips;
    for (int64_t n = mm->n_first; n < mm->n_end; n += columns)
        for (int64_t strip_first = 0; strip_first < strips; strip_first += group)
            for (int64_t word = 0; word < words; word += block_words) {
                linear_block block = { .word_first = word,
                                       .words = hr_min(block_words, words - word),
                                       .n_first = n,
                                       .n_end = hr_min(n + columns, mm->n_end),
                                       .first = word == 0,
                                       .last = word + block_words >= words };
                place_block(kind, mm, &block);
                const int64_t strip_end = hr_min(strip_first + group, strips);
                for (int64_t strip = strip_first; strip < strip_end; strip++)
                    multiply_strip(kind, mm, &block, strip * TILE_ROWS,
                                   mm->sums + (strip - strip_first) * TILE_ROWS * columns);
            }
}

/* ---- dW (+)= x^T dy ---- */

enum {
    /* The extra line avoids that all panels map to one set of L1. */
    PANEL_STEP = (HR_LINEAR_WORDS + 1) * LINE,
    COLUMNS_STEP = HR_LINEAR_WORDS * TILE_ROWS + LINE
};

/* Position of the packing in the tokens. */
typedef struct {
    int64_t row, position;
} linear_cursor;

/* Packs columns [first, end) of the next token rows, up to HR_LINEAR_WORDS lines, in panels of
 * `width`. Moves the cursor past them and returns the number of lines. */
ALWAYS_INLINE int64_t pack_tokens(words_kind kind, const hr_linear_dw *dw, const void *array,
                                  int64_t row_elements, int64_t first, int64_t end, int64_t width,
                                  int64_t step, linear_cursor *cursor, uint32_t *to)
{
    const int64_t row_bytes = row_elements * element_bytes(kind);
    int64_t line = 0;
    for (; line < HR_LINEAR_WORDS && cursor->row < dw->rows; line++) {
        const char *even = element(kind, array, cursor->row * row_elements + first);
        const int64_t tokens = hr_linear_next_group(tokens_of(kind), dw->rows, dw->T, &cursor->row,
                                                    &cursor->position);
        const char *odd = tokens == 2 ? even + row_bytes : NULL;
        uint32_t *piece = to + line * width;
        for (int64_t column = first; column < end; column += width, piece += step) {
            const int64_t at = (column - first) * element_bytes(kind);
            /* Rows are short: the hardware prefetcher alone would start late. */
            __builtin_prefetch(even + at + 8 * row_bytes);
            if (odd) __builtin_prefetch(odd + at + 8 * row_bytes);
            pack_line(kind, even + at, odd ? odd + at : NULL, hr_min(width, end - column), width,
                      piece);
        }
    }
    return line;
}

/* The tile of dW at (k, n): `rows` by `columns` of it are in this thread's part. */
typedef struct {
    int64_t k, n, rows, columns;
} linear_dw_tile;

ALWAYS_INLINE float *dw_line(words_kind kind, const hr_linear_dw *dw, int64_t k, int64_t n)
{
    const hr_layout layout = has_wide_weights(kind) ? HR_PANEL : HR_PANEL_PAIR;
    return dw->dw + hr_layout_index(layout, dw->K, dw->N, k, n);
}

/* PANEL_PAIR keeps two rows in a line: one iteration takes both. */
ALWAYS_INLINE void load_tile(words_kind kind, const hr_linear_dw *dw, const linear_dw_tile *tile,
                             float *sums)
{
    for (int64_t column = 0; column < tile->columns; column += LINE)
        for (int64_t i = 0; i < tile->rows; i += has_wide_weights(kind) ? 1 : 2) {
            const float *from = dw_line(kind, dw, tile->k + i, tile->n + column);
            float *row = sums + i * TILE_COLUMNS + column;
            if (has_wide_weights(kind)) memcpy(row, from, LINE * sizeof *row);
            else split_pairs(from, row, row + TILE_COLUMNS);
        }
}

ALWAYS_INLINE void store_tile(words_kind kind, const hr_linear_dw *dw, const linear_dw_tile *tile,
                              const float *sums)
{
    for (int64_t column = 0; column < tile->columns; column += LINE)
        for (int64_t i = 0; i < tile->rows; i += has_wide_weights(kind) ? 1 : 2) {
            float *to = dw_line(kind, dw, tile->k + i, tile->n + column);
            const float *row = sums + i * TILE_COLUMNS + column;
            if (has_wide_weights(kind)) memcpy(to, row, LINE * sizeof *to);
            else join_pairs(row, row + TILE_COLUMNS, to);
        }
}

/* Padding must stay zero; an infinity in x would turn it into NaN. */
ALWAYS_INLINE void clear_padding(const linear_dw_tile *tile, float *sums)
{
    for (int64_t i = 0; i < TILE_ROWS; i++)
        for (int64_t j = i < tile->rows ? tile->columns : 0; j < TILE_COLUMNS; j++)
            sums[i * TILE_COLUMNS + j] = 0;
}

/* Rows of an operand that will be packed next: `bytes` of each. Each tile prefetches a few of their
 * lines; reading all at once would run at memory speed. */
typedef struct {
    const char *row;
    int64_t row_bytes, rows, bytes, done; /* done: prefetched bytes of the first row */
} linear_next_rows;

ALWAYS_INLINE linear_next_rows upcoming_rows(words_kind kind, const hr_linear_dw *dw,
                                             const void *array, int64_t row_elements, int64_t row,
                                             int64_t first, int64_t end)
{
    const int64_t rows = hr_min(HR_LINEAR_WORDS * tokens_of(kind), dw->rows - row);
    const int64_t bytes = element_bytes(kind);
    return (linear_next_rows){ element(kind, array, row * row_elements + first),
                               row_elements * bytes, rows, (end - first) * bytes, 0 };
}

ALWAYS_INLINE int64_t lines_left(const linear_next_rows *upcoming)
{
    return upcoming->rows * divide_up(upcoming->bytes, 64);
}

ALWAYS_INLINE void queue_next_rows(linear_next_rows *upcoming, int64_t lines,
                                   linear_prefetch *ahead)
{
    for (; lines > 0 && upcoming->rows > 0; lines--) {
        queue_lines(ahead, upcoming->row + upcoming->done, 0, 1);
        upcoming->done += 64;
        if (upcoming->done < upcoming->bytes) continue;
        upcoming->done = 0;
        upcoming->row += upcoming->row_bytes;
        upcoming->rows--;
    }
}

/* Prefetches the next tile of dW. */
ALWAYS_INLINE void queue_next_tile(words_kind kind, const hr_linear_dw *dw,
                                   const linear_dw_tile *tile, linear_prefetch *ahead)
{
    const int64_t n = tile->n + TILE_COLUMNS;
    for (int64_t panel = 0; panel < 2 && n + panel * LINE < dw->n_end; panel++)
        queue_lines(ahead, dw_line(kind, dw, tile->k, n + panel * LINE), 64, TILE_ROWS);
}

/* Multiplies packed x [k .., tokens] with packed dy [tokens, n ..]. */
ALWAYS_INLINE void accumulate_block(words_kind kind, const hr_linear_dw *dw, int64_t lines,
                                    const linear_dw_tile *block, bool fresh,
                                    linear_next_rows upcoming[2])
{
    const uint32_t *x = dw->x_block;
    const int64_t strips = divide_up(block->rows, TILE_ROWS);
    const int64_t tiles = strips * divide_up(block->columns, TILE_COLUMNS);
    const int64_t x_share = divide_up(lines_left(&upcoming[0]), tiles);
    const int64_t dy_share = divide_up(lines_left(&upcoming[1]), tiles);
    float sums[TILE_ROWS * TILE_COLUMNS] __attribute__((aligned(64))) = { 0 };
    for (int64_t i = 0; i < block->rows; i += TILE_ROWS, x += COLUMNS_STEP)
        for (int64_t j = 0; j < block->columns; j += TILE_COLUMNS) {
            const linear_dw_tile tile = { block->k + i, block->n + j,
                                          hr_min(TILE_ROWS, block->rows - i),
                                          hr_min(TILE_COLUMNS, block->columns - j) };
            const uint32_t *dy = (const uint32_t *)dw->dy_block + j / LINE * PANEL_STEP;
            linear_prefetch ahead = { .count = 0 };
            queue_next_tile(kind, dw, &tile, &ahead);
            queue_next_rows(&upcoming[0], x_share, &ahead);
            queue_next_rows(&upcoming[1], dy_share, &ahead);
            if (!fresh) load_tile(kind, dw, &tile, sums);
            tile_of_columns(lines, x, dy, tile.columns > LINE ? PANEL_STEP : 0, fresh, sums,
                            &ahead);
            if (tile.rows < TILE_ROWS || tile.columns < TILE_COLUMNS) clear_padding(&tile, sums);
            store_tile(kind, dw, &tile, sums);
        }
}

/* Multiplies every row of x with a packed block of dy, and prefetches the next rows of the
 * operands. */
ALWAYS_INLINE void accumulate_rows(words_kind kind, const hr_linear_dw *dw, int64_t lines,
                                   linear_cursor start, int64_t row_next, int64_t n, int64_t n_end,
                                   bool fresh)
{
    const int64_t rows = equal_blocks(dw->k_end - dw->k_first, HR_LINEAR_ROWS, TILE_ROWS);
    for (int64_t k = dw->k_first; k < dw->k_end; k += rows) {
        const int64_t k_end = hr_min(k + rows, dw->k_end);
        const linear_dw_tile block = { k, n, k_end - k, n_end - n };
        const bool last = k_end == dw->k_end;
        const int64_t k_next = last ? dw->k_first : k_end;
        linear_next_rows upcoming[2] = {
            upcoming_rows(kind, dw, dw->x, dw->K, last ? row_next : start.row, k_next,
                          hr_min(k_next + rows, dw->k_end)),
            upcoming_rows(kind, dw, dw->dy, dw->N, last ? row_next : dw->rows, n, n_end)
        };
        linear_cursor cursor = start;
        pack_tokens(kind, dw, dw->x, dw->K, k, k_end, TILE_ROWS, COLUMNS_STEP, &cursor,
                    dw->x_block);
        accumulate_block(kind, dw, lines, &block, fresh, upcoming);
    }
}

/* The token loop is inside a block of columns of dy: dy is packed once, x once per block. */
ALWAYS_INLINE void accumulate(words_kind kind, const hr_linear_dw *dw)
{
    if (dw->rows == 0 && !dw->clear) return;
    const int64_t columns = equal_blocks(dw->n_end - dw->n_first, HR_LINEAR_COLUMNS, TILE_COLUMNS);
    for (int64_t n = dw->n_first; n < dw->n_end; n += columns) {
        const int64_t n_end = hr_min(n + columns, dw->n_end);
        linear_cursor cursor = { 0, dw->position };
        bool fresh = dw->clear;
        do {
            const linear_cursor start = cursor;
            const int64_t lines = pack_tokens(kind, dw, dw->dy, dw->N, n, n_end, LINE, PANEL_STEP,
                                              &cursor, dw->dy_block);
            accumulate_rows(kind, dw, lines, start, cursor.row, n, n_end, fresh);
            fresh = false;
        } while (cursor.row < dw->rows);
    }
}

/* ---- db (+)= sums of dy over tokens ---- */

enum { DB_COLUMNS = 256, DB_TOKENS = 64 };

ALWAYS_INLINE void add_elements(hr_dtype dtype, const hr_linear_db *db, int64_t first, int64_t j,
                                int64_t lanes, float *block)
{
    const vec dy = vec_load(db->dy, first + j, lanes, dtype);
    vec_store_f32(block + j, vec_add(vec_load_f32(block + j, lanes), dy), lanes);
}

ALWAYS_INLINE void sum_columns(hr_dtype dtype, const hr_linear_db *db, int64_t n, int64_t columns)
{
    float block[DB_COLUMNS] = { 0 };
    int64_t position = db->position;
    for (int64_t row = 0; row < db->rows; row++) {
        int64_t j = 0;
        for (; j + VEC_LANES <= columns; j += VEC_LANES)
            add_elements(dtype, db, row * db->N + n, j, VEC_LANES, block);
        if (j < columns) add_elements(dtype, db, row * db->N + n, j, columns - j, block);
        position = position + 1 == db->T ? 0 : position + 1;
        if (position % DB_TOKENS && row + 1 < db->rows) continue;
        for (j = 0; j < columns; j++) db->db[n + j] += block[j];
        memset(block, 0, sizeof block);
    }
}

ALWAYS_INLINE void sum_rows(hr_dtype dtype, const hr_linear_db *db)
{
    if (db->clear)
        memset(db->db + db->n_first, 0, (size_t)(db->n_end - db->n_first) * sizeof *db->db);
    for (int64_t n = db->n_first; n < db->n_end; n += DB_COLUMNS) {
        const int64_t columns = hr_min(DB_COLUMNS, db->n_end - n);
        if (columns == DB_COLUMNS) sum_columns(dtype, db, n, DB_COLUMNS);
        else sum_columns(dtype, db, n, columns);
    }
}

#endif
