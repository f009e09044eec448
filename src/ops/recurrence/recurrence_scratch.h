/* SPDX-License-Identifier: Apache-2.0 */
/* ops/recurrence/recurrence_scratch.h - how the kernels cut a recurrence, and the scratch of the
 * backward pass: one block of states per thread, then the sums of all blocks. */
#ifndef HR_OPS_RECURRENCE_SCRATCH_H
#define HR_OPS_RECURRENCE_SCRATCH_H

#include "base/checked.h"
#include "ops/recurrence/recurrence.h"

/* Tokens per partial sum of dalpha, and channels per stripe. With this width each access to a row
 * is at least half a KiB, and the states of a block, 32 KiB, stay in cache. */
enum {
    HR_RECURRENCE_BLOCK = 64,
    HR_RECURRENCE_STRIPE = 128,
    HR_RECURRENCE_BLOCK_STATES = HR_RECURRENCE_BLOCK * HR_RECURRENCE_STRIPE
};

static inline int64_t hr_recurrence_stripes(int64_t C)
{
    return (C + HR_RECURRENCE_STRIPE - 1) / HR_RECURRENCE_STRIPE;
}

static inline int64_t hr_recurrence_blocks(int64_t tokens)
{
    return (tokens + HR_RECURRENCE_BLOCK - 1) / HR_RECURRENCE_BLOCK;
}

/* Blocks of all sequences; only the last sequence may be short. */
static inline int64_t hr_recurrence_blocks_of(int64_t rows, int64_t T)
{
    return rows / T * hr_recurrence_blocks(T) + hr_recurrence_blocks(rows % T);
}

#endif
