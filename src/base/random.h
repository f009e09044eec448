/* SPDX-License-Identifier: Apache-2.0 */
/* base/random.h - counter-based random numbers (Philox4x32-10).
 *
 * Philox is a keyed bijection of 128-bit counters. It has no state, so recomputed layers,
 * micro-batches and any number of threads see the same numbers.
 *
 *     stream  key, tag = words 0-1, word 2 of Philox(key = seed, counter = (step, site, lane))
 *     draw    word e % 4 of Philox(key, counter = (e / 4, position, sequence, tag))
 *
 * A stream belongs to one site at one step. Within a stream, counters are the coordinates, so no
 * two elements share a word. Two streams of one seed coincide only where 96 bits of two different
 * Philox blocks are equal: for n streams with probability n^2 / 2^97.
 *
 * Range    seed, step < 2^64; site, lane, sequence, position < 2^32; element < 2^34
 * Source   Salmon, Moraes, Dror, Shaw 2011, Parallel random numbers: as easy as 1, 2, 3. */
#ifndef HR_BASE_RANDOM_H
#define HR_BASE_RANDOM_H

#include <stdint.h>

/* Sites outside of a program. Random operations of a program use the sites from 0 up. */
enum {
    HR_SITE_WEIGHTS = 1 << 30, /* initial weights; the lane is the parameter's index */
    HR_SITE_ORDER,             /* order of windows; the step is the epoch */
    HR_SITE_SAMPLE,            /* tokens sampled in training */
    HR_SITE_GENERATE,          /* tokens of headroom generate */
    HR_SITE_PROBE,             /* token ids of calibration */
    HR_SITE_SYNTHETIC,         /* ids of data.train=synthetic; the lane is the stream */
    HR_SITE_MOMENTS,           /* rounding of bf16 moments; the lane is the parameter's index */
    HR_SITE_MASTERS,           /* of weights without an fp32 copy; the same */
    HR_SITE_ADAPTERS           /* initial adapters; the lane is the parameter's index */
};

enum { HR_PHILOX_ROUNDS = 10 };

/* Multipliers and key increments of Philox4x32. */
#define HR_PHILOX_M0 0xd2511f53u
#define HR_PHILOX_M1 0xcd9e8d57u
#define HR_PHILOX_W0 0x9e3779b9u /* golden ratio */
#define HR_PHILOX_W1 0xbb67ae85u /* sqrt(3) - 1 */

typedef struct {
    uint32_t word[4];
} hr_random_block;

typedef struct {
    uint32_t key[2], tag;
} hr_random_stream;

/* One row of a stream. counter[0] is 0: the block index is stored there. */
typedef struct {
    uint32_t key[2], counter[4];
} hr_random_row;

static inline hr_random_block hr_philox(const uint32_t key[2], const uint32_t counter[4])
{
    uint32_t k0 = key[0], k1 = key[1];
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    for (int round = 0; round < HR_PHILOX_ROUNDS; round++) {
        const uint64_t p0 = (uint64_t)HR_PHILOX_M0 * c0, p1 = (uint64_t)HR_PHILOX_M1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += HR_PHILOX_W0;
        k1 += HR_PHILOX_W1;
    }
    return (hr_random_block){ { c0, c1, c2, c3 } };
}

/* Returns the stream of one site.
 *   step  optimizer step or epoch; 0 where there is none
 *   site  one number for each random operation of a program, or HR_SITE_*
 *   lane  separates several streams of one site: head, parameter or file index */
static inline hr_random_stream hr_random_stream_of(uint64_t seed, uint64_t step, uint32_t site,
                                                   uint32_t lane)
{
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    const uint32_t counter[4] = { (uint32_t)step, (uint32_t)(step >> 32), site, lane };
    const hr_random_block block = hr_philox(key, counter);
    return (hr_random_stream){ { block.word[0], block.word[1] }, block.word[2] };
}

static inline hr_random_row hr_random_row_of(hr_random_stream stream, uint32_t sequence,
                                             uint32_t position)
{
    return (hr_random_row){ { stream.key[0], stream.key[1] },
                            { 0, position, sequence, stream.tag } };
}

/* Elements 4 * index to 4 * index + 3 of a row. */
static inline hr_random_block hr_random_block_of(const hr_random_row *row, uint32_t index)
{
    const uint32_t counter[4] = { index, row->counter[1], row->counter[2], row->counter[3] };
    return hr_philox(row->key, counter);
}

/* 32 uniform bits. */
static inline uint32_t hr_random_element(const hr_random_row *row, uint64_t element)
{
    return hr_random_block_of(row, (uint32_t)(element / 4)).word[element % 4];
}

/* 16 uniform bits. Of 32 elements, 16 are the low halves of words, and the others the high ones. */
static inline uint32_t hr_random_half(const hr_random_row *row, uint64_t element)
{
    const uint32_t word = hr_random_element(row, element / 32 * 16 + element % 16);
    return element & 16 ? word >> 16 : word & 0xffff;
}

/* 64 uniform bits: elements 2 * index and 2 * index + 1 of a row. */
static inline uint64_t hr_random_wide(const hr_random_row *row, uint64_t index)
{
    const hr_random_block block = hr_random_block_of(row, (uint32_t)(index / 2));
    const uint32_t *word = block.word + index % 2 * 2;
    return (uint64_t)word[1] << 32 | word[0];
}

/* Uniform in [0, 1), a multiple of 2^-53. */
static inline double hr_random_unit(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

/* Uniform in [0, bound): the probability of each number differs from 1 / bound by less than
 * 2^-64. */
static inline uint64_t hr_random_below(uint64_t bits, uint64_t bound)
{
    return (uint64_t)((unsigned __int128)bits * bound >> 64);
}

/* An element is dropped when its bits are below this: p * 2^32, p in [0, 1). */
static inline uint32_t hr_random_threshold(double p)
{
    return (uint32_t)(p * 4294967296.0);
}

/* A 64-bit hash and bijection (Stafford's variant 13 of the MurmurHash3 finalizer). For hash tables
 * and checks; training draws no numbers from it. */
static inline uint64_t hr_random_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

#endif
