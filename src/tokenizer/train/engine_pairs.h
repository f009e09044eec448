/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/engine_pairs.h - the hash table of pairs, and the heap of the most frequent ones.
 * Merging and counting use both. */
#ifndef HR_TOKENIZER_TRAIN_ENGINE_PAIRS_H
#define HR_TOKENIZER_TRAIN_ENGINE_PAIRS_H

#include "base/assert.h"
#include "base/checked.h"
#include "tokenizer/train/engine.h"

/* Hash table of pairs. */

static inline uint64_t hr_engine_place_of(const hr_engine *e, uint64_t key)
{
    return key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - e->index_bits);
}

static inline hr_engine_pair *hr_engine_find(const hr_engine *e, uint64_t key)
{
    const uint64_t mask = (UINT64_C(1) << e->index_bits) - 1;
    for (uint64_t i = hr_engine_place_of(e, key);; i = (i + 1) & mask) {
        if (!e->index[i]) return 0;
        hr_engine_pair *pair = &e->pairs[e->index[i] - 1];
        if (pair->key == key) return pair;
    }
}

/* Adds a new pair and reserves an unwritten list of `places` positions after all others. Returns
 * its number. */
static inline uint32_t hr_engine_add_pair(hr_engine *e, uint64_t key, int64_t count,
                                          uint32_t places)
{
    const uint64_t mask = (UINT64_C(1) << e->index_bits) - 1;
    uint64_t i = hr_engine_place_of(e, key);
    while (e->index[i]) i = (i + 1) & mask;
    HR_ASSERT(e->pair_count < e->sizes.pairs);
    const uint32_t pair = (uint32_t)e->pair_count++;
    e->index[i] = pair + 1;
    e->pairs[pair] = (hr_engine_pair){ key, count, (uint32_t)e->position_count + 2, places };
    e->position_count += 2 + (int64_t)places;
    return pair;
}

/* Heap with eight children per node: largest count first, then smallest key. */

static inline bool hr_engine_before(const hr_engine *e, const hr_engine_top *a,
                                    const hr_engine_top *b)
{
    if (a->count != b->count) return a->count > b->count;
    return e->pairs[a->pair].key < e->pairs[b->pair].key;
}

static inline void hr_engine_sink(hr_engine *e, int64_t at)
{
    const hr_engine_top moving = e->heap[at];
    for (;;) {
        const int64_t first = 8 * at + 1, end = hr_min(first + 8, e->heap_count);
        int64_t best = first;
        if (first >= end) break;
        for (int64_t i = first + 1; i < end; i++)
            if (hr_engine_before(e, &e->heap[i], &e->heap[best])) best = i;
        if (!hr_engine_before(e, &e->heap[best], &moving)) break;
        e->heap[at] = e->heap[best];
        at = best;
    }
    e->heap[at] = moving;
}

static inline void hr_engine_push(hr_engine *e, uint32_t pair, int64_t count)
{
    int64_t at = e->heap_count++;
    const hr_engine_top moving = { count, pair };
    HR_ASSERT(at < e->sizes.pairs);
    while (at > 0 && hr_engine_before(e, &moving, &e->heap[(at - 1) / 8])) {
        e->heap[at] = e->heap[(at - 1) / 8];
        at = (at - 1) / 8;
    }
    e->heap[at] = moving;
}

static inline void hr_engine_drop_top(hr_engine *e)
{
    e->heap[0] = e->heap[--e->heap_count];
    if (e->heap_count) hr_engine_sink(e, 0);
}

/* Builds the heap from heap [heap_count]. */
static inline void hr_engine_make_heap(hr_engine *e)
{
    for (int64_t i = (e->heap_count - 2) / 8; i >= 0; i--)
        if (e->heap_count > 1) hr_engine_sink(e, i);
}

#endif
