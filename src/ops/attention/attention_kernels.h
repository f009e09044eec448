/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_kernels.h - what one thread computes of attention, on each rung.
 *
 * An inner function does one query head of one sequence. The heads that share keys and values are
 * its *group*: one thread does them in order, so that packed keys and the gradients of keys and
 * values can be carried in scratch from one head to the next. */
#ifndef HR_OPS_ATTENTION_KERNELS_H
#define HR_OPS_ATTENTION_KERNELS_H

#include "base/random.h"
#include "ops/attention/attention.h"

/* Rows of one head: row i starts at element i * stride. When it is used, what lies so many rows and
 * elements further is asked for: a hint, maybe behind the tensor's end. */
typedef struct {
    void *first;
    int64_t stride, ahead_rows, ahead_elements;
} hr_attention_rows;

typedef struct {
    hr_attention_rows q, k, v, o;         /* o is written by the forward and read by the backward */
    hr_attention_rows grad_o, dq, dk, dv; /* backward only; dk, dv are written at the last head */
    float *lse;                           /* row i at i * lse_stride; null: not wanted (forward) */
    int64_t lse_stride;
    int64_t length; /* rows, 1 to T */
    int32_t head_width;
    hr_dtype dtype;
    hr_attention_mask mask; /* dense, sliding: block is T */
    float scale;            /* > 0 */
    bool first, last;       /* head of its group */

    /* Dropout, if `drops`: p[i,j] is dropped where element j of the row i places behind `random` is
     * below `threshold`. */
    bool drops;
    hr_random_row random;
    uint32_t threshold;
    float keep_scale; /* 1 / (1 - dropout) */

    void *scratch; /* attention_scratch.h; carried through a group */
} hr_attention_task;

/* Some heads of a group at positions that follow each other, in one block of the mask, over a
 * cache. At most 128 pairs of a head and a position. */
typedef struct {
    /* q, o: rows of the first head, row 0 at `position`, `length` of them. k, v: the group's rows
     * of the cache. No lse, no dropout; nothing is carried from call to call. */
    hr_attention_task head;
    int64_t heads, q_head_stride, o_head_stride; /* elements */
    int64_t position;
    int64_t capacity; /* row j of the sequence is row j mod capacity of k and v */
} hr_attention_cached_task;

typedef void hr_attention_fn(const hr_attention_task *task);
typedef void hr_attention_cached_fn(const hr_attention_cached_task *task);

typedef struct {
    hr_attention_fn *fwd[2], *bwd[2]; /* [HR_F32], [HR_BF16] */
    hr_attention_cached_fn *cached[2];
} hr_attention_kernels;

/* Fills the table for a mask of base/cpu.h. Any thread. */
void hr_attention_kernels_fill(hr_attention_kernels *kernels, uint32_t cpu_mask);

/* The rungs, each in a file of its own. The first three take both types; the others bf16 alone. */
hr_attention_fn hr_attention_fwd_ref, hr_attention_bwd_ref;
hr_attention_fn hr_attention_fwd_avx2, hr_attention_bwd_avx2;
hr_attention_fn hr_attention_fwd_avx512, hr_attention_bwd_avx512;
hr_attention_fn hr_attention_fwd_bf16_avx512bf16, hr_attention_bwd_bf16_avx512bf16;
hr_attention_fn hr_attention_fwd_bf16_amx, hr_attention_bwd_bf16_amx;
hr_attention_cached_fn hr_attention_cached_ref, hr_attention_cached_avx2,
    hr_attention_cached_avx512;
hr_attention_cached_fn hr_attention_cached_bf16_avx512bf16, hr_attention_cached_bf16_amx;

#endif
