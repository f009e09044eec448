/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_kernels.h - the share of attention that one thread computes, per
 * instruction set.
 *
 * A kernel computes one query head of one sequence. Heads that share keys and values form a
 * *group*. One thread computes them in order, so that scratch can carry packed keys and the
 * gradients of keys and values from one head to the next. */
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
    /* backward only; dk and dv are written with the last head */
    hr_attention_rows grad_o, dq, dk, dv;
    float *lse; /* row i at i * lse_stride; null: not requested (forward) */
    int64_t lse_stride;
    int64_t length; /* rows, 1 to T */
    int32_t head_width;
    hr_dtype dtype;
    hr_attention_mask mask; /* dense, sliding: block is T */
    float scale;            /* > 0 */
    bool first, last;       /* first or last head of its group */

    /* If `drops`: p[i,j] is dropped if element j of the row i rows after `random` is below
     * `threshold`. */
    bool drops;
    hr_random_row random;
    uint32_t threshold;
    float keep_scale; /* 1 / (1 - dropout) */

    void *scratch; /* laid out by attention_scratch.h; shared by the heads of a group */
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

typedef void hr_attention_fn(const hr_attention_task *task);
typedef void hr_attention_cached_fn(const hr_attention_cached_task *task);

typedef struct {
    hr_attention_fn *fwd[HR_COMPUTES], *bwd[HR_COMPUTES];
    hr_attention_cached_fn *cached[HR_COMPUTES];
} hr_attention_kernels;

/* Fills the table for a CPU feature mask (base/cpu.h). Any thread. */
void hr_attention_kernels_fill(hr_attention_kernels *kernels, uint32_t cpu_mask);

/* One function per instruction set, each in its own file. The first three take both dtypes; the
 * others only bf16. */
hr_attention_fn hr_attention_fwd_ref, hr_attention_bwd_ref;
hr_attention_fn hr_attention_fwd_avx2, hr_attention_bwd_avx2;
hr_attention_fn hr_attention_fwd_avx512, hr_attention_bwd_avx512;
hr_attention_fn hr_attention_fwd_bf16_avx512bf16, hr_attention_bwd_bf16_avx512bf16;
hr_attention_fn hr_attention_fwd_bf16_amx, hr_attention_bwd_bf16_amx;
hr_attention_cached_fn hr_attention_cached_ref, hr_attention_cached_avx2,
    hr_attention_cached_avx512;
hr_attention_cached_fn hr_attention_cached_bf16_avx512bf16, hr_attention_cached_bf16_amx;

#endif
