/* SPDX-License-Identifier: Apache-2.0 */
/* ops/simd/philox.h - vectorised version of the random numbers of base/random.h.
 *
 * Each 64-bit lane holds one word of its own counter in the low half, because the 32 x 32 = 64 bit
 * multiplication reads the low halves; the high halves are undefined. Ten rounds take 20 such
 * products for 2 * VEC_LANES numbers. Include it after simd/vec_avx2.h or simd/vec_avx512.h. */
#ifndef HR_OPS_SIMD_PHILOX_H
#define HR_OPS_SIMD_PHILOX_H

#include "base/random.h"
#include "ops/simd/unroll.h"

typedef struct {
    vec_bits word[4];
} vec_counter;

/* Replaces counters by their words. Several at a time: a round waits for the one before it. */
VEC_INLINE void vec_philox(const hr_random_row *row, int counters, vec_counter c[])
{
    const vec_bits m0 = vec_bits_set(HR_PHILOX_M0), m1 = vec_bits_set(HR_PHILOX_M1);
    UNROLL for (uint32_t round = 0; round < HR_PHILOX_ROUNDS; round++)
    {
        const vec_bits k0 = vec_bits_set(row->key[0] + round * HR_PHILOX_W0);
        const vec_bits k1 = vec_bits_set(row->key[1] + round * HR_PHILOX_W1);
        UNROLL for (int i = 0; i < counters; i++)
        {
            const vec_bits p0 = vec_bits_mul_wide(c[i].word[0], m0);
            const vec_bits p1 = vec_bits_mul_wide(c[i].word[2], m1);
            c[i].word[0] = vec_bits_xor(vec_bits_xor(c[i].word[1], k0), vec_bits_high(p1));
            c[i].word[2] = vec_bits_xor(vec_bits_xor(c[i].word[3], k1), vec_bits_high(p0));
            c[i].word[1] = p1;
            c[i].word[3] = p0;
        }
    }
}

/* Elements `first` to `first` + 2 * draws * VEC_LANES - 1 of a row, draws <= 2; `first` is a
 * multiple of 4. */
VEC_INLINE void vec_random_drawn(const hr_random_row *row, uint32_t first, int draws,
                                 vec_bits bits[])
{
    vec_counter c[2];
    UNROLL for (int i = 0; i < draws; i++)
    {
        const uint32_t index = first / 4 + (uint32_t)i * VEC_LANES / 2;
        c[i] = (vec_counter){ { vec_bits_add(vec_bits_count_wide(), vec_bits_set(index)),
                                vec_bits_set(row->counter[1]), vec_bits_set(row->counter[2]),
                                vec_bits_set(row->counter[3]) } };
    }
    vec_philox(row, draws, c);
    UNROLL for (int i = 0; i < draws; i++)
    {
        const vec_bits low = vec_bits_join(c[i].word[0], c[i].word[1]);
        const vec_bits high = vec_bits_join(c[i].word[2], c[i].word[3]);
        bits[2 * i] = vec_bits_unpack_even(low, high);
        bits[2 * i + 1] = vec_bits_unpack_odd(low, high);
    }
}

VEC_INLINE void vec_random_elements(const hr_random_row *row, uint32_t first, vec_bits bits[2])
{
    vec_random_drawn(row, first, 1, bits);
}

/* Halves `first` to `first` + 8 * VEC_LANES - 1 of a row; `first` is a multiple of 32. */
VEC_INLINE void vec_random_halves(const hr_random_row *row, uint32_t first, vec_bits bits[8])
{
    enum { BESIDE = 16 / VEC_LANES }; /* vectors of low halves before those of high halves */
    vec_bits words[4];
    vec_random_drawn(row, first / 2, 2, words);
    UNROLL for (int i = 0; i < 8; i++)
    {
        const vec_bits word = words[i / (2 * BESIDE) * BESIDE + i % BESIDE];
        bits[i] = i / BESIDE % 2 ? vec_bits_shift_right(word, 16)
                                 : (vec_bits)((vec_lanes)word & 0xffff);
    }
}

/* bits[i]: element `first` + i of VEC_LANES rows, at the positions of `row` plus `after`, `after` +
 * 1, ...; `first` is a multiple of 4. */
VEC_INLINE void vec_random_rows(const hr_random_row *row, uint32_t after, uint32_t first,
                                vec_bits bits[4])
{
    const vec_bits positions = vec_bits_add(vec_bits_count(),
                                            vec_bits_set(row->counter[1] + after));
    vec_counter c[2];
    c[0] = (vec_counter){ { vec_bits_set(first / 4), positions, vec_bits_set(row->counter[2]),
                            vec_bits_set(row->counter[3]) } };
    c[1] = c[0];
    c[1].word[1] = vec_bits_high(positions);
    vec_philox(row, 2, c);
    UNROLL for (int i = 0; i < 4; i++) bits[i] = vec_bits_join(c[0].word[i], c[1].word[i]);
}

#endif
