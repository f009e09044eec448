/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/borders.h - upper bounds for how often two tokens are adjacent.
 *
 * A token of stage 2 always consists of the same tokens of stage 1. So all occurrences of a pair of
 * such tokens have the same two stage 1 tokens at the border between them, and the pair is at most
 * as frequent as this border. Where a border is rarer than the last merge will be, the text can be
 * cut. Several borders share one counter: counts may be too high, which keeps text that could be
 * cut, but never too low. */
#ifndef HR_TOKENIZER_TRAIN_BORDERS_H
#define HR_TOKENIZER_TRAIN_BORDERS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/region.h"

typedef struct {
    _Atomic uint32_t *counts; /* [1 << bits] */
    int32_t bits;
} hr_borders;

/* Bytes for a text of `tokens` tokens. Pure. */
int64_t hr_borders_bytes(int64_t tokens);
void hr_borders_place(hr_borders *borders, hr_region *region, int64_t tokens);

static inline _Atomic uint32_t *hr_border(const hr_borders *borders, uint32_t left, uint32_t right)
{
    const uint64_t key = ((uint64_t)left << 32 | right) * UINT64_C(0x9e3779b97f4a7c15);
    return &borders
                ->counts[(key ^ key >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - borders->bits)];
}

/* Counts a border. Threads any: the sums do not depend on the order. */
static inline void hr_borders_add(hr_borders *borders, uint32_t left, uint32_t right)
{
    _Atomic uint32_t *count = hr_border(borders, left, right);
    /* Saturates far above all values that are queried, so it cannot wrap. */
    if (atomic_load_explicit(count, memory_order_relaxed) <= INT32_MAX)
        atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

/* Upper bound for the occurrences of this border; above INT32_MAX: saturated. */
static inline int64_t hr_borders_most(const hr_borders *borders, uint32_t left, uint32_t right)
{
    return atomic_load_explicit(hr_border(borders, left, right), memory_order_relaxed);
}

/* The largest count that at least `wanted` counters reach; 1 if fewer are in use. */
int64_t hr_borders_level(const hr_borders *borders, int64_t wanted);

/* The largest count. */
int64_t hr_borders_largest(const hr_borders *borders);

#endif
