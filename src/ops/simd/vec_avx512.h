/* SPDX-License-Identifier: Apache-2.0 */
/* ops/simd/vec_avx512.h - vectors of 16 floats, with the same functions as simd/vec_avx2.h, so that
 * a kernel is one template for both.
 *
 * Loads and stores take the number of valid lanes. Loops over whole vectors pass the constant
 * VEC_LANES at no cost; the tail is one masked access that touches no byte past the end. Invalid
 * lanes load as zero. */
#ifndef HR_OPS_SIMD_VEC_AVX512_H
#define HR_OPS_SIMD_VEC_AVX512_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __AVX512BF16__
#include "ops/simd/bf16.h"
#endif
#include "ops/simd/unroll.h"

#define VEC_INLINE static inline __attribute__((always_inline, unused))

enum { VEC_LANES = 16 };

typedef __m512 vec;
typedef __m512i vec_bits;

VEC_INLINE __mmask16 vec_mask(int64_t lanes)
{
    return (__mmask16)((1u << lanes) - 1);
}

VEC_INLINE vec vec_set(float value)
{
    return _mm512_set1_ps(value);
}

/* at[0] in even lanes, at[1] in odd ones. */
VEC_INLINE vec vec_set_pair(const float at[2])
{
    return _mm512_castpd_ps(_mm512_broadcastsd_pd(_mm_load_sd((const void *)at)));
}

VEC_INLINE vec vec_add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}

VEC_INLINE vec vec_sub(vec a, vec b)
{
    return _mm512_sub_ps(a, b);
}

VEC_INLINE vec vec_mul(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}

VEC_INLINE vec vec_div(vec a, vec b)
{
    return _mm512_div_ps(a, b);
}

VEC_INLINE vec vec_sqrt(vec a)
{
    return _mm512_sqrt_ps(a);
}

/* a b + c */
VEC_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

/* c - a b */
VEC_INLINE vec vec_fnma(vec a, vec b, vec c)
{
    return _mm512_fnmadd_ps(a, b, c);
}

/* Element-wise maximum; b if either is NaN. */
VEC_INLINE vec vec_min(vec a, vec b)
{
    return _mm512_min_ps(a, b);
}

VEC_INLINE vec vec_max(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}

/* The first `lanes` lanes of a, the other lanes of b. */
VEC_INLINE vec vec_first(vec a, vec b, int64_t lanes)
{
    return lanes == VEC_LANES ? a : _mm512_mask_blend_ps(vec_mask(lanes), b, a);
}

VEC_INLINE float vec_reduce_add(vec a)
{
    return _mm512_reduce_add_ps(a);
}

VEC_INLINE float vec_reduce_max(vec a)
{
    return _mm512_reduce_max_ps(a);
}

VEC_INLINE vec vec_load_f32(const float *at, int64_t lanes)
{
    return lanes == VEC_LANES ? _mm512_loadu_ps(at) : _mm512_maskz_loadu_ps(vec_mask(lanes), at);
}

/* Eight floats, repeated in both halves. */
VEC_INLINE vec vec_load_twice(const float *at)
{
    return _mm512_broadcast_f32x8(_mm256_loadu_ps(at));
}

/* Swaps the lower and the upper eight lanes. */
VEC_INLINE vec vec_swap_halves(vec x)
{
    return _mm512_shuffle_f32x4(x, x, 0x4e);
}

VEC_INLINE void vec_store_f32(float *at, vec value, int64_t lanes)
{
    if (lanes == VEC_LANES) _mm512_storeu_ps(at, value);
    else _mm512_mask_storeu_ps(at, vec_mask(lanes), value);
}

/* A bf16 is the upper half of a float: one permutation spreads 16 of them over the odd 16-bit lanes
 * of a vector, and one packs them again. */
VEC_INLINE vec vec_load_bf16(const uint16_t *at, int64_t lanes)
{
    const __m512i places = _mm512_slli_epi32(
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), 16);
    const __mmask32 odd_halves = 0xaaaaaaaa;
    const __m256i half = lanes == VEC_LANES ? _mm256_loadu_si256((const void *)at)
                                            : _mm256_maskz_loadu_epi16(vec_mask(lanes), at);
    return _mm512_castsi512_ps(
        _mm512_maskz_permutexvar_epi16(odd_halves, places, _mm512_castsi256_si512(half)));
}

VEC_INLINE vec vec_load_f16(const uint16_t *at, int64_t lanes)
{
    return _mm512_cvtph_ps(lanes == VEC_LANES ? _mm256_loadu_si256((const void *)at)
                                              : _mm256_maskz_loadu_epi16(vec_mask(lanes), at));
}

VEC_INLINE vec vec_set_f16(uint16_t value)
{
    return _mm512_cvtph_ps(_mm256_set1_epi16((short)value));
}

VEC_INLINE __m256i vec_bits_f16(vec value)
{
    return _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

VEC_INLINE vec vec_rounded_f16(vec value)
{
    return _mm512_cvtph_ps(vec_bits_f16(value));
}

VEC_INLINE void vec_store_f16(uint16_t *at, vec value, int64_t lanes)
{
    if (lanes == VEC_LANES) _mm256_storeu_si256((void *)at, vec_bits_f16(value));
    else _mm256_mask_storeu_epi16(at, vec_mask(lanes), vec_bits_f16(value));
}

/* The bits of an E4M3 value are those of an f16 value that is 2^8 times smaller, except of NaN. */
VEC_INLINE vec vec_load_e4m3(const uint8_t *at, int64_t lanes)
{
    const __m256i codes = _mm256_cvtepu8_epi16(lanes == VEC_LANES
                                                   ? _mm_loadu_si128((const void *)at)
                                                   : _mm_maskz_loadu_epi8(vec_mask(lanes), at));
    const __m256i rest = _mm256_and_si256(codes, _mm256_set1_epi16(0x7f));
    const __m256i sign = _mm256_slli_epi16(_mm256_xor_si256(codes, rest), 8);
    const __m256i nan = _mm256_cmpeq_epi16(rest, _mm256_set1_epi16(0x7f));
    const __m256i half = _mm256_or_si256(_mm256_or_si256(sign, _mm256_slli_epi16(rest, 7)), nan);
    return _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(256));
}

/* Rounds to nearest even like hr_bf16_from_f32: adds half of the last place, minus one if the last
 * place is even. The result is the upper half of each lane. */
VEC_INLINE __m512i vec_bits_bf16(vec value)
{
    const __m512i bits = _mm512_castps_si512(value);
    const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
    const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    __m512i up = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    up = _mm512_mask_add_epi32(up, odd, bits, _mm512_set1_epi32(0x8000));
    return _mm512_mask_or_epi32(up, nan, bits, _mm512_set1_epi32(0x400000));
}

VEC_INLINE vec vec_rounded_bf16(vec value)
{
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000u);
    return _mm512_castsi512_ps(_mm512_and_si512(vec_bits_bf16(value), upper));
}

/* AVX512-BF16 needs one instruction instead of six; the bits are the same except for denormals. */
VEC_INLINE void vec_store_bf16(uint16_t *at, vec value, int64_t lanes)
{
#ifdef __AVX512BF16__
    const __m256i half = hr_to_bf16x16(value);
#else
    const __m512i places = _mm512_setr_epi32(0x30001, 0x70005, 0xb0009, 0xf000d, 0x130011, 0x170015,
                                             0x1b0019, 0x1f001d, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m256i half = _mm512_castsi512_si256(
        _mm512_permutexvar_epi16(places, vec_bits_bf16(value)));
#endif
    if (lanes == VEC_LANES) _mm256_storeu_si256((void *)at, half);
    else _mm256_mask_storeu_epi16(at, vec_mask(lanes), half);
}

/* 8-bit codes as integers. */
VEC_INLINE vec_bits vec_load_u8(const uint8_t *at, int64_t lanes)
{
    return _mm512_cvtepu8_epi32(lanes == VEC_LANES ? _mm_loadu_si128((const void *)at)
                                                   : _mm_maskz_loadu_epi8(vec_mask(lanes), at));
}

/* Integers in [0, 255] as 8-bit codes. */
VEC_INLINE void vec_store_u8(uint8_t *at, vec_bits codes, int64_t lanes)
{
    const __m128i bytes = _mm512_cvtepi32_epi8(codes);
    if (lanes == VEC_LANES) _mm_storeu_si128((void *)at, bytes);
    else _mm_mask_storeu_epi8(at, vec_mask(lanes), bytes);
}

/* The lower 16 bits of each lane. */
VEC_INLINE void vec_store_u16(uint16_t *at, vec_bits codes, int64_t lanes)
{
    const __m256i halves = _mm512_cvtepi32_epi16(codes);
    if (lanes == VEC_LANES) _mm256_storeu_si256((void *)at, halves);
    else _mm256_mask_storeu_epi16(at, vec_mask(lanes), halves);
}

/* from[index & 255] of each lane, of 256 floats. Permutations of 32 floats and seven selections:
 * inside of a loop the floats stay in registers, and a gather takes longer. */
VEC_INLINE vec vec_look_up(const float from[256], vec_bits index)
{
    const __mmask16 bit5 = _mm512_test_epi32_mask(index, _mm512_set1_epi32(32));
    const __mmask16 bit6 = _mm512_test_epi32_mask(index, _mm512_set1_epi32(64));
    const __mmask16 bit7 = _mm512_test_epi32_mask(index, _mm512_set1_epi32(128));
    vec part[8];
    UNROLL for (int i = 0; i < 8; i++) part[i] = _mm512_permutex2var_ps(
        _mm512_loadu_ps(from + 32 * i), index, _mm512_loadu_ps(from + 32 * i + 16));
    UNROLL for (int i = 0; i < 4; i++)
        part[i] = _mm512_mask_blend_ps(bit5, part[2 * i], part[2 * i + 1]);
    UNROLL for (int i = 0; i < 2; i++)
        part[i] = _mm512_mask_blend_ps(bit6, part[2 * i], part[2 * i + 1]);
    return _mm512_mask_blend_ps(bit7, part[0], part[1]);
}

/* The larger of two signed integers. */
VEC_INLINE vec_bits vec_max_int(vec_bits a, vec_bits b)
{
    return _mm512_max_epi32(a, b);
}

VEC_INLINE int32_t vec_reduce_max_int(vec_bits a)
{
    return _mm512_reduce_max_epi32(a);
}

/* a 2^floor(n); NaN if n is NaN. */
VEC_INLINE vec vec_scale_by_power(vec a, vec n)
{
    return _mm512_scalef_ps(a, n);
}

VEC_INLINE vec vec_round(vec a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* a if x >= least or x is NaN, else zero. */
VEC_INLINE vec vec_zero_below(vec a, vec x, vec least)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, least, _CMP_NLT_UQ), a);
}

VEC_INLINE vec_bits vec_bits_set(uint32_t value)
{
    return _mm512_set1_epi32((int32_t)value);
}

/* 0, 1, 2, ... */
VEC_INLINE vec_bits vec_bits_count(void)
{
    return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

VEC_INLINE vec_bits vec_bits_add(vec_bits a, vec_bits b)
{
    return _mm512_add_epi32(a, b);
}

VEC_INLINE vec_bits vec_bits_xor(vec_bits a, vec_bits b)
{
    return _mm512_xor_si512(a, b);
}

VEC_INLINE vec_bits vec_bits_shift_right(vec_bits a, int places)
{
    return _mm512_srli_epi32(a, (unsigned)places);
}

/* The sign becomes the lowest place. */
VEC_INLINE vec_bits vec_bits_sign_last(vec_bits a)
{
    return _mm512_rol_epi32(a, 1);
}

/* Products of the low halves of 64-bit lanes; a vector is also VEC_LANES / 2 lanes of 64 bits. */
VEC_INLINE vec_bits vec_bits_mul_wide(vec_bits a, vec_bits b)
{
    return _mm512_mul_epu32(a, b);
}

/* The high halves of 64-bit lanes, moved to the low halves; the rest is zero. */
VEC_INLINE vec_bits vec_bits_high(vec_bits a)
{
    return _mm512_srli_epi64(a, 32);
}

/* 64-bit lanes with low halves from a and high halves from the low halves of b. */
VEC_INLINE vec_bits vec_bits_join(vec_bits a, vec_bits b)
{
    return _mm512_mask_shuffle_epi32(a, 0xaaaa, b, _MM_PERM_CCAA);
}

/* Interleave the even, or the odd, 64-bit lanes of a and b. */
VEC_INLINE vec_bits vec_bits_unpack_even(vec_bits a, vec_bits b)
{
    return _mm512_unpacklo_epi64(a, b);
}

VEC_INLINE vec_bits vec_bits_unpack_odd(vec_bits a, vec_bits b)
{
    return _mm512_unpackhi_epi64(a, b);
}

/* 0, 1, ... in 64-bit lanes: the even lanes count first, then the odd lanes. */
VEC_INLINE vec_bits vec_bits_count_wide(void)
{
    return _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
}

/* a if bits >= least (unsigned), else zero. */
VEC_INLINE vec vec_keep_from(vec a, vec_bits bits, vec_bits least)
{
    return _mm512_maskz_mov_ps(_mm512_cmpge_epu32_mask(bits, least), a);
}

/* 16 sums in double. */
typedef struct {
    __m512d low, high;
} vec_sums;

VEC_INLINE vec_sums vec_sums_zero(void)
{
    return (vec_sums){ _mm512_setzero_pd(), _mm512_setzero_pd() };
}

/* sums[i] += at[i]^2 for i < lanes <= 16; the product is exact. */
VEC_INLINE vec_sums vec_sums_add_squares(vec_sums sums, const float *at, int64_t lanes)
{
    const vec x = vec_load_f32(at, lanes);
    const bool all = lanes == VEC_LANES; /* two loads are cheaper than a load and an extraction */
    const __m512d low = _mm512_cvtps_pd(all ? _mm256_loadu_ps(at) : _mm512_castps512_ps256(x));
    const __m512d high = _mm512_cvtps_pd(all ? _mm256_loadu_ps(at + 8)
                                             : _mm512_extractf32x8_ps(x, 1));
    sums.low = _mm512_fmadd_pd(low, low, sums.low);
    sums.high = _mm512_fmadd_pd(high, high, sums.high);
    return sums;
}

VEC_INLINE void vec_sums_store(double at[16], vec_sums sums)
{
    _mm512_storeu_pd(at, sums.low);
    _mm512_storeu_pd(at + 8, sums.high);
}

/* As with AVX2, in fewer instructions: 2^floor(t) p(t - floor(t)). The minimax polynomial of degree
 * 5 with constant 1 has an error of 8.3e-8 in [0, 1). Below -126 the result may be denormal. */
VEC_INLINE vec vec_exp2(vec t)
{
    const vec f = _mm512_reduce_ps(t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    vec p = vec_set(1.8671305e-3f);
    p = vec_fma(p, f, vec_set(9.0170288e-3f));
    p = vec_fma(p, f, vec_set(5.5799913e-2f));
    p = vec_fma(p, f, vec_set(2.4016444e-1f));
    p = vec_fma(p, f, vec_set(6.931513e-1f));
    p = vec_fma(p, f, vec_set(1));
    return vec_scale_by_power(p, t);
}

#include "ops/simd/vec_common.h"

#endif
