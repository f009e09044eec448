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
    ATTENTION_ALIGN = 32,        /* column multiple of products and packed lengths */
    ATTENTION_STRIP_MAX = 32,    /* largest number of rows in a strip */
    ATTENTION_QUERY_TILE = 128,  /* forward: queries per tile */
    ATTENTION_KEY_CHUNK = 256,   /* forward: keys per update of the running maximum */
    ATTENTION_KEY_TILE = 64,     /* backward: keys per tile */
    ATTENTION_QUERY_CHUNK = 128, /* backward: queries per chunk */
    ATTENTION_PAD = 16           /* words of padding per row, to avoid cache set conflicts */
};

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
    uint32_t *q_columns, *g_columns;    /* Q, dO transposed */
    uint32_t *q_rows, *g_rows, *k_rows; /* Q, dO, K by rows */
    float *dq, *dk, *dv;                /* [length][width] */
    float *lse, *delta;                 /* lse in base 2; sum of dO * O */
    uint32_t *k_strip, *v_strip;        /* [KEY_TILE] rows of K and V */
    float *score, *dp;                  /* one block: [strip][2 panels] */
    uint32_t *p, *ds;                   /* P', dS': [KEY_TILE] rows of words along the queries */
    uint32_t *ds_pairs;                 /* dS' as pairs of keys, if words are pairs */
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

/* Lays out the forward scratch at `base` (64-byte aligned, or null); returns its size in bytes. */
static inline int64_t attention_scratch_place(uint8_t *base, int64_t length, int64_t head_width,
                                              attention_scratch *out)
{
    const int64_t width = attention_padded(head_width), packed = attention_padded(length) * width;
    const int64_t row = ATTENTION_KEY_CHUNK + ATTENTION_PAD;
    int64_t at = 0;
    out->keys = attention_take(base, &at, packed);
    out->values = attention_take(base, &at, packed);
    out->strip = attention_take(base, &at, ATTENTION_STRIP_MAX * ATTENTION_STRIP_WORDS);
    out->scores = attention_take(base, &at, ATTENTION_STRIP_MAX * row);
    out->p = attention_take(base, &at, ATTENTION_STRIP_MAX * row);
    out->sums = attention_take(base, &at, ATTENTION_QUERY_TILE * width);
    out->max = attention_take(base, &at, 2 * ATTENTION_QUERY_TILE);
    out->total = attention_take(base, &at, 2 * ATTENTION_QUERY_TILE);
    return at;
}

/* The same for backward. */
static inline int64_t attention_bwd_scratch_place(uint8_t *base, int64_t length, int64_t head_width,
                                                  attention_bwd_scratch *out)
{
    const int64_t width = attention_padded(head_width), rows = attention_padded(length);
    const int64_t row = ATTENTION_QUERY_CHUNK + ATTENTION_PAD;
    int64_t at = 0;
    out->q_columns = attention_take(base, &at, rows * width);
    out->g_columns = attention_take(base, &at, rows * width);
    out->q_rows = attention_take(base, &at, rows * width);
    out->g_rows = attention_take(base, &at, rows * width);
    out->k_rows = attention_take(base, &at, rows * width);
    out->dq = attention_take(base, &at, rows * width);
    out->dk = attention_take(base, &at, rows * width);
    out->dv = attention_take(base, &at, rows * width);
    out->lse = attention_take(base, &at, rows);
    out->delta = attention_take(base, &at, rows);
    out->k_strip = attention_take(base, &at, ATTENTION_KEY_TILE * ATTENTION_STRIP_WORDS);
    out->v_strip = attention_take(base, &at, ATTENTION_KEY_TILE * ATTENTION_STRIP_WORDS);
    out->score = attention_take(base, &at, ATTENTION_STRIP_MAX * ATTENTION_ALIGN);
    out->dp = attention_take(base, &at, ATTENTION_STRIP_MAX * ATTENTION_ALIGN);
    out->p = attention_take(base, &at, ATTENTION_KEY_TILE * row);
    out->ds = attention_take(base, &at, ATTENTION_KEY_TILE * row);
    out->ds_pairs = attention_take(base, &at, ATTENTION_KEY_TILE / 2 * row);
    return at;
}

/* Bytes of one thread in a call of `rows`: for the longest sequence. */
static inline int64_t attention_thread_bytes(const hr_attention_attr *attr, int64_t rows)
{
    attention_scratch room;
    return attention_scratch_place(NULL, hr_min(attr->T, rows), attr->head_width, &room);
}

static inline int64_t attention_bwd_thread_bytes(const hr_attention_attr *attr, int64_t rows)
{
    attention_bwd_scratch room;
    return attention_bwd_scratch_place(NULL, hr_min(attr->T, rows), attr->head_width, &room);
}

static inline int64_t attention_cached_thread_bytes(const hr_attention_cached_attr *attr)
{
    attention_scratch room;
    return attention_scratch_place(NULL, ATTENTION_KEY_CHUNK, attr->head_width, &room);
}

#endif
