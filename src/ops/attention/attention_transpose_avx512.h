/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_transpose_avx512.h - transposes 16 x 16 words in registers. */
#ifndef HR_OPS_ATTENTION_TRANSPOSE_AVX512_H
#define HR_OPS_ATTENTION_TRANSPOSE_AVX512_H

#include "ops/attention/attention_lanes.h"

/* Transposes pairs of rows, then pairs of pairs, within 128-bit quarters; then swaps the
 * quarters. */
VEC_INLINE void transpose_words(vec_bits row[16])
{
    vec_bits pair[16];
    UNROLL for (int i = 0; i < 16; i += 2)
    {
        pair[i] = _mm512_unpacklo_epi32(row[i], row[i + 1]);
        pair[i + 1] = _mm512_unpackhi_epi32(row[i], row[i + 1]);
    }
    UNROLL for (int i = 0; i < 16; i += 4) UNROLL for (int j = 0; j < 2; j++)
    {
        row[i + 2 * j] = _mm512_unpacklo_epi64(pair[i + j], pair[i + 2 + j]);
        row[i + 2 * j + 1] = _mm512_unpackhi_epi64(pair[i + j], pair[i + 2 + j]);
    }
    UNROLL for (int i = 0; i < 16; i += 8) UNROLL for (int j = 0; j < 4; j++)
    {
        pair[i + j] = _mm512_shuffle_i32x4(row[i + j], row[i + 4 + j], 0x88);
        pair[i + 4 + j] = _mm512_shuffle_i32x4(row[i + j], row[i + 4 + j], 0xdd);
    }
    UNROLL for (int i = 0; i < 8; i++)
    {
        row[i] = _mm512_shuffle_i32x4(pair[i], pair[8 + i], 0x88);
        row[8 + i] = _mm512_shuffle_i32x4(pair[i], pair[8 + i], 0xdd);
    }
}

#endif
