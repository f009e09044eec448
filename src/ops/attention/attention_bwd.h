/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_bwd.h - backward attention of one head: template of the vector kernels.
 *
 *     p = exp(s - lse)   dp = keep * (dO V') / (1 - dropout)   delta = sum(dO * O)
 *     ds = p * (dp - delta)
 *     dQ = scale ds K   dK = scale ds' Q   dV = (keep * p)' dO / (1 - dropout)
 *
 * Scores are computed transposed, keys by queries: then lse and delta are vectors, and rows of p'
 * and ds' can be used directly as left operands. Include it after attention_fwd.h. */
#ifndef HR_OPS_ATTENTION_BWD_H
#define HR_OPS_ATTENTION_BWD_H

enum {
    GRADIENT_ROW = ATTENTION_QUERY_CHUNK / PAIR + ATTENTION_PAD, /* row stride of P' and dS' */
    PAIRS_ROW = ATTENTION_QUERY_CHUNK + ATTENTION_PAD /* row stride of dS as pairs of keys */
};

typedef struct {
    const hr_attention_task *task;
    attention_bwd_scratch room;
    int64_t width, words, lines; /* packed: elements and words per row; lines per panel of rows */
    int64_t reach;               /* query i sees keys (i - reach, i] */
    float factor;                /* converts a score to an exponent of 2 */
    /* dense: the first tile of keys covers all queries and the first chunk all its keys, so their
     * outputs need no clearing */
    bool fresh;
} backward;

/* Keys [first, last) against queries [query_first, query_last). The tile of keys starts at `base`;
 * its rows [row_first, row_last), whole strips, are computed. */
typedef struct {
    int64_t base, first, last, row_first, row_last;
    int64_t query_first, query_last;
} key_tile;

NOINLINE void multiply_block(int64_t words, const uint32_t *rows, const uint32_t *columns, float *c)
{
    multiply(ROWS, false, 2, STRIP_ROW, 1, words, rows, columns, words * VEC_LANES, c, PANELS);
}

/* dK or dV of a strip of keys (+)= dS' Q or P' dO. */
NOINLINE void add_by_keys(bool add, int64_t words, const uint32_t *a, const uint32_t *rows,
                          int64_t panel, float *c, int64_t width)
{
    multiply_panels(ROWS, add, GRADIENT_ROW, 1, words, a, rows, panel, c, width, width);
}

/* dQ of a strip of queries (+)= dS K. */
NOINLINE void add_by_queries(bool add, int64_t words, const uint32_t *a, const uint32_t *rows,
                             int64_t panel, float *c, int64_t width)
{
    uint32_t room[ROWS * ATTENTION_KEY_TILE / PAIR];
    const left transposed = left_of_columns(a, PAIRS_ROW, words, room);
    multiply_panels(ROWS, add, transposed.row, transposed.word, words, transposed.at, rows, panel,
                    c, width, width);
}

/* Computes P' and dS' of a strip of keys, from `row` of the tile on, against two panels of queries,
 * from `query` on, which is column `column` of the chunk. */
VEC_INLINE void gradients(const bool drop, const backward *b, const key_tile *t, int64_t row,
                          int64_t query, int64_t column)
{
    const hr_attention_task *task = b->task;
    const vec factor = vec_set(b->factor), zero = vec_set(0);
    const vec keep_scale = vec_set(task->keep_scale);
    const vec_bits threshold = vec_bits_set(task->threshold);
    const int64_t key = t->base + row;
    const bool edge = query < hr_max(t->query_first, key + ROWS - 1) ||
                      query + PANELS > hr_min(t->query_last, key + b->reach) || key < t->first ||
                      key + ROWS > t->last;
    vec lse[2], delta[2];
    for (int j = 0; j < 2; j++) {
        lse[j] = load_floats(b->room.lse + query + j * VEC_LANES);
        delta[j] = load_floats(b->room.delta + query + j * VEC_LANES);
    }
    /* of four keys: tiles start at multiples of 64, strips at multiples of 8 */
    vec_bits bits[2][4];
    for (int64_t i = 0; i < ROWS; i += 2) {
        for (int64_t j = 0; drop && i % 4 == 0 && j < 2; j++)
            vec_random_rows(&task->random, (uint32_t)(query + j * VEC_LANES), (uint32_t)(key + i),
                            bits[j]);
        vec ds[2][2];
        UNROLL for (int u = 0; u < 2; u++)
        {
            const int64_t k = key + i + u;
            const int64_t first = hr_max(t->query_first, k);
            const bool inside = k >= t->first && k < t->last;
            const int64_t last = inside ? hr_min(t->query_last, k + b->reach) : 0;
            vec kept[2];
            UNROLL for (int j = 0; j < 2; j++)
            {
                const int64_t at = (i + u) * PANELS + j * VEC_LANES, q = query + j * VEC_LANES;
                vec dp = load_floats(b->room.dp + at);
                vec p = vec_exp2(vec_sub(vec_mul(load_floats(b->room.score + at), factor), lse[j]));
                if (edge) p = select_range(p, zero, first - q, last - q);
                kept[j] = p;
                if (drop) {
                    const vec_bits drawn = bits[j][(i + u) % 4];
                    kept[j] = vec_keep_from(p, drawn, threshold);
                    dp = vec_mul(vec_keep_from(dp, drawn, threshold), keep_scale);
                }
                ds[u][j] = vec_mul(p, vec_sub(dp, delta[j]));
            }
            put_panels(b->room.p + (row + i + u) * GRADIENT_ROW + column / PAIR, kept);
        }
        put_gradients(b->room.ds + (row + i) * GRADIENT_ROW + column / PAIR, GRADIENT_ROW,
                      b->room.ds_pairs + (row + i) / 2 * PAIRS_ROW + column, ds);
    }
}

NOINLINE void gradients_plain(const backward *b, const key_tile *t, int64_t row, int64_t query,
                              int64_t column)
{
    gradients(false, b, t, row, query, column);
}

NOINLINE void gradients_dropped(const backward *b, const key_tile *t, int64_t row, int64_t query,
                                int64_t column)
{
    gradients(true, b, t, row, query, column);
}

/* Columns of a chunk, which starts at query `chunk`, that see no key from `key` on; in whole
 * steps. */
VEC_INLINE int64_t unseen(int64_t key, int64_t chunk, int64_t step)
{
    return hr_max(0, (key - chunk) / step * step);
}

/* One past the columns that see a key of the strip from `key` on; in whole panels. */
VEC_INLINE int64_t seen_end(const backward *b, int64_t key, int64_t chunk, int64_t columns)
{
    const int64_t queries = key + ROWS - 1 + b->reach - chunk;
    return queries <= 0 ? 0 : hr_min(columns, hr_round_up(queries, PANELS));
}

/* Processes one tile of keys with queries [chunk, chunk + columns). */
static void backward_chunk(const backward *b, const key_tile *t, int64_t chunk, int64_t columns)
{
    const attention_bwd_scratch *room = &b->room;
    const int64_t panel = b->lines * VEC_LANES, width = b->width;
    for (int64_t row = t->row_first; row < t->row_last; row += ROWS) {
        const int64_t end = seen_end(b, t->base + row, chunk, columns);
        for (int64_t at = unseen(t->base + row, chunk, PANELS); at < end; at += PANELS) {
            const int64_t packed = (chunk + at) * b->words;
            multiply_block(b->words, room->k_strip + row * STRIP_ROW, room->q_columns + packed,
                           room->score);
            multiply_block(b->words, room->v_strip + row * STRIP_ROW, room->g_columns + packed,
                           room->dp);
            if (b->task->drops) gradients_dropped(b, t, row, chunk + at, at);
            else gradients_plain(b, t, row, chunk + at, at);
        }
    }
    const bool add = !b->fresh || !b->task->first || chunk > t->base;
    for (int64_t row = t->row_first; row < t->row_last; row += ROWS) {
        const int64_t at = unseen(t->base + row, chunk, REDUCE_STEP);
        const int64_t words = (seen_end(b, t->base + row, chunk, columns) - at) / PAIR;
        const int64_t a = row * GRADIENT_ROW + at / PAIR;
        const int64_t packed = (chunk + at) / PAIR * VEC_LANES, c = (t->base + row) * width;
        if (words <= 0) continue;
        add_by_keys(add, words, room->p + a, room->g_rows + packed, panel, room->dv + c, width);
        add_by_keys(add, words, room->ds + a, room->q_rows + packed, panel, room->dk + c, width);
    }
    const uint32_t *by_queries = PAIR == 1 ? room->ds : room->ds_pairs;
    for (int64_t at = 0; at < columns; at += ROWS) {
        const int64_t query = chunk + at - t->base; /* relative to the tile, like its rows */
        const int64_t from = hr_max(t->row_first, (query + 1 - b->reach) / ROWS * ROWS);
        const int64_t seen = hr_min(query + ROWS, t->row_last) - from;
        if (seen <= 0) continue;
        add_by_queries(!b->fresh || t->base > 0, seen / PAIR,
                       by_queries + from / PAIR * PAIRS_ROW + at,
                       room->k_rows + (t->base + from) / PAIR * VEC_LANES, panel,
                       room->dq + (chunk + at) * width, width);
    }
}

/* Processes keys [first, last) of one block of the mask, inside one tile. */
static void backward_tile(const backward *b, int64_t first, int64_t last)
{
    const hr_attention_task *task = b->task;
    const int64_t base = first / ATTENTION_KEY_TILE * ATTENTION_KEY_TILE;
    const int64_t index = first / task->mask.block;
    const key_tile t = { .base = base,
                         .first = first,
                         .last = last,
                         .row_first = (first - base) / ROWS * ROWS,
                         .row_last = hr_round_up(last - base, ROWS),
                         .query_first = index * task->mask.block,
                         .query_last = attention_queries_end(&task->mask, first, last,
                                                             task->length) };
    copy_rows(task, task->k, base + t.row_first, t.row_last - t.row_first,
              b->room.k_strip + t.row_first * STRIP_ROW);
    copy_rows(task, task->v, base + t.row_first, t.row_last - t.row_first,
              b->room.v_strip + t.row_first * STRIP_ROW);
    const int64_t end = attention_padded(t.query_last);
    for (int64_t chunk = first / ATTENTION_ALIGN * ATTENTION_ALIGN; chunk < end;
         chunk += ATTENTION_QUERY_CHUNK)
        backward_chunk(b, &t, chunk, hr_min(ATTENTION_QUERY_CHUNK, end - chunk));
}

/* Computes lse in base 2 and delta, contiguous for vector loads; zeros past the length. */
static void row_statistics(const backward *b)
{
    const hr_attention_task *task = b->task;
    const hr_dtype dtype = dtype_of(task);
    for (int64_t first = 0; first < attention_padded(task->length); first += VEC_LANES) {
        vec part[VEC_LANES];
        for (int64_t i = 0; i < VEC_LANES; i++) {
            const int64_t row = first + i, width = row < task->length ? task->head_width : 0;
            part[i] = vec_set(0);
            b->room.lse[row] = width ? task->lse[row * task->lse_stride] * LOG2_E : 0;
            if (width) prefetch_row(task, task->o, row);
            for (int64_t at = 0; at < width; at += VEC_LANES)
                part[i] = vec_fma(load_elements(row_of(task->o, dtype, row), dtype, at, width),
                                  load_elements(row_of(task->grad_o, dtype, row), dtype, at, width),
                                  part[i]);
        }
        store_floats(b->room.delta + first, reduce_rows(false, part));
    }
}

static void clear_sums(const backward *b, float *sums)
{
    const int64_t count = attention_padded(b->task->length) * b->width;
    for (int64_t i = 0; i < count; i++) sums[i] = 0;
}

static void backward_head(const hr_attention_task *task)
{
    backward b = { .task = task,
                   .width = packed_width(task),
                   .words = packed_width(task) / PAIR,
                   .lines = attention_padded(task->length) / PAIR,
                   .reach = attention_reach(&task->mask),
                   .factor = task->scale * LOG2_E,
                   .fresh = task->mask.kind == HR_PATTERN_DENSE };
    const int64_t length = task->length, panel = b.lines * VEC_LANES;
    attention_bwd_scratch_place(task->scratch, length, task->head_width, &b.room);
    if (task->first) {
        pack_rows(task, task->k, length, panel, b.room.k_rows);
        if (!b.fresh) clear_sums(&b, b.room.dk);
        if (!b.fresh) clear_sums(&b, b.room.dv);
    }
    pack_columns(task, task->q, length, b.room.q_columns);
    pack_columns(task, task->grad_o, length, b.room.g_columns);
    pack_rows(task, task->q, length, panel, b.room.q_rows);
    pack_rows(task, task->grad_o, length, panel, b.room.g_rows);
    if (!b.fresh) clear_sums(&b, b.room.dq);
    row_statistics(&b);
    const int64_t block = task->mask.block;
    for (int64_t first = 0, last; first < task->length; first = last) {
        last = hr_min(task->length, (first / block + 1) * block);
        last = hr_min(last, (first / ATTENTION_KEY_TILE + 1) * ATTENTION_KEY_TILE);
        backward_tile(&b, first, last);
    }
    for (int64_t row = 0; row < task->length; row++) {
        prefetch_row(task, task->dq, row);
        store_row(task, task->dq, row, b.room.dq + row * b.width, task->scale);
        if (!task->last) continue;
        prefetch_row(task, task->dk, row);
        prefetch_row(task, task->dv, row);
        store_row(task, task->dk, row, b.room.dk + row * b.width, task->scale);
        store_row(task, task->dv, row, b.room.dv + row * b.width, task->keep_scale);
    }
}

#endif
