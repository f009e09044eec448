/* SPDX-License-Identifier: Apache-2.0 */
/* ops/norm/norm_scratch.h - the blocks of tokens whose sums the backward pass keeps in scratch. */
#ifndef HR_OPS_NORM_SCRATCH_H
#define HR_OPS_NORM_SCRATCH_H

#include "ops/norm/norm.h"

enum { HR_NORM_BLOCK_TOKENS = 64 };

/* Blocks of a sequence of T tokens. */
static inline int64_t hr_norm_blocks(int64_t T)
{
    return (T + HR_NORM_BLOCK_TOKENS - 1) / HR_NORM_BLOCK_TOKENS;
}

#endif
