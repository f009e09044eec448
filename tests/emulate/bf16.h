/* SPDX-License-Identifier: Apache-2.0 */
/* emulate/bf16.h - the AVX512-BF16 instructions, built from AVX-512 F, BW, DQ and VL.
 *
 * ops/simd/bf16.h includes it when tests build the kernels with HR_EMULATE. Bit-identical,
 * including NaN and denormals; tests/base/emulate_test.c compares it with the instructions
 * themselves. */
#ifndef HR_EMULATE_BF16_H
#define HR_EMULATE_BF16_H

#include <immintrin.h>

/* Intel's manual, volume 2, VDPBF16PS: two fused multiply-adds, the odd element first; denormal
 * inputs count as zero, denormal results become zero, ties round to even, and MXCSR is neither read
 * nor written; Zen 4 agreed on every input tried. The ordinary instructions do the same under a
 * matching control word: all exceptions masked, FTZ, DAZ, nearest even. */
static inline __attribute__((always_inline)) __m512 hr_dpbf16(__m512 acc, __m512i a, __m512i b)
{
    const __m512i odd = _mm512_set1_epi32((int)0xffff0000u);
    const __m512i a_odd = _mm512_and_si512(a, odd), a_even = _mm512_slli_epi32(a, 16);
    const __m512i b_odd = _mm512_and_si512(b, odd), b_even = _mm512_slli_epi32(b, 16);
    const unsigned own = _mm_getcsr(), fixed = 0x9fc0;
    __asm__ volatile("vldmxcsr %[fixed]\n\t"
                     "vfmadd231ps %[b_odd], %[a_odd], %[acc]\n\t"
                     "vfmadd231ps %[b_even], %[a_even], %[acc]\n\t"
                     "vldmxcsr %[own]"
                     : [acc] "+&v"(acc)
                     : [a_odd] "v"(a_odd), [b_odd] "v"(b_odd), [a_even] "v"(a_even),
                       [b_even] "v"(b_even), [fixed] "m"(fixed), [own] "m"(own));
    return acc;
}

/* VCVTNEPS2BF16: nearest even in integer arithmetic, a NaN made quiet, a denormal made zero; the
 * sign stays. The result is the low half of each 32-bit lane. */
static inline __attribute__((always_inline)) __m512i hr_emulate_bf16_lanes(__m512 value)
{
    const __m512i bits = (__m512i)value, high = _mm512_srli_epi32(bits, 16);
    const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
    const __m512i infinity = _mm512_set1_epi32(0x7f800000);
    const __mmask16 nan = _mm512_cmpgt_epi32_mask(magnitude, infinity);
    const __mmask16 denormal = _mm512_cmplt_epi32_mask(magnitude, _mm512_set1_epi32(0x00800000));
    const __m512i tie = _mm512_and_si512(high, _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(tie, _mm512_set1_epi32(0x7fff)));
    rounded = _mm512_srli_epi32(rounded, 16);
    rounded = _mm512_mask_or_epi32(rounded, nan, high, _mm512_set1_epi32(0x40));
    return _mm512_mask_and_epi32(rounded, denormal, high, _mm512_set1_epi32(0x8000));
}

static inline __attribute__((always_inline)) __m256i hr_to_bf16x16(__m512 value)
{
    return _mm512_cvtepi32_epi16(hr_emulate_bf16_lanes(value));
}

static inline __attribute__((always_inline)) __m512i hr_to_bf16x32(__m512 low, __m512 high)
{
    const __m512i first = _mm512_castsi256_si512(hr_to_bf16x16(low));
    return _mm512_inserti64x4(first, hr_to_bf16x16(high), 1);
}

#endif
