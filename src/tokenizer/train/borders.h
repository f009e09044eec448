/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/borders.h - how often two tokens stand beside each other, at most.
 *
 * A token of stage 2 is only ever made of the same tokens of stage 1. So each place where a pair of
 * such tokens meets is the border of the same two, and a pair is never more frequent than the two
 * at its border. Where those are rarer than the last merge will be, the text can be cut. Counts of
 * several borders fall together into one: they are too high, which keeps what could be cut, and
 * never too low. */
#ifndef HR_TOKENIZER_TRAIN_BORDERS_H
#define HR_TOKENIZER_TRAIN_BORDERS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/region.h"

typedef struct {
    _Atomic uint32_t *counts; /* [1 << bits] */
    int32_t bits;
} hr_borders;

/* Bytes for a text of so many tokens. Pure. */
int64_t hr_borders_bytes(int64_t tokens);
void hr_borders_place(hr_borders *borders, hr_region *region, int64_t tokens);

static inline _Atomic uint32_t *hr_border(const hr_borders *borders, uint32_t left, uint32_t right)
{
    const uint64_t key = ((uint64_t)left << 32 | right) * UINT64_C(0x9e3779b97f4a7c15);
    return &borders
                ->counts[(key ^ key >> 32) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - borders->bits)];
}

/* Counts a border. Threads any: sums are the same in any order. */
static inline void hr_borders_add(hr_borders *borders, uint32_t left, uint32_t right)
{
    _Atomic uint32_t *count = hr_border(borders, left, right);
    /* It stays where it is before it could wrap, above all that is ever asked for. */
    if (atomic_load_explicit(count, memory_order_relaxed) <= INT32_MAX)
        atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

/* How often the two are beside each other, at most; above INT32_MAX: or more. */
static inline int64_t hr_borders_most(const hr_borders *borders, uint32_t left, uint32_t right)
{
    return atomic_load_explicit(hr_border(borders, left, right), memory_order_relaxed);
}

/* The largest count that at least `wanted` have, or more; 1 where there are not so many. */
int64_t hr_borders_level(const hr_borders *borders, int64_t wanted);

/* The largest of all counts. */
int64_t hr_borders_largest(const hr_borders *borders);

#endif
