/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_scratch.h - layout of a thread's scratch.
 *
 * One layout for all instruction sets, sized for the largest (fp32 words, strips of 32 rows). The
 * same function counts the bytes and assigns the pointers. A word is one fp32 or a pair of bf16.
 * Packed operands are panels with as many columns as a vector has lanes. */
#ifndef HR_OPS_ATTENTION_SCRATCH_H
#define HR_OPS_ATTENTION_SCRATCH_H

#include <stddef.h>

#include "base/checked.h"
#include "ops/attention/attention.h"

enum {
    ATTENTION_ALIGN = 32,          /* column multiple of products and packed lengths */
    ATTENTION_STRIP_MAX = 32,      /* largest number of rows in a strip */
    ATTENTION_QUERY_TILE = 128,    /* forward: queries per tile */
    ATTENTION_LONG_TILE = 512,     /* if each packs its keys */
    ATTENTION_KEY_CHUNK = 256,     /* forward: keys per update of the running maximum */
    ATTENTION_KEY_TILE = 64,       /* backward: keys per tile */
    ATTENTION_QUERY_BLOCK = 128,   /* backward: queries whose gradients of scores exist at a time */
    ATTENTION_CHUNK_WORDS = 32768, /* backward: a packed operand of a chunk of queries */
    ATTENTION_KEY_RANGE = 512,     /* backward: whole blocks of any selection */
    ATTENTION_WHOLE = 4096,        /* forward: keys of a document, up to which all are packed */
    ATTENTION_PAD = 16             /* words of padding per row, to avoid cache set conflicts */
};

/* Queries of a chunk of the backward pass: whole blocks, whose packed rows stay in the cache. A
 * power of 2, so that parts of sequences have whole chunks. */
static inline int64_t attention_chunk(int64_t head_width)
{
    const int64_t rows = ATTENTION_CHUNK_WORDS / hr_round_up(head_width, ATTENTION_ALIGN);
    return hr_min(HR_PART_ROWS, rows / ATTENTION_QUERY_BLOCK * ATTENTION_QUERY_BLOCK);
}

/* Row stride, in words, of a strip copied from q, k or v, with one element per fp32 word. */
enum { ATTENTION_STRIP_WORDS = HR_ATTENTION_HEAD_MAX + ATTENTION_PAD };

typedef struct {
    uint32_t *keys;     /* K transposed: [length / lanes][width words][lanes] */
    uint32_t *values;   /* V by rows: [width / lanes][length words][lanes] */
    uint32_t *strip;    /* rows of Q */
    float *scores;      /* [strip][KEY_CHUNK + PAD] */
    uint32_t *p;        /* exponentials of the scores, as words along the keys; same rows */
    float *sums;        /* o before division: [QUERY_TILE][width] */
    float *max, *total; /* per row: running maximum, sum of exponentials; one part per strip */
} attention_scratch;

typedef struct {
    uint32_t *q_columns, *g_columns; /* Q, dO transposed: a chunk of queries */
    uint32_t *q_rows, *g_rows;       /* Q, dO by rows */
    uint32_t *k_rows;                /* K by rows: a tile of keys */
    float *lse, *delta;              /* lse in base 2; sum of dO * O */
    uint32_t *k_strip, *v_strip;     /* [KEY_TILE] rows of K and V */
    float *score, *dp;               /* one block: [strip][2 panels] */
    uint32_t *p, *ds;                /* P', dS': [KEY_TILE] rows of words along the queries */
    uint32_t *ds_pairs;              /* dS' as pairs of keys, if words are pairs */
    float *edge;                     /* [strip][width]: sums of a strip that is not all there */
} attention_bwd_scratch;

/* Takes `count` 4-byte words at *at and advances *at. With a null base it only counts. */
static inline void *attention_take(uint8_t *base, int64_t *at, int64_t count)
{
    void *taken = base ? base + *at : NULL;
    *at += hr_round_up(count * (int64_t)sizeof(float), 64);
    return taken;
}

static inline int64_t attention_padded(int64_t count)
{
    return hr_round_up(count, ATTENTION_ALIGN);
}

/* Lays out the forward scratch for `length` packed keys and a tile of `queries` at `base` (64-byte
 * aligned, or null); returns its size in bytes. */
static inline int64_t attention_scratch_place(uint8_t *base, int64_t length, int64_t queries,
                                              int64_t head_width, attention_scratch *out)
{
    const int64_t width = attention_padded(head_width), packed = attention_padded(length) * width;
    const int64_t row = ATTENTION_KEY_CHUNK + ATTENTION_PAD;
    int64_t at = 0;
    out->keys = attention_take(base, &at, packed);
    out->values = attention_take(base, &at, packed);
    out->strip = attention_take(base, &at, ATTENTION_STRIP_MAX * ATTENTION_STRIP_WORDS);
    out->scores = attention_take(base, &at, ATTENTION_STRIP_MAX * row);
    out->p = attention_take(base, &at, ATTENTION_STRIP_MAX * row);
    out->sums = attention_take(base, &at, queries * width);
    out->max = attention_take(base, &at, 2 * queries);
    out->total = attention_take(base, &at, 2 * queries);
    return at;
}

/* The same for backward: `length` queries, at most a chunk. */
static inline int64_t attention_bwd_scratch_place(uint8_t *base, int64_t length, int64_t head_width,
                                                  attention_bwd_scratch *out)
{
    const int64_t width = attention_padded(head_width), rows = attention_padded(length);
    const int64_t row = ATTENTION_QUERY_BLOCK + ATTENTION_PAD;
    int64_t at = 0;
    out->q_columns = attention_take(base, &at, rows * width);
    out->g_columns = attention_take(base, &at, rows * width);
    out->q_rows = attention_take(base, &at, rows * width);
    out->g_rows = attention_take(base, &at, rows * width);
    out->k_rows = attention_take(base, &at, ATTENTION_KEY_TILE * width);
    out->lse = attention_take(base, &at, rows);
    out->delta = attention_take(base, &at, rows);
    out->k_strip = attention_take(base, &at, ATTENTION_KEY_TILE * ATTENTION_STRIP_WORDS);
    out->v_strip = attention_take(base, &at, ATTENTION_KEY_TILE * ATTENTION_STRIP_WORDS);
    out->score = attention_take(base, &at, ATTENTION_STRIP_MAX * ATTENTION_ALIGN);
    out->dp = attention_take(base, &at, ATTENTION_STRIP_MAX * ATTENTION_ALIGN);
    out->p = attention_take(base, &at, ATTENTION_KEY_TILE * row);
    out->ds = attention_take(base, &at, ATTENTION_KEY_TILE * row);
    out->ds_pairs = attention_take(base, &at, ATTENTION_KEY_TILE / 2 * row);
    out->edge = attention_take(base, &at, ATTENTION_STRIP_MAX * width);
    return at;
}

/* Whether forward packs all keys of a sequence at once: a short one, of which a call has the
 * start. */
static inline bool attention_is_whole(const hr_attention_attr *attr)
{
    return attr->T <= ATTENTION_WHOLE && !attr->in_parts;
}

/* Bytes of one thread of the forward pass in a call of `rows`: for the longest sequence. */
static inline int64_t attention_thread_bytes(const hr_attention_attr *attr, int64_t rows)
{
    attention_scratch room;
    if (attention_is_whole(attr))
        return attention_scratch_place(NULL, hr_min(attr->T, rows), ATTENTION_QUERY_TILE,
                                       attr->head_width, &room);
    return attention_scratch_place(NULL, ATTENTION_KEY_CHUNK, ATTENTION_LONG_TILE, attr->head_width,
                                   &room);
}

/* Backward: a *lane* is a group of heads of a sequence, whose keys have one sum of dk and dv. With
 * fewer lanes than threads, threads share lanes. */
static inline int64_t attention_lanes(const hr_attention_attr *attr, int64_t rows)
{
    return (rows + attr->T - 1) / attr->T * attr->G;
}

/* Tiles, or chunks, of queries that go over selected blocks together. */
static inline int64_t attention_together(const hr_attention_attr *attr)
{
    return attr->mask.kind == HR_PATTERN_SELECTED ? hr_part_together(attr->T) : 1;
}

/* Queries whose sums of dq a thread has at a time. */
static inline int64_t attention_chunks(const hr_attention_attr *attr)
{
    return attention_together(attr) * attention_chunk(attr->head_width);
}

/* Floats of the sum of dq of a head: of these queries, whose parts are padded. */
static inline int64_t attention_dq_count(const hr_attention_attr *attr, int64_t rows)
{
    const int64_t queries = hr_min(hr_min(attr->T, rows), attention_chunks(attr));
    return (attention_padded(queries) + ATTENTION_ALIGN) * attention_padded(attr->head_width);
}

/* Selected blocks: gathered rows of q, o and do of one product, with lse and sums of dq. */
typedef struct {
    void *q, *o, *grad_o; /* o unless it is not read */
    float *lse, *dots, *dq;
    int32_t *first, *entries; /* as forward */
} attention_gathered;

static inline int64_t attention_gathered_place(uint8_t *base, const hr_attention_attr *attr,
                                               attention_gathered *out)
{
    const int64_t rows = attention_chunk(attr->head_width), K = attr->head_width;
    const int64_t block = attr->mask.block, count = attr->mask.window;
    int64_t at = 0;
    out->q = attention_take(base, &at, rows * K);
    out->o = attention_take(base, &at, attr->has_dots ? 0 : rows * K);
    out->grad_o = attention_take(base, &at, rows * K);
    out->lse = attention_take(base, &at, rows);
    out->dots = attention_take(base, &at, rows);
    out->dq = attention_take(base, &at, (rows + ATTENTION_ALIGN) * attention_padded(K));
    out->first = attention_take(base, &at, (attr->T + block - 1) / block + 1);
    out->entries = attention_take(base, &at, attention_chunks(attr) * count);
    return at;
}

/* The heads whose sums of dq a thread has at a time: all of a group if it gathers their rows
 * together. */
static inline int64_t attention_bwd_heads(const hr_attention_attr *attr)
{
    return attr->mask.kind == HR_PATTERN_SELECTED ? attr->H / attr->G : 1;
}

/* Bytes of one thread of the backward pass, without sums of keys: sums of dq of `heads` heads come
 * first. */
static inline int64_t attention_bwd_thread_bytes(const hr_attention_attr *attr, int64_t rows,
                                                 int64_t heads)
{
    attention_bwd_scratch room;
    const int64_t queries = hr_min(hr_min(attr->T, rows), attention_chunk(attr->head_width));
    attention_gathered gathered;
    const bool selects = attr->mask.kind == HR_PATTERN_SELECTED;
    return heads * attention_dq_count(attr, rows) * (int64_t)sizeof(float) +
           (selects ? attention_gathered_place(NULL, attr, &gathered) : 0) +
           attention_bwd_scratch_place(NULL, selects ? attention_chunk(attr->head_width) : queries,
                                       attr->head_width, &room);
}

/* Bytes of a call with so many lanes. Each lane in work has its sums. */
static inline int64_t attention_bwd_bytes_of(const hr_attention_attr *attr, int64_t rows,
                                             int64_t lanes, int32_t threads)
{
    const int64_t heads = attention_bwd_heads(attr);
    const int64_t sums = attr->in_parts ? 0 : hr_min(lanes, threads);
    return sums * hr_attention_sum_count(attr, rows) * (int64_t)sizeof(float) +
           threads * attention_bwd_thread_bytes(attr, rows, heads);
}

/* Bytes of calls of up to `rows`: fewer may have fewer lanes than threads. */
static inline int64_t attention_bwd_bytes(const hr_attention_attr *attr, int64_t rows,
                                          int32_t threads)
{
    const int64_t lanes = attention_lanes(attr, rows);
    const int64_t fewer = hr_min(lanes, (threads - 1) / attr->G * attr->G);
    return hr_max(attention_bwd_bytes_of(attr, rows, lanes, threads),
                  fewer ? attention_bwd_bytes_of(attr, rows, fewer, threads) : 0);
}

/* Selected blocks: the running sums of a tile, and the queries of each block. */
static inline int64_t attention_selected_tile(const hr_attention_attr *attr)
{
    return 512 * attention_together(attr);
}

typedef struct {
    float *sums;        /* [queries, heads, width] */
    float *max, *total; /* [queries, heads] */
    int32_t *first;     /* [blocks + 1] */
    int32_t *entries;   /* [queries, count] */
} attention_selected_scratch;

static inline int64_t attention_selected_place(uint8_t *base, int64_t queries, int64_t heads,
                                               int64_t count, int64_t blocks, int64_t head_width,
                                               attention_selected_scratch *out,
                                               attention_scratch *strips)
{
    const int64_t rows = attention_padded(queries * heads);
    int64_t at = attention_scratch_place(base, ATTENTION_KEY_CHUNK, ATTENTION_QUERY_TILE,
                                         head_width, strips);
    out->sums = attention_take(base, &at, rows * attention_padded(head_width));
    out->max = attention_take(base, &at, rows);
    out->total = attention_take(base, &at, rows);
    out->first = attention_take(base, &at, blocks + 1);
    out->entries = attention_take(base, &at, queries * count);
    return at;
}

static inline int64_t attention_selected_thread_bytes(const hr_attention_attr *attr)
{
    attention_selected_scratch room;
    attention_scratch strips;
    const int64_t block = attr->mask.block;
    return attention_selected_place(
        NULL, hr_min(attr->T, attention_selected_tile(attr)), attr->H / attr->G, attr->mask.window,
        (attr->T + block - 1) / block, attr->head_width, &room, &strips);
}

static inline int64_t attention_cached_thread_bytes(const hr_attention_cached_attr *attr)
{
    attention_scratch room;
    return attention_scratch_place(NULL, ATTENTION_KEY_CHUNK, ATTENTION_QUERY_TILE,
                                   attr->head_width, &room);
}

#endif
