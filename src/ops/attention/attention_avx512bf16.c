/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_avx512bf16.c - attention with vdpbf16ps: bf16 operands, fp32 sums.
 *
 * Reads rows of q, k, v (backward: o, dO too) once or twice from memory and writes results once. Of
 * 32 registers, 16 hold sums, 2 lines of b, 1 a word of a. Bound by the multiplier for long
 * sequences (exponentials: 15 % of forward, 7 % of backward), otherwise by packing and cache misses
 * of rows. Of the vdpbf16ps ceiling, head width 64, causal work, 2 threads of an AMD EPYC (Zen 4),
 * 2026-11-21: T = 128 forward 37-45 %, backward 43-51 %; 512: 60-64, 67-72; 4096: 73-76, 79-83. */
#include "ops/simd/vec_avx512.h"

#include "ops/attention/attention_transpose_avx512.h"
#include "ops/attention/attention_words_bf16.h"

/* Packed widths are multiples of WIDTH_STEP elements, reductions of REDUCE_STEP. */
enum { WIDTH_STEP = 16, ROWS = 8, TILE_ROWS = 8, REDUCE_STEP = 8 };

#include "ops/attention/attention_pack.h"
#include "ops/attention/attention_product.h"

#include "ops/attention/attention_fwd.h"

#include "ops/attention/attention_bwd.h"

#include "ops/attention/attention_cached.h"
#include "ops/attention/attention_selected.h"

void hr_attention_fwd_bf16_avx512bf16(const hr_attention_task *task)
{
    forward_head(task);
}

void hr_attention_bwd_bf16_avx512bf16(const hr_attention_task *task)
{
    backward_chunk(task);
}

void hr_attention_cached_bf16_avx512bf16(const hr_attention_cached_task *task)
{
    cached_heads(task);
}

void hr_attention_selected_bf16_avx512bf16(const hr_attention_selected_task *task)
{
    selected_heads(task);
}

void hr_attention_scores_bf16_avx512bf16(const hr_attention_scores_task *task)
{
    probabilities(task);
}
