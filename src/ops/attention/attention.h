/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention.h - causal attention that never writes scores.
 *
 *     o[i] = sum_j p[i,j] v[j],  p[i,.] = dropout(softmax_j(scale * q[i].k[j])), j <= i kept
 *
 * One chain per head and sequence. The forward pass keeps one number a row and head, the natural
 * logarithm of the sum of exponentials; the backward pass recomputes p from it. */
#ifndef HR_OPS_ATTENTION_H
#define HR_OPS_ATTENTION_H

#include <stdbool.h>

#include "ops/call.h"

/* Which pairs of a query i and a key j <= i are kept. By blocks, I of the query and J of the key:
 *   dense   all            local   I - J <= window
 *   global  J mod stride = 0 or J = I
 *   mixed   I - J <= window or J mod stride = 0 or J = I
 * and by tokens:
 *   sliding i - j < window
 * What is dropped costs neither time nor bytes: a block of the first four, and of the last whatever
 * lies a few dozen tokens from the window. */
typedef enum {
    HR_PATTERN_DENSE,
    HR_PATTERN_LOCAL,
    HR_PATTERN_GLOBAL,
    HR_PATTERN_MIXED,
    HR_PATTERN_SLIDING
} hr_pattern;

typedef struct {
    int32_t kind;   /* hr_pattern */
    int32_t block;  /* >= 1 tokens; any for dense and sliding */
    int32_t window; /* local, mixed: >= 0 blocks; sliding: >= 1 tokens */
    int32_t stride; /* >= 1 blocks */
} hr_attention_mask;

static inline bool hr_attention_keeps(const hr_attention_mask *mask, int64_t query, int64_t key)
{
    const int64_t apart = query / mask->block - key / mask->block;
    const bool near = apart <= mask->window;
    const bool column = key / mask->block % mask->stride == 0 || apart == 0;
    if (key > query) return false;
    switch (mask->kind) {
    case HR_PATTERN_LOCAL: return near;
    case HR_PATTERN_GLOBAL: return column;
    case HR_PATTERN_MIXED: return near || column;
    case HR_PATTERN_SLIDING: return query - key < mask->window;
    default: return true;
    }
}

/* Operands. attention      in  q r, k R, v R, begins R                    out o r, lse R
 *           attention_bwd  in  q r, k R, v R, o r, do r, lse r, begins R  out dq r, dk R, dv R
 *
 * q, k, v are [rows, *] activations. When k and v are left out, all three lie in q ("fused"), and
 * dq then receives all three gradients at the same places (every element of dq is written).
 * o, do: [rows, H * head_width]. lse: fp32 [rows, H]; left out of the forward when not needed.
 * rows is a multiple of T except in evaluation and sampling, whose last sequence may be short
 * (row_first is always a multiple of T).
 *
 * begins: int32 [rows], where in its sequence of T a row's document begins (that row has its own
 * index). Each document is a sequence of its own then, also to the mask. For dropout, j counts from
 * the start of the document, and i from that of the sequence. Left out: a sequence is one document.
 *
 * Head h of a row of q starts at q_offset + h * q_head_stride; the key-value head of query head h
 * is h / (H / G), its k at k_offset + g * k_head_stride, and so for v. Strides, offsets: elements.
 *
 * Dropout (probability dropout > 0): p[i,j] of head h is dropped when element j of row (sequence,
 * i) of the stream (seed, clock, site, h) is below hr_random_threshold(dropout), and scaled by
 * 1 / (1 - dropout) otherwise (base/random.h); lse is that of the scores before dropout.
 *
 * Numerics products in fp32 (bf16 operands on bf16 rungs), softmax in fp32; exp to 4e-6 relative.
 * Repeat   a (sequence, head) is computed by one thread; its bits depend on nothing else. The first
 *          n rows of a sequence do not depend on the rows after them, as long as those are finite,
 *          nor does a row on keys that its window drops.
 * Threads  the forward is shared by heads, the backward by key-value heads: sequences * G tasks.
 * Cost     4 * head_width FLOP for each kept pair (i, j) and head forward, 10 backward.
 * Source   Dao et al. 2022, arXiv:2205.14135 (forward, algorithm 1; backward, algorithm 4);
 *          sliding: Jiang et al. 2023, arXiv:2310.06825. */
typedef struct {
    int32_t H, G, head_width;
    int64_t T;
    int64_t q_width, k_width, v_width; /* elements of a row of each input tensor */
    int64_t q_offset, k_offset, v_offset;
    int64_t q_head_stride, k_head_stride, v_head_stride;
    hr_attention_mask mask;
    float scale;
    float dropout;
    uint32_t site;
} hr_attention_attr;

/* The forward pass for rows of one sequence that goes on: queries at positions p, p + 1, ... of it,
 * keys and values from a cache (ops/kv_cache/kv_cache.h) in which they are, up to the last query's.
 *
 * Operands. attention_cached  in  q r, key cache w, value cache w, position w      out  o r
 *
 *   position  int32 [1]: p is that of the step's first row, >= 0
 *
 * q and o are as above; H / G heads share a head of the cache. Positions end at `capacity`, but for
 * a sliding window, whose ring has window + rows - 1 rows or more, in whole HR_KV_CACHE_BLOCK.
 *
 * Numerics as the forward pass: a row has the bits that it has there, at the same position of the
 *          whole sequence on the same rung, however the sequence is cut into calls.
 * Cost     each head of the cache is read once a call for a few rows: 128 pairs of a head and a row
 *          at once, fewer where threads lack work. */
typedef struct {
    int32_t H, G, head_width;
    int64_t capacity;
    int64_t q_width, q_offset, q_head_stride;
    hr_attention_mask mask;
    float scale;
} hr_attention_cached_attr;

/* Largest head width. Multiples of 16 run at full speed. */
enum { HR_ATTENTION_HEAD_MAX = 256 };

/* Pairs (i, j) with j <= i < length that the mask keeps. */
int64_t hr_attention_pairs(const hr_attention_mask *mask, int64_t length);

int64_t hr_attention_scratch_bytes(const void *attr, int64_t rows, int32_t threads);
int64_t hr_attention_bwd_scratch_bytes(const void *attr, int64_t rows, int32_t threads);

hr_run_fn hr_attention_run;
hr_run_fn hr_attention_bwd_run;

int64_t hr_attention_cached_scratch_bytes(const void *attr, int64_t rows, int32_t threads);
hr_run_fn hr_attention_cached_run;

#endif
