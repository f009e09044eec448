/* SPDX-License-Identifier: Apache-2.0 */
/* ops/recurrence/recurrence_kernels.h - inner loops of a recurrence: some channels of one
 * sequence. */
#ifndef HR_OPS_RECURRENCE_KERNELS_H
#define HR_OPS_RECURRENCE_KERNELS_H

#include "ops/recurrence/recurrence_scratch.h"

/* Arrays of rows start at the first of these channels of the first token. */
typedef struct {
    const float *alpha;       /* [channels] */
    int64_t tokens, channels; /* channels <= HR_RECURRENCE_STRIPE */
    int64_t stride;           /* elements between tokens */
    hr_dtype dtype;
} hr_recurrence_part;

/* y = x + max(s, 0); state [channels] is in and out, or null: starts at zero. */
typedef void hr_recurrence_fwd_fn(const hr_recurrence_part *part, const void *u, const void *x,
                                  void *y, float *state);

/* Writes du, and the contribution of each block of tokens to dalpha.
 *   sums    [blocks of the tokens, stride] out
 *   states  [HR_RECURRENCE_BLOCK, HR_RECURRENCE_STRIPE] scratch */
typedef void hr_recurrence_bwd_fn(const hr_recurrence_part *part, const void *dy, const void *u,
                                  void *du, float *sums, float *states);

typedef struct {
    hr_recurrence_fwd_fn *fwd;
    hr_recurrence_bwd_fn *bwd;
} hr_recurrence_kernels;

/* One function per instruction set, each in its own file. */
void hr_recurrence_fill_ref(hr_recurrence_kernels *kernels);
void hr_recurrence_fill_avx2(hr_recurrence_kernels *kernels);
void hr_recurrence_fill_avx512(hr_recurrence_kernels *kernels);
void hr_recurrence_fill_avx512bf16(hr_recurrence_kernels *kernels);

#endif
