/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_bwd.h - backward attention of a chunk of queries of one head, against a
 * range of keys: template of the vector kernels.
 *
 *     p = exp(s - lse)   dp = keep * (dO V') / (1 - dropout)   delta = sum(dO * O)
 *     ds = p * (dp - delta)
 *     dQ = scale ds K   dK = scale ds' Q   dV = (keep * p)' dO / (1 - dropout)
 *
 * Scores are computed transposed, keys by queries: then lse and delta are vectors, and rows of p'
 * and ds' can be used directly as left operands. Sums of dQ are over ascending keys and those of dK
 * and dV over ascending queries, one multiply-add after the other: chunks and ranges do not change
 * their bits. Include it after attention_fwd.h. */
#ifndef HR_OPS_ATTENTION_BWD_H
#define HR_OPS_ATTENTION_BWD_H

#include "base/assert.h"

enum {
    GRADIENT_ROW = ATTENTION_QUERY_BLOCK / PAIR + ATTENTION_PAD, /* row stride of P' and dS' */
    PAIRS_ROW = ATTENTION_QUERY_BLOCK + ATTENTION_PAD /* row stride of dS as pairs of keys */
};

typedef struct {
    const hr_attention_task *task;
    attention_bwd_scratch room;
    int64_t width, words, panel; /* packed: elements and words per row; words per panel of rows */
    int64_t columns;             /* queries, padded */
    int64_t sum_row;             /* floats per row of a sum */
    int64_t reach;               /* query i sees keys (i - reach, i] */
    float factor;                /* converts a score to an exponent of 2 */
    bool
        fresh; /* the first tile of keys starts the sums of all queries, so they need no clearing */
} backward;

/* Keys [first, last) against queries [query_first, query_last). The tile of keys starts at `base`;
 * its rows [row_first, row_last), whole strips, are computed. A block of queries at a time: columns
 * [column, column + columns) of the chunk, from query `query` on. */
typedef struct {
    int64_t base, first, last, row_first, row_last;
    int64_t query_first, query_last;
    int64_t column, columns, query;
} key_tile;

NOINLINE void multiply_block(int64_t words, const uint32_t *rows, const uint32_t *columns, float *c)
{
    multiply(ROWS, false, 2, STRIP_ROW, 1, words, rows, columns, words * VEC_LANES, c, PANELS);
}

/* dK or dV of a strip of keys (+)= dS' Q or P' dO. */
NOINLINE void add_by_keys(bool add, int64_t words, const uint32_t *a, const uint32_t *rows,
                          int64_t panel, float *c, int64_t c_row, int64_t width)
{
    multiply_panels(ROWS, add, GRADIENT_ROW, 1, words, a, rows, panel, c, c_row, width);
}

/* The same for a strip of which only `there` rows exist. */
NOINLINE void add_by_some_keys(const backward *b, int64_t there, bool add, int64_t words,
                               const uint32_t *a, const uint32_t *rows, float *c)
{
    float *edge = b->room.edge;
    for (int64_t i = 0; i < ROWS * b->sum_row; i++) edge[i] = i < there * b->sum_row ? c[i] : 0;
    add_by_keys(add, words, a, rows, b->panel, edge, b->sum_row, b->width);
    for (int64_t i = 0; i < there * b->sum_row; i++) c[i] = edge[i];
}

/* dQ of a strip of queries (+)= dS K. */
NOINLINE void add_by_queries(bool add, int64_t words, const uint32_t *a, const uint32_t *rows,
                             int64_t panel, float *c, int64_t c_row, int64_t width)
{
    uint32_t room[ROWS * ATTENTION_KEY_TILE / PAIR];
    const left transposed = left_of_columns(a, PAIRS_ROW, words, room);
    multiply_panels(ROWS, add, transposed.row, transposed.word, words, transposed.at, rows, panel,
                    c, c_row, width);
}

/* Computes P' and dS' of a strip of keys, from `row` of the tile on, against two panels of queries,
 * from column `column` of the block on. */
VEC_INLINE void gradients(const bool drop, const backward *b, const key_tile *t, int64_t row,
                          int64_t column)
{
    const hr_attention_task *task = b->task;
    const int64_t query = t->query + column;
    const float *log_sums = b->room.lse + t->column, *sums = b->room.delta + t->column;
    const vec factor = vec_set(b->factor), zero = vec_set(0);
    const vec keep_scale = vec_set(task->keep_scale);
    const vec_bits threshold = vec_bits_set(task->threshold);
    const int64_t key = t->base + row;
    const hr_attention_mask *mask = &task->mask;
    const bool edge = query < hr_max(t->query_first, attention_seen_from(mask, key + ROWS - 1)) ||
                      query + PANELS > hr_min(t->query_last, key + b->reach) || key < t->first ||
                      key + ROWS > t->last;
    vec lse[2], delta[2];
    for (int j = 0; j < 2; j++) {
        lse[j] = load_floats(log_sums + column + j * VEC_LANES);
        delta[j] = load_floats(sums + column + j * VEC_LANES);
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
            const int64_t first = hr_max(t->query_first, attention_seen_from(mask, k));
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

NOINLINE void gradients_plain(const backward *b, const key_tile *t, int64_t row, int64_t column)
{
    gradients(false, b, t, row, column);
}

NOINLINE void gradients_dropped(const backward *b, const key_tile *t, int64_t row, int64_t column)
{
    gradients(true, b, t, row, column);
}

/* Columns of the block that see no key from `key` on; in whole steps. */
VEC_INLINE int64_t unseen(const backward *b, const key_tile *t, int64_t key, int64_t step)
{
    const int64_t query = attention_seen_from(&b->task->mask, key);
    return hr_max(0, (query - t->query) / step * step);
}

/* One past the columns that see a key of the strip from `key` on; in whole panels. */
VEC_INLINE int64_t seen_end(const backward *b, const key_tile *t, int64_t key)
{
    const int64_t queries = key + ROWS - 1 + b->reach - t->query;
    return queries <= 0 ? 0 : hr_min(t->columns, hr_round_up(queries, PANELS));
}

/* All strips of keys use two packed panels of queries before the next two, which then fit in L1. */
static void find_gradients(const backward *b, const key_tile *t)
{
    const attention_bwd_scratch *room = &b->room;
    for (int64_t at = 0; at < t->columns; at += PANELS) {
        const int64_t packed = (t->column + at) * b->words;
        for (int64_t row = t->row_first; row < t->row_last; row += ROWS) {
            const int64_t key = t->base + row;
            if (at < unseen(b, t, key, PANELS) || at >= seen_end(b, t, key)) continue;
            multiply_block(b->words, room->k_strip + row * STRIP_ROW, room->q_columns + packed,
                           room->score);
            multiply_block(b->words, room->v_strip + row * STRIP_ROW, room->g_columns + packed,
                           room->dp);
            if (b->task->drops) gradients_dropped(b, t, row, at);
            else gradients_plain(b, t, row, at);
        }
    }
}

/* dK (+)= dS' Q or dV (+)= P' dO: `a` of the tile, `sums` of the document. One after the other: the
 * packed rows of a block of queries fit in L1, those of both do not. */
static void add_to_keys(const backward *b, const key_tile *t, const uint32_t *a,
                        const uint32_t *rows, float *sums)
{
    for (int64_t row = t->row_first; row < t->row_last; row += ROWS) {
        const int64_t key = t->base + row, at = unseen(b, t, key, REDUCE_STEP);
        const int64_t words = (seen_end(b, t, key) - at) / PAIR;
        const int64_t there = b->task->key_end - key;
        const uint32_t *strip_a = a + row * GRADIENT_ROW + at / PAIR;
        const uint32_t *lines = rows + (t->column + at) / PAIR * VEC_LANES;
        float *c = sums + key * b->sum_row;
        if (words <= 0) continue;
        /* The first to see a strip are its own queries. */
        const bool add = !b->task->first || key < t->first ||
                         attention_seen_from(&b->task->mask, key) < t->query;
        if (there >= ROWS)
            add_by_keys(add, words, strip_a, lines, b->panel, c, b->sum_row, b->width);
        else add_by_some_keys(b, there, add, words, strip_a, lines, c);
    }
}

static void add_to_queries(const backward *b, const key_tile *t)
{
    const uint32_t *by_queries = PAIR == 1 ? b->room.ds : b->room.ds_pairs;
    const int64_t panel = ATTENTION_KEY_TILE / PAIR * VEC_LANES;
    for (int64_t at = 0; at < t->columns; at += ROWS) {
        const int64_t query = t->query + at;
        const int64_t from = hr_max(t->row_first, (query + 1 - b->reach - t->base) / ROWS * ROWS);
        const int64_t keys = hr_attention_keys_seen(&b->task->mask, query + ROWS - 1) - t->base;
        const int64_t end = keys <= 0 ? 0 : hr_round_up(keys, ROWS);
        const int64_t seen = hr_min(end, t->row_last) - from;
        if (seen <= 0) continue;
        add_by_queries(!b->fresh || t->base > 0, seen / PAIR,
                       by_queries + from / PAIR * PAIRS_ROW + at,
                       b->room.k_rows + from / PAIR * VEC_LANES, panel,
                       b->task->dq_sum + (t->column + at) * b->sum_row, b->sum_row, b->width);
    }
}

/* Processes keys [first, last) of one block of the mask, inside one tile. */
static void backward_tile(const backward *b, int64_t first, int64_t last)
{
    const hr_attention_task *task = b->task;
    const int64_t base = first / ATTENTION_KEY_TILE * ATTENTION_KEY_TILE;
    const int64_t index = first / task->mask.block, end = task->query + task->length;
    const int64_t seen = hr_attention_keys_seen(&task->mask, end - 1);
    const int64_t keys = hr_min(seen, task->key_end);
    key_tile t = { .base = base,
                   .first = first,
                   .last = last,
                   .row_first = (first - base) / ROWS * ROWS,
                   .row_last = hr_round_up(last - base, ROWS),
                   .query_first = index * task->mask.block,
                   .query_last = attention_queries_end(&task->mask, first, last, end) };
    if (t.query_last <= task->query) return;
    copy_rows(task, task->k, base + t.row_first, t.row_last - t.row_first, keys,
              b->room.k_strip + t.row_first * STRIP_ROW);
    copy_rows(task, task->v, base + t.row_first, t.row_last - t.row_first, keys,
              b->room.v_strip + t.row_first * STRIP_ROW);
    pack_rows(task, rows_from(task, task->k, base), hr_min(ATTENTION_KEY_TILE, keys - base),
              ATTENTION_KEY_TILE / PAIR * VEC_LANES, b->room.k_rows);
    for (t.column = 0; t.column < b->columns; t.column += ATTENTION_QUERY_BLOCK) {
        t.columns = hr_min(ATTENTION_QUERY_BLOCK, b->columns - t.column);
        t.query = task->query + t.column;
        if (t.query + t.columns <= attention_seen_from(&task->mask, first)) continue;
        if (t.query >= t.query_last) continue;
        find_gradients(b, &t);
        add_to_keys(b, &t, b->room.p, b->room.g_rows, task->dv_sum);
        add_to_keys(b, &t, b->room.ds, b->room.q_rows, task->dk_sum);
        add_to_queries(b, &t);
    }
}

/* lse in base 2, and delta if it is given. */
static void copy_statistics(const backward *b)
{
    const hr_attention_task *task = b->task;
    for (int64_t i = 0; i < b->columns; i++) {
        const bool there = i < task->length;
        b->room.lse[i] = there ? task->lse[i * task->lse_stride] * LOG2_E : 0;
        if (task->dots) b->room.delta[i] = there ? task->dots[i * task->lse_stride] : 0;
    }
}

/* Computes lse in base 2 and delta, contiguous for vector loads; zeros past the length. */
static void row_statistics(const backward *b)
{
    const hr_attention_task *task = b->task;
    copy_statistics(b);
    if (task->dots) return;
    const hr_dtype dtype = dtype_of(task);
    for (int64_t first = 0; first < b->columns; first += VEC_LANES) {
        vec part[VEC_LANES];
        for (int64_t i = 0; i < VEC_LANES; i++) {
            const int64_t row = first + i, width = row < task->length ? task->head_width : 0;
            part[i] = vec_set(0);
            if (width) prefetch_row(task, task->o, row);
            for (int64_t at = 0; at < width; at += VEC_LANES)
                part[i] = vec_fma(load_elements(row_of(task->o, dtype, row), dtype, at, width),
                                  load_elements(row_of(task->grad_o, dtype, row), dtype, at, width),
                                  part[i]);
        }
        store_floats(b->room.delta + first, reduce_rows(false, part));
    }
}

static void backward_chunk(const hr_attention_task *task)
{
    const int64_t columns = attention_padded(task->length), block = task->mask.block;
    backward b = { .task = task,
                   .width = packed_width(task),
                   .words = packed_width(task) / PAIR,
                   .panel = columns / PAIR * VEC_LANES,
                   .columns = columns,
                   .sum_row = attention_padded(task->head_width),
                   .reach = attention_reach(&task->mask),
                   .factor = task->scale * LOG2_E,
                   .fresh = task->mask.kind == HR_PATTERN_DENSE && !task->begun };
    HR_ASSERT(task->length <= attention_chunk(task->head_width));
    attention_bwd_scratch_place(task->scratch, task->length, task->head_width, &b.room);
    pack_columns(task, task->q, task->length, b.room.q_columns);
    pack_columns(task, task->grad_o, task->length, b.room.g_columns);
    pack_rows(task, task->q, task->length, b.panel, b.room.q_rows);
    pack_rows(task, task->grad_o, task->length, b.panel, b.room.g_rows);
    row_statistics(&b);
    for (int64_t i = 0; task->opens && !task->begun && !b.fresh && i < columns * b.sum_row; i++)
        task->dq_sum[i] = 0;
    for (int64_t first = task->key_first, last; first < task->key_last; first = last) {
        last = hr_min(task->key_last, (first / block + 1) * block);
        last = hr_min(last, (first / ATTENTION_KEY_TILE + 1) * ATTENTION_KEY_TILE);
        backward_tile(&b, first, last);
    }
    for (int64_t row = 0; task->closes && row < task->length; row++) {
        prefetch_row(task, task->dq, row);
        store_row(task, task->dq, row, task->dq_sum + row * b.sum_row, task->scale);
    }
}

VEC_INLINE void store_keys(const hr_attention_task *task)
{
    const int64_t sum_row = attention_padded(task->head_width);
    for (int64_t row = 0; row < task->length; row++) {
        prefetch_row(task, task->dk, row);
        prefetch_row(task, task->dv, row);
        store_row(task, task->dk, row, task->dk_sum + row * sum_row, task->scale);
        store_row(task, task->dv, row, task->dv_sum + row * sum_row, task->keep_scale);
    }
}

#endif
