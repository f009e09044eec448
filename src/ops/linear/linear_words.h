/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_words.h - what a rung multiplies in a lane, and what it fetches meanwhile. */
#ifndef HR_OPS_LINEAR_LINEAR_WORDS_H
#define HR_OPS_LINEAR_LINEAR_WORDS_H

#include "ops/linear/linear_epilogue.h"

typedef enum {
    WORDS_F32,     /* fp32 operands, fused multiply-adds */
    WORDS_WIDENED, /* bf16 operands, made fp32 where they are packed */
    WORDS_PAIRS,   /* bf16 operands, two products a lane */
    WORDS_STEPS    /* pairs of them as a tile of AMX adds them up (linear_few.h) */
} words_kind;

/* Lines that will be needed soon. A tile asks for one with each word that it multiplies: asked for
 * all at once they would keep B waiting, which streams out of L2 through the same miss buffers. */
typedef struct {
    int64_t count;
    const char *at[96];
} linear_ahead;

/* Appends `rows` lines that are row_bytes apart; those that find no room are left out. */
ALWAYS_INLINE void look_ahead(linear_ahead *ahead, const void *from, int64_t row_bytes,
                              int64_t rows)
{
    const int64_t room = (int64_t)(sizeof ahead->at / sizeof *ahead->at) - ahead->count;
    for (int64_t i = 0; i < hr_min(rows, room); i++)
        ahead->at[ahead->count++] = (const char *)from + i * row_bytes;
}

ALWAYS_INLINE void ask_for(const linear_ahead *ahead, int64_t k)
{
    __builtin_prefetch(ahead->at[k], 0, 2);
}

#endif
