/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_avx512.c - attention in fp32 with vectors of 16; bf16 is widened. */
#include "ops/simd/vec_avx512.h"

#include "ops/attention/attention_transpose_avx512.h"
#include "ops/attention/attention_words_f32.h"

enum { WIDTH_STEP = 16, TILE_ROWS = 8, REDUCE_STEP = 8 };

#include "ops/attention/attention_pack.h"
#include "ops/attention/attention_product.h"

#include "ops/attention/attention_fwd.h"

#include "ops/attention/attention_bwd.h"

void hr_attention_fwd_avx512(const hr_attention_task *task)
{
    forward_head(task);
}

void hr_attention_bwd_avx512(const hr_attention_task *task)
{
    backward_head(task);
}
