/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_selected.h - attention over blocks of keys that each query selects, and
 * the probabilities that the selection is made from: for the vector kernels.
 *
 * A tile of queries walks over the blocks that one of them has selected. A block is packed once,
 * and the rows that have selected it, (query, head) pairs, are gathered to strips with their
 * running sums. Include it after attention_cached.h. */
#ifndef HR_OPS_ATTENTION_SELECTED_H
#define HR_OPS_ATTENTION_SELECTED_H

#include "ops/attention/attention_blocks.h"

/* Moves the running sums of the rows of a strip between the tile and the strip. */
static void move_strip(const forward *f, const attention_selected_scratch *room, const strip *s,
                       const int32_t *rows, bool gathers)
{
    for (int64_t i = 0; i < s->rows; i++) {
        float *tile = room->sums + rows[i] * f->width, *own = s->sums + i * f->width;
        float *from = gathers ? tile : own, *to = gathers ? own : tile;
        for (int64_t at = 0; at < f->width; at += VEC_LANES)
            store_floats(to + at, load_floats(from + at));
        if (gathers) s->max[i] = room->max[rows[i]];
        else room->max[rows[i]] = s->max[i];
        if (gathers) s->total[i] = room->total[rows[i]];
        else room->total[rows[i]] = s->total[i];
    }
}

enum { AHEAD = 2 }; /* queries */

VEC_INLINE const char *query_row(const hr_attention_selected_task *task, int64_t query, int64_t h)
{
    const hr_dtype dtype = dtype_of(&task->head);
    return (const char *)row_of(task->head.q, dtype, query) +
           h * task->q_head_stride * hr_dtype_bytes(dtype);
}

/* Block `j`, packed, against the queries that have selected it. */
static void selected_block(const forward *f, const hr_attention_selected_task *task,
                           const attention_selected_scratch *room, int64_t j, int64_t keys,
                           const int32_t *queries, int64_t count)
{
    const hr_attention_task *head = &task->head;
    const int64_t all = count * task->heads;
    const int64_t row_bytes = head->head_width * hr_dtype_bytes(dtype_of(head));
    int64_t at = 0, h = 0;
    for (int64_t row = 0; row < all; row += ROWS) {
        int32_t rows[ROWS];
        strip s = { .p = p_of(f),
                    .scores = f->room.scores,
                    .sums = f->room.sums,
                    .max = f->room.max,
                    .total = f->room.total,
                    .rows = hr_min(ROWS, all - row),
                    .again = true,
                    .keys = { { .last = keys } },
                    .key_ranges = 1 };
        for (int64_t i = 0; i < s.rows; i++) {
            const int64_t query = queries[at];
            const char *q = query_row(task, query, h);
            const char *later = query_row(task, queries[hr_min(at + AHEAD, count - 1)], h);
            for (int64_t byte = 0; byte < row_bytes; byte += 64) vec_prefetch(later + byte);
            for (int64_t word = 0; word < f->words; word += VEC_LANES)
                store_words(f->room.strip + i * STRIP_ROW + word,
                            load_words(q, dtype_of(head), word, head->head_width));
            rows[i] = (int32_t)(query * task->heads + h);
            s.position[i] = head->query + query - j * task->block;
            if (++h == task->heads) h = 0, at++;
        }
        move_strip(f, room, &s, rows, true);
        forward_strip(f, &s);
        move_strip(f, room, &s, rows, false);
    }
}

static void selected_heads(const hr_attention_selected_task *task)
{
    const hr_attention_task *head = &task->head;
    const int64_t end = head->query + head->length, rows = head->length * task->heads;
    const int64_t blocks = (end + task->block - 1) / task->block;
    attention_selected_scratch room;
    forward f = { .task = head,
                  .width = packed_width(head),
                  .words = packed_width(head) / PAIR,
                  .panel = ATTENTION_KEY_CHUNK / PAIR * VEC_LANES,
                  .reach = attention_reach(&head->mask),
                  .factor = head->scale * LOG2_E };
    attention_selected_place(head->scratch, head->length, task->heads, task->count, blocks,
                             head->head_width, &room, &f.room);
    clear_rows(&f, 0);
    for (int64_t i = 0; i < rows * f.width; i++) room.sums[i] = 0;
    for (int64_t i = 0; i < attention_padded(rows); i++) {
        room.max[i] = SCORE_NEVER;
        room.total[i] = 0;
    }
    attention_sort_by_block(
        &(attention_selection){ task->blocks, task->blocks_stride, task->count, head->length }, 0,
        blocks, room.first, room.entries);
    for (int64_t j = 0; j < blocks; j++) {
        const int64_t key = j * task->block, keys = hr_min(task->block, end - key);
        const int32_t *queries = room.entries + room.first[j];
        if (room.first[j] == room.first[j + 1]) continue;
        pack_columns(head, rows_from(head, head->k, key), keys, f.room.keys);
        pack_rows(head, rows_from(head, head->v, key), keys, f.panel, f.room.values);
        selected_block(&f, task, &room, j, keys, queries, room.first[j + 1] - room.first[j]);
    }
    for (int64_t i = 0; i < attention_padded(rows); i += VEC_LANES) {
        const vec total = load_floats(room.total + i), max = load_floats(room.max + i);
        store_floats(room.max + i, vec_fma(max, vec_set(LN_2), log_of(total)));
        store_floats(room.total + i, vec_div(vec_set(1), total));
    }
    for (int64_t i = 0; i < rows; i++) {
        const int64_t query = i / task->heads, h = i % task->heads;
        hr_attention_rows o = head->o;
        o.first = hr_element_at(o.first, h * task->o_head_stride, dtype_of(head));
        store_row(head, o, query, room.sums + i * f.width, room.total[i]);
        if (head->lse) head->lse[query * head->lse_stride + h] = room.max[i];
    }
}

/* ---- probabilities */

/* Scores of a strip of queries of one head with a chunk of keys. */
static void score_strip(const forward *f, const hr_attention_scores_task *task, int64_t h,
                        int64_t row, int64_t rows, int64_t keys)
{
    const hr_attention_task *head = &task->head;
    hr_attention_rows q = head->q;
    q.first = hr_element_at(q.first, h * task->q_head_stride, dtype_of(head));
    copy_rows(head, q, row, rows, head->length, f->room.strip);
    multiply_scores(rows, f->words, f->room.strip, f->room.keys, f->room.scores,
                    attention_padded(keys));
}

/* The keys of a chunk from `base` on that a query sees. */
static int64_t seen_of(const hr_attention_task *head, int64_t row, int64_t base, int64_t keys)
{
    return hr_min(keys, hr_attention_keys_seen(&head->mask, head->query + row) - base);
}

VEC_INLINE float first_lane(vec value)
{
    float lanes[VEC_LANES];
    store_floats(lanes, value);
    return lanes[0];
}

/* Adds a row of scores to its running maximum and total, in base 2. */
VEC_INLINE void add_to_total(const forward *f, const float *scores, int64_t seen, float *max,
                             float *total)
{
    vec most = vec_set(SCORE_UNSEEN), sum = vec_set(0);
    for (int64_t j = 0; j < seen; j += VEC_LANES)
        most = vec_max(
            most, vec_first(load_floats(scores + j), vec_set(SCORE_UNSEEN), lanes_of(seen - j)));
    float lanes[VEC_LANES], now = *max, add = 0;
    store_floats(lanes, most);
    for (int i = 0; i < VEC_LANES; i++)
        if (lanes[i] * f->factor > now) now = lanes[i] * f->factor;
    for (int64_t j = 0; j < seen; j += VEC_LANES) {
        const vec p = vec_exp2(vec_fma(load_floats(scores + j), vec_set(f->factor), vec_set(-now)));
        sum = vec_add(sum, vec_first(p, vec_set(0), lanes_of(seen - j)));
    }
    store_floats(lanes, sum);
    for (int i = 0; i < VEC_LANES; i++) add += lanes[i];
    *total = *total * first_lane(vec_exp2(vec_set(*max - now))) + add;
    *max = now;
}

VEC_INLINE void add_probabilities(const bool starts, const forward *f, const float *scores,
                                  int64_t seen, float lse, float *sums)
{
    const vec factor = vec_set(f->factor), less = vec_set(-lse);
    const int64_t whole = seen / VEC_LANES * VEC_LANES, rest = seen - whole;
    for (int64_t j = 0; j < whole; j += VEC_LANES) {
        vec p = vec_exp2(vec_fma(load_floats(scores + j), factor, less));
        if (!starts) p = vec_add(load_floats(sums + j), p);
        store_floats(sums + j, p);
    }
    if (rest == 0) return;
    vec p = vec_exp2(vec_fma(load_floats(scores + whole), factor, less));
    if (!starts) p = vec_add(vec_load_f32(sums + whole, rest), p);
    vec_store_f32(sums + whole, p, rest);
}

NOINLINE void total_row(const forward *f, const float *scores, int64_t seen, float *max,
                        float *total)
{
    add_to_total(f, scores, seen, max, total);
}

NOINLINE void probability_row(const forward *f, const float *scores, int64_t seen, float lse,
                              bool starts, float *sums)
{
    if (starts) add_probabilities(true, f, scores, seen, lse, sums);
    else add_probabilities(false, f, scores, seen, lse, sums);
}

static void probabilities(const hr_attention_scores_task *task)
{
    const hr_attention_task *head = &task->head;
    const int64_t all = hr_attention_keys_seen(&head->mask, head->query + head->length - 1);
    forward f = { .task = head,
                  .width = packed_width(head),
                  .words = packed_width(head) / PAIR,
                  .factor = head->scale * LOG2_E };
    attention_scratch_place(head->scratch, ATTENTION_KEY_CHUNK, ATTENTION_QUERY_TILE,
                            head->head_width, &f.room);
    float *max = f.room.max, *total = f.room.total;
    clear_rows(&f, 0);
    for (int64_t i = 0; i < head->length * task->heads; i++) {
        max[i] = SCORE_NEVER;
        total[i] = 0;
    }
    for (int pass = head->lse ? 1 : 0; pass < 2; pass++)
        for (int64_t base = 0; base < all; base += ATTENTION_KEY_CHUNK) {
            const int64_t keys = hr_min(ATTENTION_KEY_CHUNK, all - base);
            pack_columns(head, rows_from(head, head->k, base), keys, f.room.keys);
            for (int64_t h = 0; h < task->heads; h++)
                for (int64_t row = 0; row < head->length; row++) {
                    const int64_t i = h * head->length + row;
                    const float *scores = f.room.scores + row % ROWS * SCORE_ROW;
                    const int64_t seen = seen_of(head, row, base, keys);
                    if (row % ROWS == 0)
                        score_strip(&f, task, h, row, hr_min(ROWS, head->length - row), keys);
                    if (seen <= 0) continue;
                    if (pass == 0) {
                        total_row(&f, scores, seen, &max[i], &total[i]);
                        continue;
                    }
                    const float lse = head->lse
                                          ? head->lse[row * head->lse_stride + h] * LOG2_E
                                          : max[i] + LOG2_E * first_lane(log_of(vec_set(total[i])));
                    probability_row(&f, scores, seen, lse, h == 0,
                                    task->sums + row * task->sum_row + base);
                }
        }
}

#endif
