/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_words.h - the kinds of words that kernels multiply, and prefetch queues. */
#ifndef HR_OPS_LINEAR_LINEAR_WORDS_H
#define HR_OPS_LINEAR_LINEAR_WORDS_H

#include "ops/linear/linear_epilogue.h"

typedef enum {
    WORDS_F32,     /* fp32 operands, fused multiply-adds */
    WORDS_WIDENED, /* bf16 operands, converted to fp32 during packing */
    WORDS_HALVES,  /* f16 activations, converted to fp32 likewise, and fp32 weights */
    WORDS_PAIRS,   /* bf16 operands, two products per lane */
    WORDS_STEPS    /* bf16 pairs, added in the order of an AMX tile (linear_few.h) */
} words_kind;

/* Prefetch queue. A tile issues one prefetch per word that it multiplies. All at once they would
 * stall B, which streams out of L2 through the same miss buffers. */
typedef struct {
    int64_t count;
    const char *at[96];
} linear_prefetch;

/* Appends `rows` lines that are row_bytes apart; lines beyond the capacity are dropped. */
ALWAYS_INLINE void queue_lines(linear_prefetch *ahead, const void *from, int64_t row_bytes,
                               int64_t rows)
{
    const int64_t room = (int64_t)(sizeof ahead->at / sizeof *ahead->at) - ahead->count;
    for (int64_t i = 0; i < hr_min(rows, room); i++)
        ahead->at[ahead->count++] = (const char *)from + i * row_bytes;
}

ALWAYS_INLINE void prefetch_line(const linear_prefetch *ahead, int64_t k)
{
    __builtin_prefetch(ahead->at[k], 0, 2);
}

#endif
