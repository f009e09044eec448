/* SPDX-License-Identifier: Apache-2.0 */
/* ops/linear/linear_words.h - the three ways in which a rung multiplies a lane of the reduction. */
#ifndef HR_OPS_LINEAR_LINEAR_WORDS_H
#define HR_OPS_LINEAR_LINEAR_WORDS_H

#include "ops/linear/linear_epilogue.h"

typedef enum {
    WORDS_F32,     /* fp32 operands, fused multiply-adds */
    WORDS_WIDENED, /* bf16 operands, made fp32 where they are packed */
    WORDS_PAIRS    /* bf16 operands, two products a lane */
} words_kind;

#endif
