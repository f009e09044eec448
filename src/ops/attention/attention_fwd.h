/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_fwd.h - forward attention of one head: template of the vector kernels.
 *
 * A tile of queries iterates over the unmasked keys in chunks. A strip of ROWS queries computes its
 * scores and their exponentials with a running maximum, and adds p V to its sums. Include it after
 * attention_pack.h and definitions of multiply(), ROWS and REDUCE_STEP. */
#ifndef HR_OPS_ATTENTION_FWD_H
#define HR_OPS_ATTENTION_FWD_H

#include <math.h>

#include "ops/attention/attention_pattern.h"

enum {
    PANELS = 2 * VEC_LANES,                          /* columns of a product */
    SCORE_ROW = ATTENTION_KEY_CHUNK + ATTENTION_PAD, /* row stride in words */
    P_ROW = ATTENTION_KEY_CHUNK / PAIR + ATTENTION_PAD,
    STRIP_STEP = (int)ROWS > (int)VEC_LANES ? (int)ROWS : (int)VEC_LANES, /* whole vectors */
    SPAN_STEP = (int)REDUCE_STEP > (int)VEC_LANES ? (int)REDUCE_STEP : (int)VEC_LANES
};

/* Initial running maximum; score of a masked key, whose exponential is exactly 0 even with the
 * initial maximum. */
static const float SCORE_NEVER = -1e30f, SCORE_UNSEEN = -INFINITY;
static const float LOG2_E = 1.44269504f, LN_2 = 0.69314718f;

typedef struct {
    const hr_attention_task *task;
    attention_scratch room;
    int64_t width, words, panel; /* packed: elements and words per row; words per panel of V */
    int64_t tile;                /* queries */
    int64_t reach;               /* query i sees keys (i - reach, i] */
    float factor;                /* converts a score to an exponent of 2 */
} forward;

/* A strip and the keys it sees. Rows past `rows` are undefined. */
typedef struct {
    int64_t row, rows, position[ROWS]; /* for dropout, row i is row + i */
    bool again;                        /* not the first chunk of keys */
    attention_keys keys[ATTENTION_KEYS_MAX];
    int64_t key_ranges;
    uint32_t *p;
    float *scores, *sums, *max, *total;
} strip;

/* multiply() for `columns` columns of c, a multiple of the lanes. */
VEC_INLINE void multiply_panels(const int rows, const bool add, const int64_t a_row,
                                const int64_t a_word, int64_t words, const uint32_t *a,
                                const uint32_t *b, int64_t b_panel, float *c, int64_t c_row,
                                int64_t columns)
{
    int64_t at = 0;
    for (; at + PANELS <= columns; at += PANELS, b += 2 * b_panel)
        multiply(rows, add, 2, a_row, a_word, words, a, b, b_panel, c + at, c_row);
    if (at < columns) multiply(rows, add, 1, a_row, a_word, words, a, b, b_panel, c + at, c_row);
}

/* The same for up to ROWS rows. Strips of few rows occur when generating tokens. */
VEC_INLINE void multiply_rows(int64_t rows, bool add, int64_t a_row, int64_t words,
                              const uint32_t *a, const uint32_t *b, int64_t b_panel, float *c,
                              int64_t c_row, int64_t columns)
{
    if (rows == 1) multiply_panels(1, add, a_row, 1, words, a, b, b_panel, c, c_row, columns);
    else if (rows <= FEW_ROWS)
        multiply_panels(FEW_ROWS, add, a_row, 1, words, a, b, b_panel, c, c_row, columns);
    else if (rows <= ROWS / 4)
        multiply_panels(ROWS / 4, add, a_row, 1, words, a, b, b_panel, c, c_row, columns);
    else if (rows <= ROWS / 2)
        multiply_panels(ROWS / 2, add, a_row, 1, words, a, b, b_panel, c, c_row, columns);
    else multiply_panels(ROWS, add, a_row, 1, words, a, b, b_panel, c, c_row, columns);
}

/* Not inlined: next to the constants of vec_exp2, gcc spills the sums. */
NOINLINE void multiply_scores(int64_t rows, int64_t words, const uint32_t *q, const uint32_t *keys,
                              float *scores, int64_t columns)
{
    multiply_rows(rows, false, STRIP_ROW, words, q, keys, words * VEC_LANES, scores, SCORE_ROW,
                  columns);
}

NOINLINE void add_values(int64_t rows, bool add, int64_t words, const uint32_t *p,
                         const uint32_t *values, int64_t panel, float *sums, int64_t width)
{
    multiply_rows(rows, add, P_ROW, words, p, values, panel, sums, width, width);
}

/* Computed columns of one range of keys. */
VEC_INLINE int64_t span_of(const attention_keys *keys)
{
    return hr_round_up(keys->last - keys->base, SPAN_STEP);
}

/* Sets scores [j, end) outside [first, last) to SCORE_UNSEEN; returns their maximum with `max`. */
VEC_INLINE vec mask_scores(float *score, int64_t j, int64_t end, int64_t first, int64_t last,
                           vec max)
{
    for (; j < end; j += VEC_LANES) {
        const vec x = select_range(load_floats(score + j), vec_set(SCORE_UNSEEN), first - j,
                                   last - j);
        store_floats(score + j, x);
        max = vec_max(max, x);
    }
    return max;
}

/* Masks row i; returns its largest scores by lane. */
VEC_INLINE vec mask_row(const forward *f, const strip *s, int64_t i)
{
    vec max = vec_set(SCORE_UNSEEN);
    for (int64_t r = 0; r < s->key_ranges; r++) {
        const attention_keys *keys = &s->keys[r];
        float *score = s->scores + i * SCORE_ROW + keys->column;
        const int64_t end = hr_attention_keys_seen(&f->task->mask, s->position[i]);
        const int64_t span = span_of(keys);
        const int64_t first = hr_max(keys->first, end - f->reach) - keys->base;
        const int64_t last = hr_min(keys->last, end) - keys->base;
        const int64_t whole = last / VEC_LANES * VEC_LANES;
        int64_t j = hr_min(hr_round_up(hr_max(first, 0), VEC_LANES), span);
        max = mask_scores(score, 0, j, first, last, max);
        for (; j < whole; j += VEC_LANES) max = vec_max(max, load_floats(score + j));
        max = mask_scores(score, j, span, first, last, max);
    }
    return max;
}

/* Computes row i of p; returns the sums of exponentials by lane. A masked score becomes exactly
 * 0. */
VEC_INLINE vec exponentials(const bool drop, const forward *f, const strip *s, int64_t i)
{
    const hr_attention_task *task = f->task;
    const int64_t row = hr_min(s->row + i, task->query + task->length - 1);
    const vec factor = vec_set(f->factor), max = vec_set(-s->max[i]);
    const vec_bits threshold = vec_bits_set(task->threshold);
    hr_random_row random = task->random;
    vec_bits bits[2] = { threshold, threshold };
    vec total = vec_set(0);
    random.counter[1] += (uint32_t)row;
    for (int64_t r = 0; r < s->key_ranges; r++) {
        const attention_keys *keys = &s->keys[r];
        const int64_t span = span_of(keys);
        for (int64_t j = 0; j < span; j += SPAN_STEP) {
            const int64_t column = keys->column + j, key = keys->base + j;
            if (drop && key % PANELS == 0) vec_random_elements(&random, (uint32_t)key, bits);
            vec p[SPAN_STEP / VEC_LANES];
            UNROLL for (int k = 0; k < SPAN_STEP / VEC_LANES; k++)
            {
                const int64_t at = k * VEC_LANES;
                const vec score = load_floats(s->scores + i * SCORE_ROW + column + at);
                p[k] = vec_exp2(vec_fma(score, factor, max));
                total = vec_add(total, p[k]);
                if (drop) p[k] = vec_keep_from(p[k], bits[(key + at) / VEC_LANES % 2], threshold);
            }
            uint32_t *words = s->p + i * P_ROW;
            if (SPAN_STEP == PANELS) put_panels(words + column / PAIR, p);
            else put_words(words, column, p[0]);
        }
    }
    return total;
}

/* Separate passes over all rows overlap the dependent steps (maximum, scale, sum) of different
 * rows. */
VEC_INLINE void softmax(const bool drop, const forward *f, const strip *s)
{
    float shrink[STRIP_STEP];
    for (int64_t first = 0; first < s->rows; first += VEC_LANES) {
        vec part[VEC_LANES];
        for (int64_t i = 0; i < VEC_LANES; i++)
            part[i] = first + i < s->rows ? mask_row(f, s, first + i) : vec_set(SCORE_UNSEEN);
        const vec max = vec_mul(reduce_rows(true, part), vec_set(f->factor));
        const vec old = load_floats(s->max + first), now = vec_max(old, max);
        store_floats(s->max + first, now);
        store_floats(shrink + first, vec_exp2(vec_sub(old, now)));
    }
    for (int64_t first = 0; first < s->rows; first += VEC_LANES) {
        vec part[VEC_LANES];
        for (int64_t i = 0; i < VEC_LANES; i++)
            part[i] = first + i < s->rows ? exponentials(drop, f, s, first + i) : vec_set(0);
        const vec total = vec_mul(load_floats(s->total + first), load_floats(shrink + first));
        store_floats(s->total + first, vec_add(total, reduce_rows(false, part)));
    }
    for (int64_t i = 0; s->again && i < s->rows; i++) {
        float *sums = s->sums + i * f->width;
        for (int64_t at = 0; at < f->width; at += VEC_LANES)
            store_floats(sums + at, vec_mul(load_floats(sums + at), vec_set(shrink[i])));
    }
}

NOINLINE void softmax_plain(const forward *f, const strip *s)
{
    softmax(false, f, s);
}

NOINLINE void softmax_dropped(const forward *f, const strip *s)
{
    softmax(true, f, s);
}

/* Processes one strip, whose rows of Q are copied, with its unmasked keys of a chunk. */
static void forward_strip(const forward *f, const strip *s)
{
    for (int64_t r = 0; r < s->key_ranges; r++) {
        const attention_keys *keys = &s->keys[r];
        multiply_scores(s->rows, f->words, f->room.strip, f->room.keys + keys->packed * f->words,
                        s->scores + keys->column, span_of(keys));
    }
    if (f->task->drops) softmax_dropped(f, s);
    else softmax_plain(f, s);
    for (int64_t r = 0; r < s->key_ranges; r++) {
        const attention_keys *keys = &s->keys[r];
        const int64_t seen = hr_round_up(keys->last - keys->base, REDUCE_STEP);
        add_values(s->rows, s->again || r > 0, seen / PAIR, s->p + keys->column / PAIR,
                   f->room.values + keys->packed / PAIR * VEC_LANES, f->panel, s->sums, f->width);
    }
}

/* Collects the next ranges of keys, at most a chunk; returns their number, 0 at the end. */
static int64_t next_chunk(attention_key_iterator *iterator,
                          attention_keys chunk[ATTENTION_KEYS_MAX])
{
    int64_t ranges = 0, column = 0;
    while (attention_next_keys(iterator, ATTENTION_KEY_CHUNK - column, &chunk[ranges])) {
        chunk[ranges].column = column;
        chunk[ranges].packed = chunk[ranges].base;
        column += attention_padded(chunk[ranges].last - chunk[ranges].base);
        ranges++;
    }
    return ranges;
}

/* Packs keys and values of a range; row j is row j mod `ring` of k and v. Rows before `first` may
 * hold a later token of a ring buffer; their exponential is masked to 0. */
static void pack_range(const forward *f, int64_t ring, const attention_keys *keys)
{
    const hr_attention_task *task = f->task;
    for (int64_t base = keys->base; base < keys->last; base += ATTENTION_ALIGN) {
        const int64_t at = keys->packed + base - keys->base, row = base % ring;
        const int64_t count = hr_min(ATTENTION_ALIGN, keys->last - base);
        pack_columns(task, rows_from(task, task->k, row), count, f->room.keys + at * f->words);
        pack_rows(task, rows_from(task, task->v, row), count, f->panel,
                  f->room.values + at / PAIR * VEC_LANES);
    }
}

/* Packs the next chunk with keys before `end` that positions from `first` on see; returns its
 * number of ranges, 0 at the end. */
static int64_t next_packed(const forward *f, int64_t first, int64_t end, int64_t ring,
                           attention_key_iterator *iterator,
                           attention_keys chunk[ATTENTION_KEYS_MAX])
{
    attention_keys all[ATTENTION_KEYS_MAX];
    for (int64_t found; (found = next_chunk(iterator, all)) > 0;) {
        int64_t ranges = 0;
        for (int64_t r = 0; r < found; r++) {
            all[r].packed = all[r].column;
            if (!attention_clip(&all[r], first + 1 - f->reach, end, &chunk[ranges])) continue;
            pack_range(f, ring, &chunk[ranges++]);
        }
        if (ranges > 0) return ranges;
    }
    return 0;
}

/* Words of one fp32 overwrite their scores: both do not fit in L1. */
VEC_INLINE uint32_t *p_of(const forward *f)
{
    return PAIR == 1 ? (uint32_t *)f->room.scores : f->room.p;
}

static void open_tile(const forward *f)
{
    for (int64_t i = 0; i < 2 * f->tile; i++) {
        f->room.max[i] = SCORE_NEVER;
        f->room.total[i] = 0;
    }
}

/* Strip `at` of a tile: its scratch, and the keys of a chunk, before `end`, that positions from
 * `first` on see. */
static strip strip_of(const forward *f, int64_t at, const attention_keys *chunk, int64_t ranges,
                      int64_t first, int64_t end)
{
    strip s = { .p = p_of(f),
                .scores = f->room.scores,
                .sums = f->room.sums + at * ROWS * f->width,
                .max = f->room.max + at * STRIP_STEP,
                .total = f->room.total + at * STRIP_STEP };
    for (int64_t r = 0; r < ranges; r++)
        s.key_ranges += attention_clip(&chunk[r], first + 1 - f->reach, end, &s.keys[s.key_ranges]);
    return s;
}

/* Index of the maximum and the total of row i of a tile. */
VEC_INLINE int64_t place_of(int64_t i)
{
    return i / ROWS * STRIP_STEP + i % ROWS;
}

/* Converts maxima to log-sum-exps, and totals to the factors of the sums. */
static void close_tile(const forward *f)
{
    const attention_scratch *room = &f->room;
    for (int64_t i = 0; i < 2 * f->tile; i += VEC_LANES) {
        const vec total = load_floats(room->total + i), max = load_floats(room->max + i);
        store_floats(room->max + i, vec_fma(max, vec_set(LN_2), log_of(total)));
        store_floats(room->total + i, vec_div(vec_set(f->task->keep_scale), total));
    }
}

/* Row i of a tile, at place `at`, that sees no key. */
static void clear_row(const forward *f, int64_t i, int64_t at)
{
    for (int64_t c = 0; c < f->width; c++) f->room.sums[i * f->width + c] = 0;
    f->room.max[at] = f->room.total[at] = 0;
}

/* Queries [first, last) of one block of the mask, at most a tile. */
static void forward_tile(const forward *f, int64_t first, int64_t last)
{
    const hr_attention_task *task = f->task;
    const attention_scratch *room = &f->room;
    const int64_t keys = hr_attention_keys_seen(&task->mask, last - 1);
    attention_key_iterator iterator = attention_iterate_keys(&task->mask, first, keys);
    attention_keys chunk[ATTENTION_KEYS_MAX];
    bool begun[ATTENTION_LONG_TILE / ROWS] = { false };
    open_tile(f);
    for (int64_t ranges;
         (ranges = task->whole ? next_chunk(&iterator, chunk)
                               : next_packed(f, first, keys, INT64_MAX, &iterator, chunk)) > 0;)
        for (int64_t row = first, at = 0; row < last; row += ROWS, at++) {
            const int64_t end = hr_min(row + ROWS, last);
            strip s = strip_of(f, at, chunk, ranges, row,
                               hr_attention_keys_seen(&task->mask, end - 1));
            if (s.key_ranges == 0) continue;
            s.row = row;
            s.rows = end - row;
            for (int64_t i = 0; i < s.rows; i++) s.position[i] = row + i;
            s.again = begun[at];
            begun[at] = true;
            copy_rows(task, task->q, row - task->query, s.rows, task->length, room->strip);
            forward_strip(f, &s);
        }
    close_tile(f);
    for (int64_t row = first; row < last; row++) {
        const int64_t i = row - first, at = place_of(i), here = row - task->query;
        prefetch_row(task, task->o, here);
        if (hr_attention_keys_seen(&task->mask, row) == 0) clear_row(f, i, at);
        store_row(task, task->o, here, room->sums + i * f->width, room->total[at]);
        if (task->lse) task->lse[here * task->lse_stride] = room->max[at];
    }
}

static void forward_head(const hr_attention_task *task)
{
    const int64_t end = task->query + task->length;
    const int64_t keys = hr_attention_keys_seen(&task->mask, end - 1);
    const int64_t packed = task->whole ? keys : ATTENTION_KEY_CHUNK;
    forward f = { .task = task,
                  .width = packed_width(task),
                  .words = packed_width(task) / PAIR,
                  .panel = attention_padded(packed) / PAIR * VEC_LANES,
                  .tile = task->whole ? ATTENTION_QUERY_TILE : ATTENTION_LONG_TILE,
                  .reach = attention_reach(&task->mask),
                  .factor = task->scale * LOG2_E };
    attention_scratch_place(task->scratch, packed, f.tile, task->head_width, &f.room);
    if (task->whole && task->first) {
        pack_columns(task, task->k, keys, f.room.keys);
        pack_rows(task, task->v, keys, f.panel, f.room.values);
    }
    const int64_t block = task->mask.block;
    for (int64_t first = task->query, last; first < end; first = last) {
        last = hr_min(end, (first / block + 1) * block);
        last = hr_min(last, first + f.tile);
        forward_tile(&f, first, last);
    }
}

#endif
