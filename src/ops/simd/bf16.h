/* SPDX-License-Identifier: Apache-2.0 */
/* ops/simd/bf16.h - wrappers for AVX512-BF16 instructions, so that tests can compile the same
 * kernels over an emulation (tests/emulate/bf16.h) on a machine that lacks them. */
#ifndef HR_OPS_SIMD_BF16_H
#define HR_OPS_SIMD_BF16_H

#include <immintrin.h>

#ifdef HR_EMULATE
#include "emulate/bf16.h"
#else

/* acc + pairwise products of 32 bf16 of a and b: acc[i] += a[2i] b[2i] + a[2i+1] b[2i+1]. */
static inline __attribute__((always_inline)) __m512 hr_dpbf16(__m512 acc, __m512i a, __m512i b)
{
    return _mm512_dpbf16_ps(acc, (__m512bh)a, (__m512bh)b);
}

/* 32 bf16: the low half from `low`, the high half from `high`; rounded to nearest even. */
static inline __attribute__((always_inline)) __m512i hr_to_bf16x32(__m512 low, __m512 high)
{
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

/* 16 bf16, rounded to nearest even. */
static inline __attribute__((always_inline)) __m256i hr_to_bf16x16(__m512 value)
{
    return (__m256i)_mm512_cvtneps_pbh(value);
}

#endif
#endif
