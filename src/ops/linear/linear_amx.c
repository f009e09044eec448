/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_amx.c - bf16 products on AMX tiles.
 *
 * Results are 32 x 32, in four tiles. A step of 32 along the reduction takes two tiles of A from L1
 * and two of B from L2 for four products: 2 KiB of B in 64 cycles. What else moves between L1 and
 * L2 comes on top of that and not beside it: sums that wait, packing, lines of results.
 *
 * Reached by two cores in steps of training: forward 2.4, dX 2.3, dW 1.7 TFLOP/s, against an
 * L2-fed ceiling of 4.2. The loop alone reaches 4.4 on numbers, 5.4 on zeros (AMX is slower where
 * bits change), 4.2 when it stores every 16 steps. dW of 512 x 512 over 4,096 tokens that are not
 * in L2 takes 1.2 ms: tiles alone 0.57, sums that wait 0.08, packing 0.4 (a core reads 25 GB/s
 * there, so 0.25 at best); the rest is what these take from each other.
 *
 * Tried for dW and not faster: asking for the next block's rows while tiles multiply, every line to
 * every eighth (as dear as the wait that it saves; B, which comes from L2, waits for the same
 * buffers); sums stored and loaded in turns, tile by tile; blocks of 256 or 352 columns; 256 or 384
 * tokens packed at once; rows asked for 8 to 64 ahead while others are packed (x comes at 12, dy at
 * 14 to 17 GB/s from memory, where a core reads 16). For forward and dX: results stored past the
 * caches; every second line of the next strip asked for (as fast), every fourth (4 to 12 %
 * slower). */
#include <immintrin.h>
#include <string.h>

#define LINEAR_AVX512BF16
#include "ops/linear/linear_zmm.h"

#include "ops/linear/linear_few.h"
#include "ops/simd/amx.h"

enum {
    STRIP_ROWS = 32,
    STEP_WORDS = 16,  /* pairs of the reduction in a step: one tile */
    TILE_WORDS = 256, /* words, or sums, of a tile: 16 rows of 16 */
    LINE_BYTES = 64,
    COMING_LINES = 2, /* of the next strip, asked for in a step */
    GROUP_ROWS = HR_LINEAR_ROWS / STRIP_ROWS * STRIP_ROWS,
    DW_TOKENS = 32,   /* of a step */
    DW_STEPS = 16,    /* packed at once: 512 columns of 512 tokens of x and of dy are 1 MiB */
    DW_STRETCH = 128, /* columns of x that are transposed together */
    DW_PANEL = DW_STEPS * TILE_WORDS + LINE /* 16 columns of them, at a distance of its own */
};

/* The tile registers: results, two of A, two of B. */
enum { TOP_LEFT, TOP_RIGHT, LOW_LEFT, LOW_RIGHT, A_TOP, A_LOW, B_LEFT, B_RIGHT };

/* Where a step finds its operands. */
typedef struct {
    const uint32_t *a, *b;
    int64_t a_row, a_low, a_step; /* words to the next row, to the lower tile, to the next step */
    int64_t b_right;              /* to the right tile; the next step of B is TILE_WORDS on */
} tile_operands;

/* Where the results are between two blocks of the reduction. */
typedef struct {
    float *at;
    int64_t row, low, right; /* floats to the next row, to the lower and to the right tile */
} tile_results;

/* B is streamed, so that A stays in L1. */
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

/* The same where there are no rows for the lower tiles: B is used once, so what the next tile of
 * columns takes of it is asked for here. */
ALWAYS_INLINE void multiply_few(const tile_operands *operands, int64_t step)
{
    const uint32_t *a = operands->a + step * operands->a_step;
    const uint32_t *b = operands->b + step * TILE_WORDS, *next = b + 2 * operands->b_right;
    for (int line = 0; line < LINE; line++) {
        __builtin_prefetch(next + line * LINE, 0, 2);
        __builtin_prefetch(next + operands->b_right + line * LINE, 0, 2);
    }
    hr_tile_load_stream(B_LEFT, b, LINE_BYTES);
    hr_tile_load(A_TOP, a, operands->a_row * 4);
    hr_tile_dpbf16(TOP_LEFT, A_TOP, B_LEFT);
    hr_tile_load_stream(B_RIGHT, b + operands->b_right, LINE_BYTES);
    hr_tile_dpbf16(TOP_RIGHT, A_TOP, B_RIGHT);
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

/* Asks for two rows of the results that the next tile goes on with: on their way from L2 while this
 * one multiplies. */
ALWAYS_INLINE void expect_results(const tile_results *next, int64_t step)
{
    for (int64_t row = 2 * step; row < 2 * step + 2; row++) {
        __builtin_prefetch(next->at + row * next->row, 1);
        __builtin_prefetch(next->at + row * next->row + next->right, 1);
    }
}

/* ---- out = epilogue(a B) ---- */

/* Results that wait for their epilogue. It runs between the steps of the next ones: the vector
 * units work while the tiles do. */
typedef struct {
    _Alignas(64) float sums[STRIP_ROWS * TILE_COLUMNS];
    linear_tile left;
} waiting_tile;

/* finish_rows for all 32 columns: a line of bf16, stored as one. */
ALWAYS_INLINE void finish_lines(bool transposed, hr_act act, const hr_linear_mm *mm,
                                const linear_tile *tile)
{
    const float *sums = tile->sums;
    for (int64_t i = 0; i < tile->rows; i++, sums += TILE_COLUMNS) {
        const int64_t index = (tile->row + i) * mm->N + tile->n;
        vec z[2];
        for (int h = 0; h < 2; h++) {
            z[h] = vec_load_f32(sums + h * LINE, LINE);
            if (!transposed && mm->bias)
                z[h] = vec_add(z[h], vec_load_f32(mm->bias + tile->n + h * LINE, LINE));
        }
        if (!transposed && mm->pre)
            _mm512_storeu_si512((hr_bf16 *)mm->pre + index, hr_to_bf16x32(z[0], z[1]));
        for (int h = 0; h < 2; h++)
            z[h] = finish_value(HR_BF16, transposed, act, mm, z[h], index + h * LINE, LINE);
        _mm512_storeu_si512((hr_bf16 *)mm->out + index, hr_to_bf16x32(z[0], z[1]));
    }
}

ALWAYS_INLINE void finish_whole_lines(const hr_linear_mm *mm, const linear_tile *tile)
{
    const hr_act act = mm->transposed && !mm->aux ? HR_ACT_NONE : mm->act;
    if (mm->transposed) {
        switch (act) {
        case HR_ACT_NONE: finish_lines(true, HR_ACT_NONE, mm, tile); break;
        case HR_ACT_RELU: finish_lines(true, HR_ACT_RELU, mm, tile); break;
        case HR_ACT_GELU: finish_lines(true, HR_ACT_GELU, mm, tile); break;
        case HR_ACT_GELU_TANH: finish_lines(true, HR_ACT_GELU_TANH, mm, tile); break;
        }
        return;
    }
    switch (act) {
    case HR_ACT_NONE: finish_lines(false, HR_ACT_NONE, mm, tile); break;
    case HR_ACT_RELU: finish_lines(false, HR_ACT_RELU, mm, tile); break;
    case HR_ACT_GELU: finish_lines(false, HR_ACT_GELU, mm, tile); break;
    case HR_ACT_GELU_TANH: finish_lines(false, HR_ACT_GELU_TANH, mm, tile); break;
    }
}

/* Asks for what the epilogue of the next tile will touch in these rows: its lines are far apart,
 * and a store that misses holds up all after it. Lines that are written come to L2 only: in L1 they
 * would take the room of A. */
ALWAYS_INLINE void expect_tile(const hr_linear_mm *mm, const linear_tile *now)
{
    for (int64_t i = 0; i < now->rows; i++) {
        const int64_t index = (now->row + i) * mm->N + now->n + TILE_COLUMNS;
        if (mm->residual) __builtin_prefetch((const hr_bf16 *)mm->residual + index, 0);
        if (mm->aux) __builtin_prefetch((const hr_bf16 *)mm->aux + index, 0);
        if (mm->pre) __builtin_prefetch((const hr_bf16 *)mm->pre + index, 0, 2);
        __builtin_prefetch((const hr_bf16 *)mm->out + index, 0, 2);
    }
}

static void finish_some(const hr_linear_mm *mm, waiting_tile *waiting, int64_t rows)
{
    linear_tile now = waiting->left;
    now.rows = hr_min(rows, now.rows);
    if (now.n + 2 * TILE_COLUMNS <= mm->n_end) expect_tile(mm, &now);
    if (now.columns == TILE_COLUMNS) finish_whole_lines(mm, &now);
    else finish_tile(HR_BF16, mm, &now);
    waiting->left.row += now.rows;
    waiting->left.rows -= now.rows;
    waiting->left.sums += now.rows * TILE_COLUMNS;
}

/* A whole number of steps: zeros after the lines of B that are there. */
static void pad_block(const hr_linear_mm *mm, linear_block *block)
{
    const int64_t lines = hr_round_up(block->words, STEP_WORDS);
    if (lines == block->words) return;
    const uint32_t *from = block->panels;
    uint32_t *to = mm->block;
    for (int64_t n = block->n_first; n < block->n_end; n += LINE) {
        if (from != to) memcpy(to, from, (size_t)block->words * LINE_BYTES);
        memset(to + block->words * LINE, 0, (size_t)(lines - block->words) * LINE_BYTES);
        from += block->panel_step;
        to += lines * LINE;
    }
    block->panels = mm->block;
    block->panel_step = lines * LINE;
    block->words = lines;
}

/* A's part of the operands. Whole rows that are one block lie one after the other and are used
 * there; else they are copied, to a distance that does not meet itself in L1, with zeros where rows
 * or the reduction end. */
static tile_operands place_strip(const hr_linear_mm *mm, const linear_block *block, int64_t row)
{
    const int64_t rows = hr_min(STRIP_ROWS, mm->rows - row), k = 2 * block->word_first;
    const hr_bf16 *from = (const hr_bf16 *)mm->a + row * mm->K + k;
    const bool in_place = rows == STRIP_ROWS && mm->K == 2 * block->words;
    const int64_t a_row = in_place ? block->words : STRIP_WORDS;
    const size_t bytes = (size_t)block->words * 4;
    const size_t there = (size_t)hr_min(2 * block->words, mm->K - k) * sizeof *from;
    char *to = mm->strip;
    for (int64_t i = 0; i < STRIP_ROWS && !in_place; i++, to += HR_LINEAR_STRIP_BYTES) {
        const size_t copied = i < rows ? there : 0;
        memcpy(to, from + (i < rows ? i : 0) * mm->K, copied);
        memset(to + copied, 0, bytes - copied);
    }
    return (tile_operands){ .a = in_place ? (const uint32_t *)from : mm->strip,
                            .a_row = a_row,
                            .a_low = a_row * STRIP_ROWS / 2,
                            .a_step = STEP_WORDS };
}

/* What the next strip takes of an array: asked for a few lines with each step, from end to end, so
 * that the hardware sees where they lead. */
typedef struct {
    const char *line;
    int64_t row_bytes, lines, done, rows; /* lines of a row, those asked for, rows that are left */
} coming_strip;

/* Columns [first, end) of rows of `width`; nothing of a null array. */
ALWAYS_INLINE coming_strip coming_after(const hr_linear_mm *mm, int64_t row, const void *array,
                                        int64_t width, int64_t first, int64_t end)
{
    const int64_t next = hr_min(row + STRIP_ROWS, mm->rows);
    if (!array) return (coming_strip){ 0 };
    return (coming_strip){ .line = (const char *)((const hr_bf16 *)array + next * width + first),
                           .row_bytes = width * (int64_t)sizeof(hr_bf16),
                           .lines = divide_up(end - first, 2 * LINE),
                           .rows = hr_min(STRIP_ROWS, mm->rows - next) };
}

ALWAYS_INLINE void expect_strip(coming_strip *next)
{
    for (int i = 0; i < COMING_LINES && next->rows > 0; i++) {
        __builtin_prefetch(next->line + next->done * LINE_BYTES, 0, 2);
        if (++next->done < next->lines) continue;
        next->done = 0;
        next->line += next->row_bytes;
        next->rows--;
    }
}

/* One strip against every column of the block. */
static void multiply_tiles(const hr_linear_mm *mm, const linear_block *block, int64_t row,
                           float *carried, waiting_tile *waiting)
{
    const int64_t steps = block->words / STEP_WORDS, share = divide_up(STRIP_ROWS, steps);
    const bool carries = !block->first || !block->last, few = mm->rows <= STRIP_ROWS / 2;
    tile_operands operands = place_strip(mm, block, row);
    coming_strip strip = coming_after(mm, row, mm->a, mm->K, 2 * block->word_first,
                                      2 * (block->word_first + block->words));
    /* Rows that the block has whole: end to end they are one stretch of memory. */
    const bool stretch = block->last && block->n_end - block->n_first == mm->N;
    coming_strip out = coming_after(mm, row, stretch ? mm->out : NULL, mm->N, 0, mm->N);
    coming_strip residual = coming_after(mm, row, stretch ? mm->residual : NULL, mm->N, 0, mm->N);
    for (int64_t n = block->n_first; n < block->n_end; n += TILE_COLUMNS) {
        const int64_t columns = hr_min(TILE_COLUMNS, block->n_end - n);
        const tile_results sums = { block->last ? waiting->sums : carried, TILE_COLUMNS,
                                    TILE_WORDS * 2, LINE };
        const tile_results before = { carried, sums.row, sums.low, sums.right };
        const tile_results next = { carried + STRIP_ROWS * TILE_COLUMNS, sums.row, sums.low,
                                    sums.right };
        operands.b = block->panels + (n - block->n_first) / LINE * block->panel_step;
        operands.b_right = columns > LINE ? block->panel_step : 0; /* a lone panel: twice */
        if (block->first) zero_results();
        else load_results(&before);
        for (int64_t step = 0; step < steps; step++) {
            if (few) multiply_few(&operands, step);
            else multiply_step(&operands, step);
            expect_strip(&strip);
            if (stretch) {
                expect_strip(&out);
                expect_strip(&residual);
            }
            if (carries) expect_results(&next, step);
            if (waiting->left.rows) finish_some(mm, waiting, share);
        }
        store_results(&sums);
        if (block->last)
            waiting->left = (linear_tile){
                row, hr_min(STRIP_ROWS, mm->rows - row), n, columns, waiting->sums, TILE_COLUMNS
            };
        carried += STRIP_ROWS * TILE_COLUMNS;
    }
}

void hr_linear_mm_bf16_amx(const hr_linear_mm *mm)
{
    if (mm->rows <= FEW_ROWS) {
        multiply_few_rows(WORDS_STEPS, mm);
        return;
    }
    const int64_t words = divide_up(mm->K, 2);
    const int64_t block_words = equal_blocks(words, HR_LINEAR_WORDS, STEP_WORDS);
    const int64_t columns = equal_blocks(mm->n_end - mm->n_first, HR_LINEAR_COLUMNS, TILE_COLUMNS);
    const bool one_block = words <= block_words;
    const int64_t group = one_block ? mm->rows : equal_blocks(mm->rows, GROUP_ROWS, STRIP_ROWS);
    waiting_tile waiting;
    waiting.left.rows = 0;
    hr_tile_config();
    for (int64_t n = mm->n_first; n < mm->n_end; n += columns)
        for (int64_t first = 0; first < mm->rows; first += group)
            for (int64_t word = 0; word < words; word += block_words) {
                linear_block block = { .word_first = word,
                                       .words = hr_min(block_words, words - word),
                                       .n_first = n,
                                       .n_end = hr_min(n + columns, mm->n_end),
                                       .first = word == 0,
                                       .last = word + block_words >= words };
                place_block(WORDS_PAIRS, mm, &block);
                pad_block(mm, &block);
                const int64_t end = hr_min(first + group, mm->rows);
                for (int64_t row = first; row < end; row += STRIP_ROWS)
                    multiply_tiles(mm, &block, row, mm->sums + (row - first) * columns, &waiting);
            }
    hr_tile_release();
    if (waiting.left.rows) finish_some(mm, &waiting, STRIP_ROWS);
}

/* ---- dW (+)= x^T dy ---- */

/* 32 columns of a row, or what of them there is; zeros of a row that is not there. `whole`, a
 * constant: all are there. */
ALWAYS_INLINE __m512i load_columns(bool whole, const hr_bf16 *row, bool there, int64_t columns)
{
    if (whole) return _mm512_loadu_si512(row);
    const __mmask32 mask = there ? (__mmask32)(UINT32_MAX >> (2 * LINE - columns)) : 0;
    return _mm512_maskz_loadu_epi16(mask, row);
}

/* Sums of 32 columns of dy: of the even ones, then of the odd ones. */
typedef struct {
    __m512 even, odd;
} pair_sums;

ALWAYS_INLINE pair_sums add_row(pair_sums sums, __m512i row)
{
    const __m512i odd = _mm512_and_si512(row, _mm512_set1_epi32((int)0xffff0000u));
    return (pair_sums){ _mm512_add_ps(sums.even, (__m512)_mm512_slli_epi32(row, 16)),
                        _mm512_add_ps(sums.odd, (__m512)odd) };
}

/* Two tiles of B: 16 and 16 columns of up to 32 tokens, in pairs; zeros where there are none. With
 * `summed` their sums go on, token by token. */
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

/* Eight rows of 32 columns: in each quarter of a register, 8 x 8 transposed. */
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

/* Tiles of A: up to 128 columns of up to 32 tokens, transposed, two tiles for 32 columns. Rows are
 * read a stretch at a time, eight together, so that the hardware sees where they lead and all of
 * them find room in L1; quarters of four such eights make a line. */
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

/* One group of tokens. Rows of a group that is short must not be touched past its end. */
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

/* Where the sums over up to 64 tokens of a block's columns wait, as add_row has them. */
typedef struct {
    _Alignas(64) float sums[HR_LINEAR_COLUMNS];
    float *db; /* of the first of these columns; null: not wanted */
} waiting_db;

static void flush_db(waiting_db *waiting, int64_t columns)
{
    for (int64_t j = 0; j < columns; j += 2 * LINE) {
        float line[2 * LINE];
        join_pairs(waiting->sums + j, waiting->sums + j + LINE, line);
        for (int64_t i = 0; i < hr_min(2 * LINE, columns - j); i++) waiting->db[j + i] += line[i];
    }
    memset(waiting->sums, 0, sizeof waiting->sums);
}

/* Packs columns [first, end) of up to DW_STEPS groups of tokens; moves the cursor past them;
 * returns the groups. x: tiles of A, 32 columns by 32 columns, two tiles a step. */
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

/* dy: tiles of B, panel by panel. */
static int64_t pack_dy_groups(const hr_linear_dw *dw, int64_t first, int64_t end,
                              linear_cursor *cursor, waiting_db *waiting)
{
    float *sums = waiting->db ? waiting->sums : NULL;
    int64_t step = 0;
    for (; step < DW_STEPS && cursor->row < dw->rows; step++) {
        const hr_bf16 *row = (const hr_bf16 *)dw->dy + cursor->row * dw->N;
        const int64_t tokens = hr_linear_next_group(DW_TOKENS, dw->rows, dw->T, &cursor->row,
                                                    &cursor->position);
        pack_dy(row + first, dw->N, tokens, end - first, step, dw->dy_block, sums);
        if (sums && (cursor->position % DB_TOKENS == 0 || cursor->row == dw->rows))
            flush_db(waiting, end - first);
    }
    return step;
}

/* dW interleaves two rows in 32 floats, tiles take them one after the other. Between the first and
 * the last block of tokens a tile's part of dW holds rows; these two change it in place. */
static void split_rows(float *lines, int64_t rows)
{
    for (int64_t k = 0; k < rows; k += 2, lines += 2 * LINE)
        split_pairs(lines, lines, lines + LINE);
}

/* Also clears the padding: NaN in x or dy has made NaN of it. */
static void join_rows(float *lines, int64_t rows, int64_t columns)
{
    for (int64_t k = 0; k < rows; k += 2, lines += 2 * LINE) {
        if (k + 1 == rows) memset(lines + LINE, 0, LINE * sizeof *lines);
        for (int64_t j = columns; j < LINE; j++) lines[j] = lines[LINE + j] = 0;
        join_pairs(lines, lines + LINE, lines);
    }
}

/* A block of tokens: whether it is the first and the last of the call, and its steps. */
typedef struct {
    bool first, last;
    int64_t steps;
} token_block;

/* 32 x 32 of dW, or what of it there is. The last rows of a panel are followed by another panel:
 * they go through a copy. */
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
        expect_results(&next, step);
    }
    store_results(&results);
    for (int64_t p = 0; p < panels; p++) {
        if (!whole) memcpy(stored + p * panel, copy[p], bytes);
        if (tokens->last)
            join_rows(stored + p * panel, tile->rows, hr_min(LINE, tile->columns - p * LINE));
    }
}

/* Tokens go round inside a block of dW, which stays in L2. */
static void accumulate_tokens(const hr_linear_dw *dw, const linear_dw_tile *block)
{
    const int64_t n_end = block->n + block->columns;
    linear_cursor cursor = { 0, dw->position };
    token_block tokens = { .first = true };
    waiting_db waiting = { .db = dw->db && block->k == 0 ? dw->db + block->n : NULL };
    if (waiting.db && dw->clear_db)
        memset(waiting.db, 0, (size_t)block->columns * sizeof *waiting.db);
    do {
        linear_cursor start = cursor;
        pack_x_groups(dw, block->k, block->k + block->rows, &start);
        tokens.steps = pack_dy_groups(dw, block->n, n_end, &cursor, &waiting);
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
