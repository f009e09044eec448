/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_amx.c - bf16 products out = epilogue(a B) on AMX tiles.
 *
 * Tried without gain: non-temporal stores of results; prefetching every second line of the next
 * strip (equal), every fourth (4 to 12 % slower). */
#include "ops/linear/linear_tiles.h"

#include "ops/linear/linear_few.h"

enum {
    STEP_WORDS = 16, /* pairs of the reduction per step: one tile */
    COMING_LINES = 2 /* lines of the next strip that each step prefetches */
};

/* multiply_step without lower tiles, for at most 16 rows. B is used only once, so this prefetches
 * it for the next tile of columns. */
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

/* Results whose epilogue runs between the steps of the next tile: vector units and tiles work in
 * parallel. */
typedef struct {
    _Alignas(64) float sums[STRIP_ROWS * TILE_COLUMNS];
    linear_tile left;
} pending_tile;

/* finish_rows for all 32 columns: one store per line of bf16. */
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

/* Prefetches the operands of the next tile's epilogue for these rows: its lines are far apart, and
 * a store that misses stalls later stores. Output lines are prefetched to L2 only, because in L1
 * they would displace A. */
ALWAYS_INLINE void prefetch_tile(const hr_linear_mm *mm, const linear_tile *now)
{
    for (int64_t i = 0; i < now->rows; i++) {
        const int64_t index = (now->row + i) * mm->N + now->n + TILE_COLUMNS;
        if (mm->residual) __builtin_prefetch((const hr_bf16 *)mm->residual + index, 0);
        if (mm->aux) __builtin_prefetch((const hr_bf16 *)mm->aux + index, 0);
        if (mm->pre) __builtin_prefetch((const hr_bf16 *)mm->pre + index, 0, 2);
        __builtin_prefetch((const hr_bf16 *)mm->out + index, 0, 2);
    }
}

static void finish_some(const hr_linear_mm *mm, pending_tile *pending, int64_t rows)
{
    linear_tile now = pending->left;
    now.rows = hr_min(rows, now.rows);
    if (now.n + 2 * TILE_COLUMNS <= mm->n_end) prefetch_tile(mm, &now);
    if (now.columns == TILE_COLUMNS && !mm->after) finish_whole_lines(mm, &now);
    else finish_tile(HR_BF16, mm, &now);
    pending->left.row += now.rows;
    pending->left.rows -= now.rows;
    pending->left.sums += now.rows * TILE_COLUMNS;
}

/* Pads the block to whole steps with zero lines of B. */
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

/* Operands of A. Whole rows that form one block are used in place. Otherwise they are copied at a
 * stride without L1 conflicts, padded with zeros. */
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

/* Prefetch position in an array of the next strip: a few lines per step in ascending order, which
 * the hardware prefetcher recognises. */
typedef struct {
    const char *line;
    int64_t row_bytes, lines, done, rows; /* lines per row, lines prefetched, rows left */
} next_strip;

/* Columns [first, end) of the next strip's rows of `width` elements; empty for a null array. */
ALWAYS_INLINE next_strip strip_after(const hr_linear_mm *mm, int64_t row, const void *array,
                                     int64_t width, int64_t first, int64_t end)
{
    const int64_t next = hr_min(row + STRIP_ROWS, mm->rows);
    if (!array) return (next_strip){ 0 };
    return (next_strip){ .line = (const char *)((const hr_bf16 *)array + next * width + first),
                         .row_bytes = width * (int64_t)sizeof(hr_bf16),
                         .lines = divide_up(end - first, 2 * LINE),
                         .rows = hr_min(STRIP_ROWS, mm->rows - next) };
}

ALWAYS_INLINE void prefetch_strip(next_strip *next)
{
    for (int i = 0; i < COMING_LINES && next->rows > 0; i++) {
        __builtin_prefetch(next->line + next->done * LINE_BYTES, 0, 2);
        if (++next->done < next->lines) continue;
        next->done = 0;
        next->line += next->row_bytes;
        next->rows--;
    }
}

/* Multiplies one strip with every column of the block. */
static void multiply_tiles(const hr_linear_mm *mm, const linear_block *block, int64_t row,
                           float *carried, pending_tile *pending)
{
    const int64_t steps = block->words / STEP_WORDS, share = divide_up(STRIP_ROWS, steps);
    const bool carries = !block->first || !block->last, few = mm->rows <= STRIP_ROWS / 2;
    tile_operands operands = place_strip(mm, block, row);
    next_strip strip = strip_after(mm, row, mm->a, mm->K, 2 * block->word_first,
                                   2 * (block->word_first + block->words));
    /* Rows that lie in the block as a whole are contiguous in memory. */
    const bool stretch = block->last && block->n_end - block->n_first == mm->N;
    next_strip out = strip_after(mm, row, stretch ? mm->out : NULL, mm->N, 0, mm->N);
    next_strip residual = strip_after(mm, row, stretch ? mm->residual : NULL, mm->N, 0, mm->N);
    for (int64_t n = block->n_first; n < block->n_end; n += TILE_COLUMNS) {
        const int64_t columns = hr_min(TILE_COLUMNS, block->n_end - n);
        const tile_results sums = { block->last ? pending->sums : carried, TILE_COLUMNS,
                                    TILE_WORDS * 2, LINE };
        _Alignas(64) float begun[STRIP_ROWS * TILE_COLUMNS];
        const tile_results before = { block->first ? begun : carried, sums.row, sums.low,
                                      sums.right };
        const tile_results next = { carried + STRIP_ROWS * TILE_COLUMNS, sums.row, sums.low,
                                    sums.right };
        operands.b = block->panels + (n - block->n_first) / LINE * block->panel_step;
        /* 0: a single panel is used twice */
        operands.b_right = columns > LINE ? block->panel_step : 0;
        if (block->first && mm->before) {
            const linear_tile place = { row,   hr_min(STRIP_ROWS, mm->rows - row),
                                        n,     columns,
                                        begun, TILE_COLUMNS };
            memset(begun, 0, sizeof begun);
            take_sums(mm, &place, begun);
        }
        if (block->first && !mm->before) zero_results();
        else load_results(&before);
        for (int64_t step = 0; step < steps; step++) {
            if (few) multiply_few(&operands, step);
            else multiply_step(&operands, step);
            prefetch_strip(&strip);
            if (stretch) {
                prefetch_strip(&out);
                prefetch_strip(&residual);
            }
            if (carries) prefetch_results(&next, step);
            if (pending->left.rows) finish_some(mm, pending, share);
        }
        store_results(&sums);
        if (block->last)
            pending->left = (linear_tile){
                row, hr_min(STRIP_ROWS, mm->rows - row), n, columns, pending->sums, TILE_COLUMNS
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
    pending_tile pending;
    pending.left.rows = 0;
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
                    multiply_tiles(mm, &block, row, mm->sums + (row - first) * columns, &pending);
            }
    hr_tile_release();
    if (pending.left.rows) finish_some(mm, &pending, STRIP_ROWS);
}
