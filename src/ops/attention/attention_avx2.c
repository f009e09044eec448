/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_avx2.c - attention in fp32 with vectors of 8; bf16 is widened.
 *
 * Strips of 16 rows are tiles of 5, 5 and 6 x 2 vectors: at most 12 sums, 2 lines and a broadcast
 * fit in 16 registers; b is read three times from L1. With 10 or 12 sums, products in L1 run at 97
 * to 99 % of the ceiling; the 8 of 4 x 2 wait for the latency of multiply-adds, at 85 to 91 %. Of
 * the ceiling, head width 64, causal work, 1 thread of a shared Intel Xeon, 2026-11-29
 * (bench/attention_bench): T = 128 forward 45-47 %, backward 49-50; 512: 67-68, 68; 4,096: 76-77,
 * 79-80; 8,192 with 1 head of keys: 76-77, 80-83. */
#include "ops/simd/vec_avx2.h"

#include "ops/attention/attention_lanes.h"
#include "ops/attention/attention_words_f32.h"

/* Packed widths are multiples of WIDTH_STEP elements, reductions of REDUCE_STEP. */
enum { WIDTH_STEP = 16, ROWS = 16, TILE_ROWS = 6, REDUCE_STEP = 16 };

/* Transposes 8 x 8 words: pairs of rows, then pairs of pairs, within 128-bit halves; then swaps the
 * halves. */
VEC_INLINE void transpose_words(vec_bits row[8])
{
    vec_bits pair[8];
    UNROLL for (int i = 0; i < 8; i += 2)
    {
        pair[i] = _mm256_unpacklo_epi32(row[i], row[i + 1]);
        pair[i + 1] = _mm256_unpackhi_epi32(row[i], row[i + 1]);
    }
    UNROLL for (int i = 0; i < 8; i += 4) UNROLL for (int j = 0; j < 2; j++)
    {
        row[i + 2 * j] = _mm256_unpacklo_epi64(pair[i + j], pair[i + 2 + j]);
        row[i + 2 * j + 1] = _mm256_unpackhi_epi64(pair[i + j], pair[i + 2 + j]);
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        pair[i] = _mm256_permute2x128_si256(row[i], row[4 + i], 0x20);
        pair[4 + i] = _mm256_permute2x128_si256(row[i], row[4 + i], 0x31);
    }
    UNROLL for (int i = 0; i < 8; i++) row[i] = pair[i];
}

#include "ops/attention/attention_pack.h"
#include "ops/attention/attention_product.h"

#include "ops/attention/attention_fwd.h"

#include "ops/attention/attention_bwd.h"

#include "ops/attention/attention_cached.h"
#include "ops/attention/attention_selected.h"

void hr_attention_fwd_avx2(const hr_attention_task *task)
{
    forward_head(task);
}

void hr_attention_bwd_avx2(const hr_attention_task *task)
{
    backward_chunk(task);
}

void hr_attention_store_avx2(const hr_attention_task *task)
{
    store_keys(task);
}

void hr_attention_cached_avx2(const hr_attention_cached_task *task)
{
    cached_heads(task);
}

void hr_attention_selected_avx2(const hr_attention_selected_task *task)
{
    selected_heads(task);
}

void hr_attention_scores_avx2(const hr_attention_scores_task *task)
{
    probabilities(task);
}
