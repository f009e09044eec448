/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_bwd_run.c - splits the chunks of queries of attention_bwd over threads.
 *
 * A lane is a group of heads of a sequence. It has one sum of dk and dv, to which its chunks of
 * queries add in ascending order, the heads of a chunk one after the other, each to ascending keys.
 * With as many lanes as threads, a thread has whole lanes. With fewer, threads share them: the
 * *turns* of all lanes, one head of a chunk each, are dealt to the threads, and a phase is the time
 * for one part of the keys. A turn begins a part when the turn before it has left those keys, so in
 * no phase do two threads add to the same sums, and the order of the additions is the same with any
 * number of threads. */
#include <string.h>

#include "base/threads.h"
#include "ops/attention/attention_blocks.h"
#include "ops/attention/attention_heads.h"
#include "ops/attention/attention_pattern.h"
#include "ops/cpu_run.h"

typedef struct {
    attention_share share;
    int64_t lanes, sum_row;
    int64_t sum_count;           /* floats of a lane */
    int64_t chunk;               /* queries */
    bool shared;                 /* threads share lanes */
    int64_t turns;               /* of a chunk: its heads, or 1 for all of them */
    int64_t step;                /* keys of which a part has a multiple */
    float *dq_sums;              /* of this thread */
    attention_gathered gathered; /* if blocks are selected */
} backward;

static backward backward_of(const hr_call *call)
{
    const hr_attention_attr *attr = call->attr;
    const bool selects = attr->mask.kind == HR_PATTERN_SELECTED;
    backward b = { .share = attention_share_of(call, selects ? NULL : call->in[6], NULL),
                   .lanes = attention_lanes(attr, call->rows),
                   .sum_row = attention_padded(attr->head_width),
                   .chunk = attention_chunks(attr),
                   .turns = selects ? 1 : attr->H / attr->G,
                   .step = selects ? ATTENTION_KEY_RANGE : ATTENTION_KEY_TILE };
    const int64_t heads = attention_bwd_heads(attr);
    b.sum_count = hr_attention_sum_count(attr, call->out[3] ? attr->T : call->rows);
    const int64_t sums = call->out[3] ? 0 : hr_min(b.lanes, call->threads) * b.sum_count;
    HR_ASSERT(!call->out[3] == !attr->in_parts && (!call->out[3] || b.share.sequences <= 1));
    b.shared = b.lanes < call->threads;
    b.dq_sums = (float *)((uint8_t *)call->scratch + sums * (int64_t)sizeof(float) +
                          call->thread * attention_bwd_thread_bytes(attr, call->rows, heads));
    b.share.scratch = (uint8_t *)(b.dq_sums + heads * attention_dq_count(attr, call->rows));
    if (selects) b.share.scratch += attention_gathered_place(b.share.scratch, attr, &b.gathered);
    return b;
}

/* The sum of dk of a lane; that of dv follows it. */
static float *sum_of(const backward *b, int64_t lane)
{
    const hr_call *call = b->share.call;
    if (call->out[3]) return (float *)call->out[3] + lane * b->sum_count;
    return (float *)call->scratch + (b->shared ? lane : call->thread) * b->sum_count;
}

/* Whether the call has the last queries of its sequences, after which sums are stored. */
static bool is_last(const backward *b)
{
    const attention_share *s = &b->share;
    return !s->call->out[3] || s->position + s->call->rows >= s->attr->T;
}

static int64_t sequence_of(const backward *b, int64_t lane)
{
    return lane / b->share.attr->G;
}

/* ---- a chunk of queries and a part of its keys */

/* Positions [first, last) of a chunk of queries, which sees keys [key_first, key_last), the `own`
 * last of them not from its first query on. The keys are split into parts of about equal work. */
typedef struct {
    int64_t first, last, key_first, key_last, own, parts;
} chunk;

static int64_t chunks_of(const backward *b, int64_t lane)
{
    const int64_t end = attention_end(&b->share, sequence_of(b, lane));
    return (end + b->chunk - 1) / b->chunk - b->share.position / b->chunk;
}

/* Threads that share a lane are up to one part apart for each turn: with twice as many parts as
 * threads, a thread rarely waits for the turn before its own. */
static chunk chunk_at(const backward *b, int64_t lane, int64_t index)
{
    const attention_share *s = &b->share;
    const hr_attention_mask mask = attention_mask_of(s->attr);
    const int64_t at = (s->position / b->chunk + index) * b->chunk;
    const bool near = mask.kind == HR_PATTERN_LOCAL || mask.kind == HR_PATTERN_SLIDING;
    chunk c = { .first = hr_max(at, s->position),
                .last = hr_min(at + b->chunk, attention_end(s, sequence_of(b, lane))),
                .parts = 1 };
    if (near && !s->begins) c.key_first = attention_near(&mask, at) / b->step * b->step;
    c.key_last = hr_max(hr_attention_keys_seen(&mask, c.last - 1), 1);
    c.own = c.key_last - hr_attention_keys_seen(&mask, c.first - 1);
    if (b->shared)
        c.parts = hr_min(2 * s->call->threads, (c.key_last - c.key_first + b->step - 1) / b->step);
    return c;
}

/* The first key of a part. Own keys are seen by half of the queries, on average. */
static int64_t part_start(const backward *b, const chunk *c, int64_t part)
{
    const int64_t others = c->key_last - c->own - c->key_first;
    const int64_t work = (2 * others + c->own) * part / c->parts;
    const int64_t keys = work < 2 * others ? work / 2 : work - others;
    return part == c->parts ? c->key_last : (c->key_first + keys) / b->step * b->step;
}

/* The same in a document, which may begin anywhere: less by less than a tile of keys. */
static int64_t part_start_in(const backward *b, const chunk *c, int64_t part, int64_t document)
{
    const int64_t key = part_start(b, c, part) - document;
    return hr_max(key, 0) / ATTENTION_KEY_TILE * ATTENTION_KEY_TILE;
}

/* One past the last key of the piece's document, as far as a strip of keys can reach. After the
 * last queries of a part no key has a sum yet. */
static int64_t keys_end(const attention_share *s, const attention_piece *piece)
{
    const int64_t end = attention_end(s, piece->sequence);
    if (s->attr->mask.kind == HR_PATTERN_COMPRESSED)
        return hr_attention_keys_seen(&s->attr->mask, (s->attr->in_parts ? s->attr->T : end) - 1);
    const int64_t last = hr_min(end, piece->last + ATTENTION_STRIP_MAX);
    const int64_t found = attention_piece_at(s, piece->sequence, piece->first, last).last;
    return s->attr->in_parts && found == end ? s->attr->T : found;
}

/* The task of some queries of a head, with the operands of the backward pass. */
static hr_attention_task task_of(const attention_share *s, const attention_piece *piece,
                                 int64_t head)
{
    const hr_attention_attr *attr = s->attr;
    const hr_call *call = s->call;
    const int64_t row = attention_row(s, piece->sequence, piece->first);
    const int64_t width = (int64_t)attr->H * attr->head_width;
    void *o = attr->has_dots ? call->in[4] : call->in[3];
    hr_attention_task task = attention_task_of(s, piece, head, o, call->in[5]);
    if (attr->has_dots) task.dots = (const float *)call->in[3] + row * attr->H + head;
    task.grad_o = attention_rows_at(s, call->in[4], width, row, attention_output_heads(attr), head);
    task.dq = attention_rows_at(s, call->out[0], attr->q_width, row, attention_query_heads(attr),
                                head);
    return task;
}

/* to = from / scale. Loops of a constant length, which compilers turn into vectors. */
static void take_scaled(const void *restrict from, int64_t count, hr_dtype dtype, float scale,
                        float *restrict to)
{
    enum { PIECE = 16 };
    const float *wide = from;
    const hr_bf16 *half = from;
    int64_t c = 0;
    for (; dtype == HR_F32 && c + PIECE <= count; c += PIECE)
        for (int64_t l = 0; l < PIECE; l++) to[c + l] = wide[c + l] / scale;
    for (; dtype == HR_BF16 && c + PIECE <= count; c += PIECE)
        for (int64_t l = 0; l < PIECE; l++) to[c + l] = hr_bf16_to_f32(half[c + l]) / scale;
    for (; c < count; c++) to[c] = hr_element_get(from, c, dtype) / scale;
}

/* Begins the sums of dq of a task with the addend, before the scale. */
static void begin_with_addend(const attention_share *s, const attention_piece *piece, int64_t head,
                              float *dq_sum)
{
    const hr_attention_attr *attr = s->attr;
    const int64_t sum_row = attention_padded(attr->head_width), length = piece->last - piece->first;
    const hr_attention_rows from = attention_rows_at(
        s, s->call->in[7], attr->q_width, attention_row(s, piece->sequence, piece->first),
        attention_query_heads(attr), head);
    for (int64_t i = 0; i < attention_padded(length) * sum_row; i++) dq_sum[i] = 0;
    for (int64_t i = 0; i < length; i++)
        take_scaled(hr_element_at(from.first, i * from.stride, s->call->dtype), attr->head_width,
                    s->call->dtype, attr->scale, dq_sum + i * sum_row);
}

static void run_selected(const backward *b, int64_t lane, const chunk *c, int64_t part,
                         int64_t part_end);

/* Runs parts [part, part_end) of heads [head, head_end) of the group. */
static void run_parts(const backward *b, int64_t lane, const chunk *c, int64_t head,
                      int64_t head_end, int64_t part, int64_t part_end)
{
    const attention_share *s = &b->share;
    const hr_attention_attr *attr = s->attr;
    const hr_call *call = s->call;
    const int64_t sequence = sequence_of(b, lane), group = lane % attr->G;
    const int64_t heads = attr->H / attr->G;
    float *dk = sum_of(b, lane), *dv = dk + b->sum_count / 2;
    if (attr->mask.kind == HR_PATTERN_SELECTED) {
        run_selected(b, lane, c, part, part_end);
        return;
    }
    for (int64_t at = c->first; at < c->last;) {
        const attention_piece piece = attention_piece_at(s, sequence, at, c->last);
        for (int64_t i = head; i < head_end; i++) {
            hr_attention_task task = task_of(s, &piece, group * heads + i);
            task.first = i == 0;
            task.opens = part == 0;
            task.closes = part_end == c->parts;
            const int64_t end = hr_attention_keys_seen(&task.mask, task.query + task.length - 1);
            task.key_first = hr_min(part_start_in(b, c, part, piece.start), end);
            task.key_last = task.closes ? end
                                        : hr_min(part_start_in(b, c, part_end, piece.start), end);
            task.key_end = keys_end(s, &piece) - piece.start;
            task.dk_sum = dk + piece.start * b->sum_row;
            task.dv_sum = dv + piece.start * b->sum_row;
            task.dq_sum = b->dq_sums + (piece.first - c->first) * b->sum_row;
            task.begun = call->in[7] != NULL;
            if (task.opens && task.begun)
                begin_with_addend(s, &piece, group * heads + i, task.dq_sum);
            call->kernels->attention.bwd[call->dtype](&task);
        }
        at = piece.last;
    }
}

/* ---- selected blocks */

/* A chunk of queries of a group, with tasks for its heads. */
typedef struct {
    const backward *b;
    const chunk *c;
    attention_piece piece;
    int64_t lane, row, heads;
    const uint16_t *blocks; /* of the first query */
    hr_attention_task head; /* of the first head: all operands, the sums of the lane */
} selecting;

static selecting select_of(const backward *b, int64_t lane, const chunk *c)
{
    const attention_share *s = &b->share;
    const hr_attention_attr *attr = s->attr;
    const hr_call *call = s->call;
    const int64_t group = lane % attr->G;
    selecting w = { .b = b,
                    .c = c,
                    .piece = { sequence_of(b, lane), 0, c->first, c->last },
                    .lane = lane,
                    .heads = attr->H / attr->G };
    w.row = attention_row(s, w.piece.sequence, c->first);
    w.blocks = (const uint16_t *)call->in[6] + (w.row * attr->G + group) * attr->mask.window;
    w.head = task_of(s, &w.piece, group * w.heads);
    w.head.mask.kind = HR_PATTERN_DENSE;
    w.head.mask.block = INT32_MAX;
    w.head.dk_sum = sum_of(b, lane);
    w.head.dv_sum = w.head.dk_sum + b->sum_count / 2;
    return w;
}

static hr_attention_rows move_rows(const selecting *w, hr_attention_rows rows, int64_t elements)
{
    rows.first = hr_element_at(rows.first, elements, w->b->share.call->dtype);
    return rows;
}

/* The task of head `h` of the group: row 0 is the first query of the chunk. */
static hr_attention_task task_of_head(const selecting *w, int64_t h)
{
    const hr_attention_attr *attr = w->b->share.attr;
    hr_attention_task task = w->head;
    task.q = move_rows(w, task.q, h * attr->q_head_stride);
    task.dq = move_rows(w, task.dq, h * attr->q_head_stride);
    task.o = move_rows(w, task.o, h * attr->head_width);
    task.grad_o = move_rows(w, task.grad_o, h * attr->head_width);
    task.lse += h;
    if (task.dots) task.dots += h;
    task.dq_sum = w->b->dq_sums + h * attention_dq_count(attr, w->b->share.call->rows);
    return task;
}

/* Copies row `row` of a head to row `at`: `elements` from the first head. In pieces of a constant
 * size, which compilers copy in place. */
static inline void copy_row(const selecting *w, hr_attention_rows from, int64_t elements,
                            int64_t row, void *to, int64_t at)
{
    enum { PIECE = 64 };
    const hr_dtype dtype = w->b->share.call->dtype;
    const int64_t bytes = w->head.head_width * hr_dtype_bytes(dtype);
    const uint8_t *source = hr_element_at(from.first, elements + row * from.stride, dtype);
    uint8_t *target = (uint8_t *)to + at * bytes;
    int64_t done = 0;
    for (; done + PIECE <= bytes; done += PIECE) memcpy(target + done, source + done, PIECE);
    for (; done < bytes; done += 2) memcpy(target + done, source + done, 2);
}

/* Prefetches the row that copy_row will copy. */
static inline void prefetch_row(const selecting *w, hr_attention_rows from, int64_t elements,
                                int64_t row)
{
    const hr_dtype dtype = w->b->share.call->dtype;
    const uint8_t *source = hr_element_at(from.first, elements + row * from.stride, dtype);
    for (int64_t at = 0; at < w->head.head_width * hr_dtype_bytes(dtype); at += 64)
        __builtin_prefetch(source + at);
}

/* Adds a row of sums of dq: whole pieces of ATTENTION_ALIGN. */
static inline void add_row(const backward *b, const float *restrict from, float *restrict to)
{
    for (int64_t c = 0; c < b->sum_row; c += ATTENTION_ALIGN)
        for (int64_t l = 0; l < ATTENTION_ALIGN; l++) to[c + l] += from[c + l];
}

/* Copies rows [first, first + rows) of (query, head) pairs: heads change first. */
static void gather(const selecting *w, const int32_t *queries, int64_t count, int64_t first,
                   int64_t rows)
{
    enum { AHEAD = 2 };
    const attention_gathered *room = &w->b->gathered;
    const int64_t K = w->head.head_width, q_stride = w->b->share.attr->q_head_stride;
    int64_t at = first / w->heads, h = first % w->heads;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t query = queries[at], next = queries[hr_min(at + AHEAD, count - 1)];
        const int64_t of_row = h + query * w->head.lse_stride;
        prefetch_row(w, w->head.q, h * q_stride, next);
        prefetch_row(w, w->head.grad_o, h * K, next);
        copy_row(w, w->head.q, h * q_stride, query, room->q, i);
        if (w->head.dots) room->dots[i] = w->head.dots[of_row];
        else copy_row(w, w->head.o, h * K, query, room->o, i);
        copy_row(w, w->head.grad_o, h * K, query, room->grad_o, i);
        room->lse[i] = w->head.lse[of_row];
        if (++h == w->heads) h = 0, at++;
    }
}

/* Adds what these rows have got to the sums of dq. */
static void add_gathered(const selecting *w, const int32_t *queries, int64_t first, int64_t rows)
{
    const backward *b = w->b;
    const int64_t dq_count = attention_dq_count(b->share.attr, b->share.call->rows);
    int64_t at = first / w->heads, h = first % w->heads;
    for (int64_t i = 0; i < rows; i++) {
        float *sums = b->dq_sums + h * dq_count;
        add_row(b, b->gathered.dq + i * b->sum_row, sums + queries[at] * b->sum_row);
        if (++h == w->heads) h = 0, at++;
    }
}

/* Gathered rows, all of which see the whole block whose first key is `key`. */
static void run_gathered(const selecting *w, int64_t key, const int32_t *queries, int64_t count)
{
    const backward *b = w->b;
    const attention_gathered *room = &b->gathered;
    const hr_attention_attr *attr = b->share.attr;
    const int64_t most = attention_chunk(w->head.head_width), all = count * w->heads;
    const int64_t block = attr->mask.block, K = w->head.head_width;
    for (int64_t first = 0; first < all; first += most) {
        const int64_t rows = hr_min(most, all - first);
        gather(w, queries, count, first, rows);
        hr_attention_task task = w->head;
        task.q = (hr_attention_rows){ room->q, K, 0, 0 };
        task.o = (hr_attention_rows){ room->o, K, 0, 0 };
        if (task.dots) task.dots = room->dots;
        task.grad_o = (hr_attention_rows){ room->grad_o, K, 0, 0 };
        task.k = move_rows(w, task.k, key * task.k.stride);
        task.v = move_rows(w, task.v, key * task.v.stride);
        task.lse = room->lse;
        task.lse_stride = 1;
        task.query = block; /* after all keys */
        task.length = rows;
        task.key_last = task.key_end = block;
        task.dk_sum += key * b->sum_row;
        task.dv_sum += key * b->sum_row;
        task.dq_sum = room->dq;
        task.opens = true;
        b->share.call->kernels->attention.bwd[b->share.call->dtype](&task);
        add_gathered(w, queries, first, rows);
    }
}

/* Queries [first, last), at most an attention_chunk, of the block whose first key is `key`, in
 * place: each sees its keys up to its own. */
static void run_in_block(const selecting *w, int64_t key, int64_t first, int64_t last)
{
    const backward *b = w->b;
    const int64_t at = first - w->c->first;
    for (int64_t h = 0; h < w->heads; h++) {
        hr_attention_task task = task_of_head(w, h);
        float *dq = task.dq_sum + at * b->sum_row;
        task.q = move_rows(w, task.q, at * task.q.stride);
        task.o = move_rows(w, task.o, at * task.o.stride);
        task.grad_o = move_rows(w, task.grad_o, at * task.grad_o.stride);
        task.lse += at * task.lse_stride;
        if (task.dots) task.dots += at * task.lse_stride;
        task.k = move_rows(w, task.k, key * task.k.stride);
        task.v = move_rows(w, task.v, key * task.v.stride);
        task.query = first - key;
        task.length = last - first;
        task.key_last = last - key;
        task.key_end = hr_min(attention_end(&b->share, w->piece.sequence), last) - key;
        task.dk_sum += key * b->sum_row;
        task.dv_sum += key * b->sum_row;
        task.dq_sum = b->gathered.dq;
        task.opens = true;
        b->share.call->kernels->attention.bwd[b->share.call->dtype](&task);
        for (int64_t i = 0; i < task.length; i++)
            add_row(b, b->gathered.dq + i * b->sum_row, dq + i * b->sum_row);
    }
}

/* The queries of the chunk in the block whose first key is `key`. */
static void run_own(const selecting *w, int64_t key)
{
    const int64_t most = attention_chunk(w->head.head_width);
    const int64_t end = hr_min(key + w->b->share.attr->mask.block, w->c->last);
    for (int64_t first = hr_max(key, w->c->first); first < end; first += most)
        run_in_block(w, key, first, hr_min(first + most, end));
}

/* One past the last query that is gathered with the one at `position`. The bits of a product depend
 * on which rows it has, so these are the same in every part of a sequence. */
static int64_t gathered_end(const selecting *w, int64_t position)
{
    const int64_t rows = attention_chunks(w->b->share.attr);
    return (position / rows + 1) * rows;
}

/* Runs parts [part, part_end) of a chunk. Its own keys have no sums before it. */
static void run_selected(const backward *b, int64_t lane, const chunk *c, int64_t part,
                         int64_t part_end)
{
    const selecting w = select_of(b, lane, c);
    const hr_attention_attr *attr = b->share.attr;
    const int64_t block = attr->mask.block,
                  dq_count = attention_dq_count(attr, b->share.call->rows);
    const int64_t key_first = part_start(b, c, part), key_last = part_start(b, c, part_end);
    const bool opens = part == 0;
    for (int64_t i = 0; opens && i < w.heads * dq_count; i++) b->dq_sums[i] = 0;
    for (int64_t h = 0; opens && b->share.call->in[7] && h < w.heads; h++)
        begin_with_addend(&b->share, &w.piece, lane % attr->G * w.heads + h,
                          b->dq_sums + h * dq_count);
    for (int64_t key = hr_max(key_first, c->first); key < key_last; key++)
        for (int64_t i = 0; i < b->sum_row; i++)
            w.head.dk_sum[key * b->sum_row + i] = w.head.dv_sum[key * b->sum_row + i] = 0;
    const int64_t block_first = key_first / block, block_last = (key_last + block - 1) / block;
    attention_sort_by_block(&(attention_selection){ w.blocks, attr->G * attr->mask.window,
                                                    attr->mask.window, w.head.length },
                            block_first, block_last, b->gathered.first, b->gathered.entries);
    for (int64_t j = block_first; j < block_last; j++) {
        const int32_t *found = b->gathered.first + (j - block_first);
        const bool own = (j + 1) * block > c->first;
        if (own) run_own(&w, j * block);
        /* Queries of the chunk in later blocks; of earlier ones none sees this block. */
        int32_t from = found[0];
        while (own && from < found[1] && c->first + b->gathered.entries[from] < (j + 1) * block)
            from++;
        while (from < found[1]) {
            const int64_t end = gathered_end(&w, c->first + b->gathered.entries[from]);
            int32_t next = from;
            while (next < found[1] && c->first + b->gathered.entries[next] < end) next++;
            run_gathered(&w, j * block, b->gathered.entries + from, next - from);
            from = next;
        }
    }
    for (int64_t h = 0; part_end == c->parts && h < w.heads; h++) {
        hr_attention_task task = task_of_head(&w, h);
        task.dk = task.dq;
        task.dk_sum = task.dq_sum;
        task.dv = task.dq; /* one function stores sums of two tensors: here one of them twice */
        task.dv_sum = task.dq_sum;
        task.keep_scale = task.scale;
        b->share.call->kernels->attention.store[b->share.call->dtype](&task);
    }
}

/* ---- sums */

static void store_sums(const backward *b, int64_t lane, int64_t first, int64_t last)
{
    const attention_share *s = &b->share;
    const hr_attention_attr *attr = s->attr;
    const hr_call *call = s->call;
    const int64_t group = lane % attr->G;
    const int64_t sequence = sequence_of(b, lane);
    void *dk = s->fused ? call->out[0] : call->out[1], *dv = s->fused ? call->out[0] : call->out[2];
    float *sum = sum_of(b, lane) + first * b->sum_row;
    const hr_attention_task task = { .dk = attention_key_rows(s, dk, s->k_width, sequence, first,
                                                              attention_key_heads(attr), group),
                                     .dv = attention_key_rows(s, dv, s->v_width, sequence, first,
                                                              attention_value_heads(attr), group),
                                     .dk_sum = sum,
                                     .dv_sum = sum + b->sum_count / 2,
                                     .length = last - first,
                                     .head_width = attr->head_width,
                                     .dtype = call->dtype,
                                     .scale = attr->scale,
                                     .keep_scale = attr->dropout > 0
                                                       ? (float)(1 / (1 - (double)attr->dropout))
                                                       : 1 };
    call->kernels->attention.store[call->dtype](&task);
}

static bool inside_heads(attention_heads of, int64_t head_width, int64_t element)
{
    const int64_t at = element - of.offset, head = of.stride > 0 ? at / of.stride : 0;
    return at >= 0 && head < of.count && at - head * of.stride < head_width;
}

/* Writes zeros to elements of `rows` rows of a gradient that belong to no head. */
static void clear_gaps(const backward *b, void *tensor, int64_t width, int64_t first, int64_t rows,
                       const attention_heads *lists, int list_count)
{
    const int64_t head_width = b->share.attr->head_width;
    int64_t covered = 0;
    for (int i = 0; i < list_count; i++) covered += lists[i].count * head_width;
    for (int64_t c = 0; covered < width && c < width; c++) {
        bool inside = false;
        for (int i = 0; i < list_count; i++) inside |= inside_heads(lists[i], head_width, c);
        for (int64_t row = first; !inside && row < first + rows; row++)
            hr_element_set(tensor, row * width + c, b->share.call->dtype, 0);
    }
}

static void clear_all_gaps(const backward *b, int64_t sequence)
{
    const attention_share *s = &b->share;
    const hr_attention_attr *attr = s->attr;
    const attention_heads lists[] = { attention_query_heads(attr), attention_key_heads(attr),
                                      attention_value_heads(attr) };
    void *const *out = s->call->out;
    const int64_t end = attention_end(s, sequence), first = sequence * attr->T;
    clear_gaps(b, out[0], attr->q_width, first, end - s->position, lists, s->fused ? 3 : 1);
    if (s->fused || !is_last(b) || attr->mask.kind == HR_PATTERN_COMPRESSED) return;
    clear_gaps(b, out[1], attr->k_width, first, end, lists + 1, 1);
    clear_gaps(b, out[2], attr->v_width, first, end, lists + 2, 1);
}

/* ---- lanes of one thread */

static void run_lanes(const backward *b)
{
    const hr_call *call = b->share.call;
    int64_t first, last;
    hr_share(b->lanes, call->thread, call->threads, &first, &last);
    for (int64_t lane = first; lane < last; lane++) {
        const int64_t sequence = sequence_of(b, lane), end = attention_end(&b->share, sequence);
        for (int64_t i = 0; i < chunks_of(b, lane); i++) {
            const chunk c = chunk_at(b, lane, i);
            run_parts(b, lane, &c, 0, b->share.attr->H / b->share.attr->G, 0, c.parts);
        }
        const int64_t keys = hr_attention_keys_seen(&b->share.attr->mask, end - 1);
        if (is_last(b)) store_sums(b, lane, 0, keys);
        if (lane % b->share.attr->G == 0) clear_all_gaps(b, sequence);
    }
}

/* ---- lanes of several threads */

/* Walks through the turns in the order in which they are dealt: the first of each lane, the second
 * of each, and so on. */
typedef struct {
    const backward *b;
    int64_t unit;                   /* the next one: index of the turn x lanes + lane */
    int64_t start[HR_THREADS_MOST]; /* the phase in which the last turn of each lane begins */
    int64_t free[HR_THREADS_MOST];  /* in which threads are free again */
    chunk before[HR_THREADS_MOST];  /* the last chunk of each lane */
    chunk now;
    int64_t lane, head, begin; /* of the turn */
} walk;

/* The phases from the beginning of chunk `before` on, after which the next one adds to no keys to
 * which that still adds. */
static int64_t lag_of(const backward *b, const chunk *before, const chunk *now)
{
    int64_t lag = 1, begun = 0;
    for (int64_t part = 0; part < now->parts; part++) {
        const int64_t end = part_start(b, now, part + 1);
        while (begun < before->parts && part_start(b, before, begun) < end) begun++;
        lag = hr_max(lag, begun - part);
    }
    return lag;
}

/* Advances to the next turn; false: no more. */
static bool next_turn(walk *w)
{
    const backward *b = w->b;
    const int32_t threads = b->share.call->threads;
    int64_t most = 0;
    for (int64_t lane = 0; lane < b->lanes; lane++) most = hr_max(most, chunks_of(b, lane));
    for (; w->unit < most * b->turns * b->lanes; w->unit++) {
        const int64_t lane = w->unit % b->lanes, turn = w->unit / b->lanes;
        const int64_t thread = w->unit % threads, index = turn / b->turns;
        if (index >= chunks_of(b, lane)) continue;
        w->now = chunk_at(b, lane, index);
        w->lane = lane;
        w->head = turn % b->turns;
        w->begin = w->free[thread];
        if (turn > 0) {
            const int64_t lag = w->head > 0 ? 1 : lag_of(b, &w->before[lane], &w->now);
            w->begin = hr_max(w->begin, w->start[lane] + lag);
        }
        w->start[lane] = w->begin;
        w->before[lane] = w->now;
        w->free[thread] = w->begin + w->now.parts;
        w->unit++;
        return true;
    }
    return false;
}

/* The phases: those of the turns, and one to store the sums. */
int32_t hr_attention_bwd_phases(const hr_call *call)
{
    const backward b = backward_of(call);
    walk w = { .b = &b };
    int64_t last = 0;
    if (!b.shared) return 1;
    while (next_turn(&w)) last = hr_max(last, w.begin + w.now.parts);
    return (int32_t)(last + 1);
}

/* The part that this thread has in a phase. */
static void run_turn(const backward *b, int64_t phase)
{
    const hr_call *call = b->share.call;
    walk w = { .b = b };
    while (next_turn(&w)) {
        const int64_t part = phase - w.begin;
        if ((w.unit - 1) % call->threads != call->thread) continue;
        if (part < 0) return;
        if (part < w.now.parts) {
            const int64_t heads = b->share.attr->H / b->share.attr->G / b->turns;
            run_parts(b, w.lane, &w.now, w.head, w.head + heads, part, part + 1);
            return;
        }
    }
}

static void run_shared(const backward *b)
{
    const hr_call *call = b->share.call;
    if (call->phase + 1 < hr_attention_bwd_phases(call)) {
        run_turn(b, call->phase);
        return;
    }
    for (int64_t i = call->thread; i < b->share.sequences; i += call->threads) clear_all_gaps(b, i);
    for (int64_t lane = 0; is_last(b) && lane < b->lanes; lane++) {
        int64_t first, last;
        const int64_t end = attention_end(&b->share, sequence_of(b, lane));
        hr_share(hr_attention_keys_seen(&b->share.attr->mask, end - 1), call->thread, call->threads,
                 &first, &last);
        store_sums(b, lane, first, last);
    }
}

void hr_attention_bwd_run(const hr_call *call)
{
    const backward b = backward_of(call);
    if (b.shared) run_shared(&b);
    else run_lanes(&b);
}

const hr_op_run hr_attention_bwd_cpu_run = { hr_attention_bwd_run, 0, hr_attention_bwd_phases };
