/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_kernels.h - the share of attention that one thread computes, per
 * instruction set.
 *
 * A kernel computes queries of one head of a document: a sequence, or a part of one. Query i of the
 * document sees its keys up to i. Heads that share keys and values form a *group*. */
#ifndef HR_OPS_ATTENTION_KERNELS_H
#define HR_OPS_ATTENTION_KERNELS_H

#include "base/random.h"
#include "ops/attention/attention.h"

/* Rows of one head: row i starts at element i * stride. Using a row prefetches the row that is
 * ahead_rows rows and ahead_elements elements further; this address may be past the end of the
 * tensor. */
typedef struct {
    void *first;
    int64_t stride, ahead_rows, ahead_elements;
} hr_attention_rows;

typedef struct {
    hr_attention_rows q, k, v, o; /* forward writes o, backward reads it */
    hr_attention_rows grad_o, dq; /* backward only */
    float *lse;                   /* row i at i * lse_stride; null: not requested (forward) */
    int64_t lse_stride;
    const float *dots; /* backward, with the rows of lse: grad_o . o; null: o is read */
    int64_t query;     /* index of the first query: row 0 of q, o, grad_o, dq and lse */
    int64_t length;    /* queries; backward: at most attention_chunk(head_width) */
    int32_t head_width;
    hr_dtype dtype;
    hr_attention_mask mask; /* dense, sliding: block is T */
    float scale;            /* > 0 */

    bool first; /* head of its group in this call */

    /* Forward: whether all keys are packed at once, for queries from 0 on. Heads of a group then
     * share them: the `first` packs. Otherwise a chunk of keys at a time. */
    bool whole;

    /* If `drops`: p[i,j] is dropped if element j of the row i rows after `random` is below
     * `threshold`. */
    bool drops;
    hr_random_row random;
    uint32_t threshold;
    float keep_scale; /* 1 / (1 - dropout) */

    /* Backward, for keys [key_first, key_last): adds to the sums of dq, dk and dv, before their
     * scales. Rows of sums are attention_padded(head_width) apart. That of dq starts with the key
     * range that `opens`, unless it has `begun` with other values, and is scaled and stored after
     * the one that `closes`. Those of a key start
     * with the `first` head of the queries that it belongs to. Rows of dk and dv from `key_end` on
     * are another document's, or none. */
    int64_t key_first, key_last, key_end;
    float *dq_sum, *dk_sum, *dv_sum;
    bool opens, closes, begun;
    /* Storing: `length` rows of dk and dv, from their sums. */
    hr_attention_rows dk, dv;

    void *scratch; /* laid out by attention_scratch.h */
} hr_attention_task;

/* Some heads of a group at consecutive positions, in one block of the mask, over a cache. At most
 * 128 (head, position) pairs. */
typedef struct {
    /* q, o: rows of the first head, `length` of them, row 0 at `position`. k, v: the group's rows
     * of the cache. No lse, no dropout; calls share no scratch contents. */
    hr_attention_task head;
    int64_t heads, q_head_stride, o_head_stride; /* elements */
    int64_t position;
    int64_t capacity; /* row j of the sequence is row j mod capacity of k and v */
} hr_attention_cached_task;

/* Some queries of all heads of a group, over the blocks of keys that they have selected. */
typedef struct {
    /* q, o, lse: rows of the first head; lse of the others follow it. k, v: rows of the group from
     * the first key of the sequence on. The mask is dense; no dropout. */
    hr_attention_task head;
    int64_t heads, q_head_stride, o_head_stride; /* elements */
    int64_t block;                               /* keys of a block, at most 256 */
    /* Query i has `count` numbers of blocks from i * blocks_stride on, ascending, and after them
     * HR_ATTENTION_NO_BLOCK. The last has the query itself. */
    const uint16_t *blocks;
    int64_t blocks_stride, count;
} hr_attention_selected_task;

/* The probabilities of the keys of a group, added up over its heads: at most 128 (head, query)
 * pairs. */
typedef struct {
    /* q, lse: as above; without lse it is computed. k: rows of the group. */
    hr_attention_task head;
    int64_t heads, q_head_stride;
    float *sums; /* out: of query i from i * sum_row on, for the keys that it sees */
    int64_t sum_row;
} hr_attention_scores_task;

typedef void hr_attention_fn(const hr_attention_task *task);
typedef void hr_attention_cached_fn(const hr_attention_cached_task *task);
typedef void hr_attention_selected_fn(const hr_attention_selected_task *task);
typedef void hr_attention_scores_fn(const hr_attention_scores_task *task);

typedef struct {
    hr_attention_fn *fwd[HR_ACTIVATIONS], *bwd[HR_ACTIVATIONS], *store[HR_ACTIVATIONS];
    hr_attention_cached_fn *cached[HR_ACTIVATIONS];
    hr_attention_selected_fn *selected[HR_ACTIVATIONS];
    hr_attention_scores_fn *scores[HR_ACTIVATIONS];
} hr_attention_kernels;

/* Fills the table for a CPU feature mask (base/cpu.h). Any thread. */
void hr_attention_kernels_fill(hr_attention_kernels *kernels, uint32_t cpu_mask);

/* One function per instruction set, each in its own file. The first three take both dtypes; the
 * others only bf16. */
hr_attention_fn hr_attention_fwd_ref, hr_attention_bwd_ref, hr_attention_store_ref;
hr_attention_fn hr_attention_fwd_avx2, hr_attention_bwd_avx2, hr_attention_store_avx2;
hr_attention_fn hr_attention_fwd_avx512, hr_attention_bwd_avx512, hr_attention_store_avx512;
hr_attention_fn hr_attention_fwd_bf16_avx512bf16, hr_attention_bwd_bf16_avx512bf16;
hr_attention_fn hr_attention_fwd_bf16_amx, hr_attention_bwd_bf16_amx;
hr_attention_cached_fn hr_attention_cached_ref, hr_attention_cached_avx2,
    hr_attention_cached_avx512;
hr_attention_cached_fn hr_attention_cached_bf16_avx512bf16, hr_attention_cached_bf16_amx;
hr_attention_selected_fn hr_attention_selected_ref, hr_attention_selected_avx2,
    hr_attention_selected_avx512;
hr_attention_selected_fn hr_attention_selected_bf16_avx512bf16, hr_attention_selected_bf16_amx;
hr_attention_scores_fn hr_attention_scores_ref, hr_attention_scores_avx2,
    hr_attention_scores_avx512;
hr_attention_scores_fn hr_attention_scores_bf16_avx512bf16, hr_attention_scores_bf16_amx;

#endif
