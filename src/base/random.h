/* SPDX-License-Identifier: Apache-2.0 */
/* base/random.h - random numbers that are a function of where they are used, not of what was drawn
 * before. So a recomputed layer, a cut batch and another thread count see the same numbers. */
#ifndef HR_BASE_RANDOM_H
#define HR_BASE_RANDOM_H

#include <stdint.h>

/* Bijective mixing of 64 bits (Stafford's variant 13 of the MurmurHash3 finaliser). */
static inline uint64_t hr_random_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The key of one row of one use: seed of the run, optimiser step, site (one number per random op of
 * the program; layers have different sites), sequence in the batch, position in the sequence. */
static inline uint64_t hr_random_row_key(uint64_t seed, uint64_t step, uint64_t site,
                                         uint64_t sequence, uint64_t position)
{
    uint64_t key = hr_random_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    key = hr_random_mix(key ^ (step + UINT64_C(0x9e3779b97f4a7c15)));
    key = hr_random_mix(key ^ (site + UINT64_C(0x9e3779b97f4a7c15)));
    key = hr_random_mix(key ^ (sequence + UINT64_C(0x9e3779b97f4a7c15)));
    return hr_random_mix(key ^ (position + UINT64_C(0x9e3779b97f4a7c15)));
}

/* 32 uniform bits for element `element` of a row. 32-bit operations only, so that vector code can
 * compute sixteen at a time: two rounds of the "lowbias32" hash with the two halves of the key. */
static inline uint32_t hr_random_element(uint64_t row_key, uint32_t element)
{
    uint32_t x = element * 0x9e3779b9u ^ (uint32_t)row_key;
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x = x * 0x846ca68bu ^ (uint32_t)(row_key >> 32);
    x ^= x >> 16;
    x *= 0x7feb352du;
    return x ^ (x >> 15);
}

/* An element is dropped when its bits are below this: p * 2^32, p in [0, 1). */
static inline uint32_t hr_random_threshold(double p)
{
    return (uint32_t)(p * 4294967296.0);
}

#endif
