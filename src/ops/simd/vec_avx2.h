/* SPDX-License-Identifier: Apache-2.0 */
/* ops/simd/vec_avx2.h - vectors of 8 floats, with the same functions as simd/vec_avx512.h. AVX2 has
 * no masked 16-bit accesses, so a tail of bf16 goes through a small copy. */
#ifndef HR_OPS_SIMD_VEC_AVX2_H
#define HR_OPS_SIMD_VEC_AVX2_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define VEC_INLINE static inline __attribute__((always_inline, unused))

enum { VEC_LANES = 8 };

typedef __m256 vec;
typedef __m256i vec_bits;

VEC_INLINE __m256i vec_mask(int64_t lanes)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)lanes),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

VEC_INLINE vec vec_set(float value)
{
    return _mm256_set1_ps(value);
}

/* at[0] in even lanes, at[1] in odd ones. */
VEC_INLINE vec vec_set_pair(const float at[2])
{
    return _mm256_castpd_ps(_mm256_broadcast_sd((const void *)at));
}

VEC_INLINE vec vec_add(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}

VEC_INLINE vec vec_sub(vec a, vec b)
{
    return _mm256_sub_ps(a, b);
}

VEC_INLINE vec vec_mul(vec a, vec b)
{
    return _mm256_mul_ps(a, b);
}

VEC_INLINE vec vec_div(vec a, vec b)
{
    return _mm256_div_ps(a, b);
}

VEC_INLINE vec vec_sqrt(vec a)
{
    return _mm256_sqrt_ps(a);
}

/* a b + c */
VEC_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

/* c - a b */
VEC_INLINE vec vec_fnma(vec a, vec b, vec c)
{
    return _mm256_fnmadd_ps(a, b, c);
}

/* Element-wise maximum; b if either is NaN. */
VEC_INLINE vec vec_min(vec a, vec b)
{
    return _mm256_min_ps(a, b);
}

VEC_INLINE vec vec_max(vec a, vec b)
{
    return _mm256_max_ps(a, b);
}

/* The first `lanes` lanes of a, the other lanes of b. */
VEC_INLINE vec vec_first(vec a, vec b, int64_t lanes)
{
    return lanes == VEC_LANES ? a : _mm256_blendv_ps(b, a, _mm256_castsi256_ps(vec_mask(lanes)));
}

VEC_INLINE float vec_reduce_add(vec a)
{
    __m128 sum = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
    return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

VEC_INLINE float vec_reduce_max(vec a)
{
    __m128 max = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    max = _mm_max_ps(max, _mm_movehl_ps(max, max));
    return _mm_cvtss_f32(_mm_max_ss(max, _mm_movehdup_ps(max)));
}

VEC_INLINE vec vec_load_f32(const float *at, int64_t lanes)
{
    return lanes == VEC_LANES ? _mm256_loadu_ps(at) : _mm256_maskload_ps(at, vec_mask(lanes));
}

VEC_INLINE void vec_store_f32(float *at, vec value, int64_t lanes)
{
    if (lanes == VEC_LANES) _mm256_storeu_ps(at, value);
    else _mm256_maskstore_ps(at, vec_mask(lanes), value);
}

VEC_INLINE vec vec_load_bf16(const uint16_t *at, int64_t lanes)
{
    uint16_t copy[VEC_LANES] = { 0 };
    if (lanes != VEC_LANES) {
        for (int64_t i = 0; i < lanes; i++) copy[i] = at[i];
        at = copy;
    }
    const __m128i half = _mm_loadu_si128((const void *)at);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

VEC_INLINE vec vec_load_f16(const uint16_t *at, int64_t lanes)
{
    uint16_t copy[VEC_LANES] = { 0 };
    if (lanes != VEC_LANES) {
        for (int64_t i = 0; i < lanes; i++) copy[i] = at[i];
        at = copy;
    }
    return _mm256_cvtph_ps(_mm_loadu_si128((const void *)at));
}

VEC_INLINE vec vec_set_f16(uint16_t value)
{
    return _mm256_cvtph_ps(_mm_set1_epi16((short)value));
}

VEC_INLINE __m128i vec_bits_f16(vec value)
{
    return _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

VEC_INLINE vec vec_rounded_f16(vec value)
{
    return _mm256_cvtph_ps(vec_bits_f16(value));
}

VEC_INLINE void vec_store_f16(uint16_t *at, vec value, int64_t lanes)
{
    uint16_t copy[VEC_LANES];
    if (lanes == VEC_LANES) {
        _mm_storeu_si128((void *)at, vec_bits_f16(value));
        return;
    }
    _mm_storeu_si128((void *)copy, vec_bits_f16(value));
    for (int64_t i = 0; i < lanes; i++) at[i] = copy[i];
}

/* The bits of an E4M3 value are those of an f16 value that is 2^8 times smaller, except of NaN. */
VEC_INLINE vec vec_load_e4m3(const uint8_t *at, int64_t lanes)
{
    uint8_t copy[VEC_LANES] = { 0 };
    if (lanes != VEC_LANES) {
        for (int64_t i = 0; i < lanes; i++) copy[i] = at[i];
        at = copy;
    }
    const __m128i codes = _mm_cvtepu8_epi16(_mm_loadl_epi64((const void *)at));
    const __m128i rest = _mm_and_si128(codes, _mm_set1_epi16(0x7f));
    const __m128i sign = _mm_slli_epi16(_mm_xor_si128(codes, rest), 8);
    const __m128i nan = _mm_cmpeq_epi16(rest, _mm_set1_epi16(0x7f));
    const __m128i half = _mm_or_si128(_mm_or_si128(sign, _mm_slli_epi16(rest, 7)), nan);
    return _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256));
}

/* Rounds to nearest even like hr_bf16_from_f32: adds half of the last place, minus one if the last
 * place is even. The result is the upper half of each lane. */
VEC_INLINE __m256i vec_bits_bf16(vec value)
{
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(up, quiet, nan);
}

VEC_INLINE vec vec_rounded_bf16(vec value)
{
    const __m256i upper = _mm256_set1_epi32((int)0xffff0000u);
    return _mm256_castsi256_ps(_mm256_and_si256(vec_bits_bf16(value), upper));
}

VEC_INLINE void vec_store_bf16(uint16_t *at, vec value, int64_t lanes)
{
    const __m256i whole = _mm256_srli_epi32(vec_bits_bf16(value), 16);
    const __m128i half = _mm_packus_epi32(_mm256_castsi256_si128(whole),
                                          _mm256_extracti128_si256(whole, 1));
    if (lanes == VEC_LANES) {
        _mm_storeu_si128((void *)at, half);
        return;
    }
    uint16_t copy[VEC_LANES];
    _mm_storeu_si128((void *)copy, half);
    for (int64_t i = 0; i < lanes; i++) at[i] = copy[i];
}

/* 8-bit codes as integers. */
VEC_INLINE vec_bits vec_load_u8(const uint8_t *at, int64_t lanes)
{
    uint8_t copy[VEC_LANES] = { 0 };
    if (lanes != VEC_LANES) {
        for (int64_t i = 0; i < lanes; i++) copy[i] = at[i];
        at = copy;
    }
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)at));
}

/* Integers in [0, 255] as 8-bit codes. */
VEC_INLINE void vec_store_u8(uint8_t *at, vec_bits codes, int64_t lanes)
{
    const __m128i half = _mm_packus_epi32(_mm256_castsi256_si128(codes),
                                          _mm256_extracti128_si256(codes, 1));
    uint8_t copy[VEC_LANES];
    _mm_storel_epi64((void *)(lanes == VEC_LANES ? at : copy), _mm_packus_epi16(half, half));
    for (int64_t i = 0; i < lanes && lanes != VEC_LANES; i++) at[i] = copy[i];
}

/* The lower 16 bits of each lane. */
VEC_INLINE void vec_store_u16(uint16_t *at, vec_bits codes, int64_t lanes)
{
    const __m256i lower = _mm256_and_si256(codes, _mm256_set1_epi32(0xffff));
    const __m128i half = _mm_packus_epi32(_mm256_castsi256_si128(lower),
                                          _mm256_extracti128_si256(lower, 1));
    uint16_t copy[VEC_LANES];
    _mm_storeu_si128((void *)(lanes == VEC_LANES ? at : copy), half);
    for (int64_t i = 0; i < lanes && lanes != VEC_LANES; i++) at[i] = copy[i];
}

/* from[index] of each lane, of 256 floats. */
VEC_INLINE vec vec_look_up(const float from[256], vec_bits index)
{
    return _mm256_i32gather_ps(from, index, 4);
}

/* The sign becomes the lowest place. */
VEC_INLINE vec_bits vec_bits_sign_last(vec_bits a)
{
    return _mm256_or_si256(_mm256_add_epi32(a, a), _mm256_srli_epi32(a, 31));
}

/* The larger of two signed integers. */
VEC_INLINE vec_bits vec_max_int(vec_bits a, vec_bits b)
{
    return _mm256_max_epi32(a, b);
}

VEC_INLINE int32_t vec_reduce_max_int(vec_bits a)
{
    __m128i most = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0x4e));
    most = _mm_max_epi32(most, _mm_shuffle_epi32(most, 0xb1));
    return _mm_cvtsi128_si32(most);
}

/* a 2^n for integer n in [-126, 127]; NaN if n is NaN. */
VEC_INLINE vec vec_scale_by_power(vec a, vec n)
{
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
}

VEC_INLINE vec vec_round(vec a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* a if x >= least or x is NaN, else zero. */
VEC_INLINE vec vec_zero_below(vec a, vec x, vec least)
{
    return _mm256_and_ps(_mm256_cmp_ps(x, least, _CMP_NLT_UQ), a);
}

VEC_INLINE vec_bits vec_bits_set(uint32_t value)
{
    return _mm256_set1_epi32((int32_t)value);
}

/* 0, 1, 2, ... */
VEC_INLINE vec_bits vec_bits_count(void)
{
    return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
}

VEC_INLINE vec_bits vec_bits_add(vec_bits a, vec_bits b)
{
    return _mm256_add_epi32(a, b);
}

VEC_INLINE vec_bits vec_bits_xor(vec_bits a, vec_bits b)
{
    return _mm256_xor_si256(a, b);
}

VEC_INLINE vec_bits vec_bits_shift_right(vec_bits a, int places)
{
    return _mm256_srli_epi32(a, places);
}

/* Products of the low halves of 64-bit lanes; a vector is also VEC_LANES / 2 lanes of 64 bits. */
VEC_INLINE vec_bits vec_bits_mul_wide(vec_bits a, vec_bits b)
{
    return _mm256_mul_epu32(a, b);
}

/* The high halves of 64-bit lanes, moved to the low halves; the rest is zero. */
VEC_INLINE vec_bits vec_bits_high(vec_bits a)
{
    return _mm256_srli_epi64(a, 32);
}

/* 64-bit lanes with low halves from a and high halves from the low halves of b. */
VEC_INLINE vec_bits vec_bits_join(vec_bits a, vec_bits b)
{
    return _mm256_blend_epi32(a, _mm256_slli_epi64(b, 32), 0xaa);
}

/* Interleave the even, or the odd, 64-bit lanes of a and b. */
VEC_INLINE vec_bits vec_bits_unpack_even(vec_bits a, vec_bits b)
{
    return _mm256_unpacklo_epi64(a, b);
}

VEC_INLINE vec_bits vec_bits_unpack_odd(vec_bits a, vec_bits b)
{
    return _mm256_unpackhi_epi64(a, b);
}

/* 0, 1, ... in 64-bit lanes: the even lanes count first, then the odd lanes. */
VEC_INLINE vec_bits vec_bits_count_wide(void)
{
    return _mm256_setr_epi64x(0, 2, 1, 3);
}

/* a if bits >= least (unsigned), else zero. */
VEC_INLINE vec vec_keep_from(vec a, vec_bits bits, vec_bits least)
{
    const __m256i keep = _mm256_cmpeq_epi32(_mm256_max_epu32(bits, least), bits);
    return _mm256_and_ps(_mm256_castsi256_ps(keep), a);
}

/* 16 sums in double. */
typedef struct {
    __m256d quarter[4];
} vec_sums;

VEC_INLINE vec_sums vec_sums_zero(void)
{
    const __m256d zero = _mm256_setzero_pd();
    return (vec_sums){ { zero, zero, zero, zero } };
}

/* sums[i] += at[i]^2 for i < lanes <= 16; the product is exact. */
VEC_INLINE vec_sums vec_sums_add_squares(vec_sums sums, const float *at, int64_t lanes)
{
    for (int64_t half = 0; half < 2; half++) {
        const int64_t left = lanes - half * VEC_LANES;
        if (left <= 0) break;
        const vec x = vec_load_f32(at + half * VEC_LANES, left < VEC_LANES ? left : VEC_LANES);
        const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
        const __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
        __m256d *sum = sums.quarter + 2 * half;
        sum[0] = _mm256_fmadd_pd(low, low, sum[0]);
        sum[1] = _mm256_fmadd_pd(high, high, sum[1]);
    }
    return sums;
}

VEC_INLINE void vec_sums_store(double at[16], vec_sums sums)
{
    for (int64_t i = 0; i < 4; i++) _mm256_storeu_pd(at + 4 * i, sums.quarter[i]);
}

/* 2^t for t < 127, relative error 2e-7; 0 below -126.5; 2^0 is 1; keeps NaN. Fewer instructions
 * than vec_exp.
 *
 * Adding 1.5 * 2^23 rounds t to n + f with integer n and |f| <= 1/2, and leaves n in the low bits
 * of the sum. With another 127 those bits are the exponent of 2^n, or 0 for n = -127. The minimax
 * polynomial of degree 5 with constant 1 has an error of 9.1e-8. */
VEC_INLINE vec vec_exp2(vec t)
{
    const vec big = vec_set(12583039.f); /* 1.5 * 2^23 + 127 */
    t = vec_max(vec_set(-127.f), t);     /* this operand order keeps NaN */
    const vec sum = vec_add(t, big), f = vec_sub(t, vec_sub(sum, big));
    vec p = vec_set(1.32647e-3f);
    p = vec_fma(p, f, vec_set(9.67151e-3f));
    p = vec_fma(p, f, vec_set(5.550734e-2f));
    p = vec_fma(p, f, vec_set(2.4022242e-1f));
    p = vec_fma(p, f, vec_set(6.9314698e-1f));
    p = vec_fma(p, f, vec_set(1));
    return vec_mul(p, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(sum), 23)));
}

#include "ops/simd/vec_common.h"

#endif
