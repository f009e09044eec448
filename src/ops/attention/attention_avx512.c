/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_avx512.c - attention in fp32 with vectors of 16; bf16 is widened.
 *
 * Strips of 32 rows are tiles of 10, 11 and 11 x 2 vectors: 22 sums, 2 lines and a broadcast fit in
 * 32 registers, and 22 multiply-adds need 13 loads. Packed keys and values, from L2, are read for
 * 32 rows at a time: products alone reach 96 % of the ceiling, those of strips of 8 rows 91. Of the
 * ceiling, head width 64, causal work, 1 thread of a shared Intel Xeon, 2026-11-29
 * (bench/attention_bench 1 avx512, twice): T = 512 forward 54-60 %, backward 59-64; 4,096: 69-73,
 * 74-78; 8,192 with 1 head of keys: 68-71, 76-81. The rest of forward is mostly exponentials, then
 * copies of rows of Q and packing. */
#include "ops/simd/vec_avx512.h"

#include "ops/attention/attention_transpose_avx512.h"
#include "ops/attention/attention_words_f32.h"

/* Packed widths are multiples of WIDTH_STEP elements, reductions of REDUCE_STEP. */
enum { WIDTH_STEP = 16, ROWS = 32, TILE_ROWS = 11, REDUCE_STEP = 32 };

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
