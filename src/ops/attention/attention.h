/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention.h - causal attention that does not store the scores.
 *
 *     o[i] = sum_j p[i,j] v[j],  p[i,.] = dropout(softmax_j(scale * q[i].k[j])), unmasked j <= i
 *
 * Heads and sequences are independent. Forward saves one number per row and head, the natural
 * logarithm of the sum of exponentials (lse); backward recomputes p from it. */
#ifndef HR_OPS_ATTENTION_H
#define HR_OPS_ATTENTION_H

#include <stdbool.h>

#include "ops/call.h"

/* Unmasked pairs of a query i and a key j <= i. Block masks, with block I of the query and J of the
 * key:
 *   dense   all            local   I - J <= window
 *   global  J mod stride = 0 or J = I
 *   mixed   I - J <= window or J mod stride = 0 or J = I
 * Token masks:
 *   sliding     i - j < window
 *   compressed  j stands for tokens [stride j, stride j + window), and is seen after the last of
 *               them: j < hr_attention_keys_seen(mask, i)
 *   selected    j is in one of the blocks of keys that the query lists (operand blocks)
 * Masked blocks cost neither time nor memory. With a sliding window this holds for keys more than a
 * few dozen tokens outside the window. */
typedef enum {
    HR_PATTERN_DENSE,
    HR_PATTERN_LOCAL,
    HR_PATTERN_GLOBAL,
    HR_PATTERN_MIXED,
    HR_PATTERN_SLIDING,
    HR_PATTERN_COMPRESSED,
    HR_PATTERN_SELECTED
} hr_pattern;

typedef struct {
    int32_t kind;   /* hr_pattern */
    int32_t block;  /* in tokens, >= 1; unused by dense, sliding and compressed */
    int32_t window; /* local, mixed: blocks, >= 0; sliding, compressed: tokens, >= 1; selected: the
                     * most blocks of a query */
    int32_t stride; /* in blocks, compressed in tokens, >= 1 */
} hr_attention_mask;

/* One past the last key that may be seen by query i: for a compressed mask the number of whole
 * groups of tokens up to i. The number of keys of a sequence of n tokens is that of query n - 1. */
static inline int64_t hr_attention_keys_seen(const hr_attention_mask *mask, int64_t query)
{
    if (mask->kind != HR_PATTERN_COMPRESSED) return query + 1;
    return query + 1 < mask->window ? 0 : (query + 1 - mask->window) / mask->stride + 1;
}

static inline bool hr_attention_keeps(const hr_attention_mask *mask, int64_t query, int64_t key)
{
    const int64_t apart = query / mask->block - key / mask->block;
    const bool near = apart <= mask->window;
    const bool column = key / mask->block % mask->stride == 0 || apart == 0;
    if (key >= hr_attention_keys_seen(mask, query)) return false;
    switch (mask->kind) {
    case HR_PATTERN_LOCAL: return near;
    case HR_PATTERN_GLOBAL: return column;
    case HR_PATTERN_MIXED: return near || column;
    case HR_PATTERN_SLIDING: return query - key < mask->window;
    default: return true;
    }
}

/* Operands. attention      in  q r, k R, v R, begins R, blocks R, position W
 *                          out o r, lse R
 *           attention_bwd  in  q r, k R, v R, o r, do r, lse r, begins or blocks R, addend R
 *                          out dq r, dk R, dv R, sums
 *
 * q, k, v are [rows, *] activations. If k and v are omitted, q holds all three ("fused"), and dq
 * then receives all three gradients at the same places (every element of dq is written). o, do:
 * [rows, H * head_width]. lse: fp32 [rows, H]; omitted in the forward pass when not needed. rows is
 * a multiple of T except in evaluation and sampling, whose last sequence may be short (row_first is
 * always a multiple of T).
 *
 * Instead of whole sequences, a call may have the rows of a part of one (in_parts), and k and v
 * from the start of the sequence on. Parts begin at multiples of HR_PART_ROWS, and have the
 * bits of the whole. Backward, the parts of a sequence come one after the other; sums, fp32 [G, 2,
 * T, head_width rounded up to 32], keeps what they add to dk and dv, which are written with the
 * last part.
 *
 * With `position`, int32 [1], that of the first row in its sequence, these are any rows of it, and
 * k and v are caches (in_parts; forward only).
 *
 * Of o, backward needs only its product with do. If an operation has that already, it is the
 * operand instead of o (has_dots): fp32 [rows, H]. With lse - log g as lse, do is that of g o.
 *
 * addend: [rows, *] as q, a gradient that is added to dq, with separate q, k and v. dq may be
 * exactly that. Separate documents do not go with it.
 *
 * begins: int32 [rows], index within its sequence of T of the first row of the row's document (that
 * row has its own index). Documents are then separate sequences, also for the mask. For dropout, j
 * counts from the start of the document, and i from that of the sequence. Omitted: each sequence is
 * one document.
 *
 * With a compressed mask, k and v have a row of [G * head_width] for each key instead; a sequence
 * has T k_width elements for them. A row that sees no key has o = 0.
 *
 * blocks: uint16 [rows, G * window], with a selected mask only: for each group of heads the numbers
 * of the blocks of its sequence that the row sees, ascending and with its own block, then
 * HR_ATTENTION_NO_BLOCK. Separate documents and dropout do not go with it.
 *
 * Head h of a row of q starts at q_offset + h * q_head_stride. The key-value head of query head h
 * is g = h / (H / G); its k starts at k_offset + g * k_head_stride, and likewise v. Strides and
 * offsets are in elements.
 *
 * Dropout (probability dropout > 0): p[i,j] of head h is dropped if element j of row (sequence, i)
 * of the random stream (seed, clock, site, h) is below hr_random_threshold(dropout), otherwise
 * scaled by 1 / (1 - dropout) (base/random.h); lse is computed before dropout.
 *
 * Numerics products and softmax in fp32 (with AVX512-BF16 and AMX the operands are bf16); exp has a
 *          relative error of 4e-6.
 * Repeat   the bits of a (sequence, group) depend on nothing else: sums over keys, and over
 *          queries, have one order. The first n rows of a sequence do not depend on later rows if
 *          those are finite, and a row does not depend on keys outside its window.
 * Threads  all work on one sequence with one head, if it has more than 4,096 tokens forward, or
 *          more than 512 backward: both are split
 *          by chunks of queries too.
 * Cost     4 * head_width FLOP for each unmasked pair (i, j) and head forward, 10 backward.
 * Source   Dao et al. 2022, arXiv:2205.14135 (forward, algorithm 1; backward, algorithm 4);
 *          sliding: Jiang et al. 2023, arXiv:2310.06825. */
typedef struct {
    int32_t H, G, head_width;
    int64_t T;
    /* row widths of the input tensors, in elements; of k and v 0 if q holds all three */
    int64_t q_width, k_width, v_width;
    int64_t q_offset, k_offset, v_offset;
    int64_t q_head_stride, k_head_stride, v_head_stride;
    hr_attention_mask mask;
    float scale;
    float dropout;
    uint32_t site;
    bool in_parts; /* rows are a part of a sequence; backward, the sums are an operand */
    bool has_dots; /* backward: o is do . o instead */
} hr_attention_attr;

/* Forward attention for rows that continue one sequence: queries at positions p, p + 1, ..., over a
 * KV cache (ops/kv_cache/kv_cache.h) that has the keys and values up to the last query.
 *
 * Operands. attention_cached  in  q r, key cache w, value cache w, position w      out  o r
 *
 *   position  int32 [1]: position p of the first row, >= 0
 *
 * q and o are as above; H / G heads share a head of the cache. Positions are below `capacity`,
 * except with a sliding window: its ring buffer has at least window + rows - 1 rows, in whole
 * HR_KV_CACHE_BLOCK.
 *
 * Numerics as the forward pass: a row is bit-identical to the row at the same position of the whole
 *          sequence with the same instruction set, for any split of the sequence into calls.
 * Cost     each head of the cache is read once per call for a few rows: a unit has up to 128 (head,
 *          row) pairs, fewer if there are fewer units than threads. */
typedef struct {
    int32_t H, G, head_width;
    int64_t capacity;
    int64_t q_width, q_offset, q_head_stride;
    hr_attention_mask mask;
    float scale;
} hr_attention_cached_attr;

/* Largest head width: multiples of 16 are fastest. Largest block of a selection, and no block. */
enum { HR_ATTENTION_HEAD_MAX = 256, HR_ATTENTION_BLOCK_MAX = 256, HR_ATTENTION_NO_BLOCK = 65535 };

/* Floats of the sum of dk and dv of a group of heads, [2, rows, width]: the widest kernels write
 * rows in whole vectors. */
static inline int64_t hr_attention_sum_count(const hr_attention_attr *attr, int64_t rows)
{
    enum { WIDTH_STEP_MOST = 32 };
    const int64_t tokens = rows < attr->T ? rows : attr->T;
    const int64_t length = hr_attention_keys_seen(&attr->mask, tokens - 1);
    const int64_t steps = (attr->head_width + WIDTH_STEP_MOST - 1) / WIDTH_STEP_MOST;
    return 2 * length * steps * WIDTH_STEP_MOST;
}

hr_run_fn hr_attention_run;
hr_run_fn hr_attention_bwd_run;
hr_run_fn hr_attention_cached_run;

/* The phases of hr_attention_bwd_run, which depend on the call. */
int32_t hr_attention_bwd_phases(const hr_call *call);

#endif
