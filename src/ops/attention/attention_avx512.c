/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_avx512.c - attention in fp32 with vectors of 16; bf16 is widened.
 *
 * Memory, registers and bounds as in attention_avx512bf16.c, with words of twice the size for the
 * same work. Of the fp32 ceiling, head width 64, causal work, 2 threads of an AMD EPYC (Zen 4),
 * 2026-11-21: T = 128 forward 47-50 %, backward 51-55 %; 512: 71-74, 75-79; 4096: 82-86, 83-89. */
#include "ops/simd/vec_avx512.h"

#include "ops/attention/attention_transpose_avx512.h"
#include "ops/attention/attention_words_f32.h"

/* Packed widths are multiples of WIDTH_STEP elements, reductions of REDUCE_STEP. */
enum { WIDTH_STEP = 16, ROWS = 8, TILE_ROWS = 8, REDUCE_STEP = 8 };

#include "ops/attention/attention_pack.h"
#include "ops/attention/attention_product.h"

#include "ops/attention/attention_fwd.h"

#include "ops/attention/attention_bwd.h"

#include "ops/attention/attention_cached.h"
#include "ops/attention/attention_selected.h"

void hr_attention_fwd_avx512(const hr_attention_task *task)
{
    forward_head(task);
}

void hr_attention_bwd_avx512(const hr_attention_task *task)
{
    backward_chunk(task);
}

void hr_attention_store_avx512(const hr_attention_task *task)
{
    store_keys(task);
}

void hr_attention_cached_avx512(const hr_attention_cached_task *task)
{
    cached_heads(task);
}

void hr_attention_selected_avx512(const hr_attention_selected_task *task)
{
    selected_heads(task);
}

void hr_attention_scores_avx512(const hr_attention_scores_task *task)
{
    probabilities(task);
}
