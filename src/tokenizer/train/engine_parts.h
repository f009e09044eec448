/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/engine_parts.h - functions shared by engine.c and engine_count.c. */
#ifndef HR_TOKENIZER_TRAIN_ENGINE_PARTS_H
#define HR_TOKENIZER_TRAIN_ENGINE_PARTS_H

#include "tokenizer/train/engine.h"

/* The token id of a slot without the first-of-word mark. */
static inline uint32_t hr_slot_token(uint32_t slot)
{
    return slot & ~HR_SLOT_FIRST;
}

/* The slot of the token after the token at `at`, or the end. Its slot has no mark if it belongs to
 * the same word. */
static inline uint32_t hr_slot_next(const uint32_t *slots, uint32_t at)
{
    const uint32_t next = slots[at + 1];
    return next & HR_SLOT_DEAD ? at + (next & ~HR_SLOT_DEAD) : at + 1;
}

/* The slot of the token before the token at `at`, which must exist. */
static inline uint32_t hr_slot_previous(const uint32_t *slots, uint32_t at)
{
    const uint32_t last = slots[at - 1];
    return last & HR_SLOT_DEAD ? at - (last & ~HR_SLOT_DEAD) : at - 1;
}

static inline uint64_t hr_pair_key(uint32_t left, uint32_t right)
{
    return (uint64_t)left << 32 | right;
}

/* Writes the header of a pair's list: the pair and the length. */
static inline void hr_engine_head_list(hr_engine *engine, uint32_t pair)
{
    const hr_engine_pair *p = &engine->pairs[pair];
    engine->positions[p->first - 2] = pair;
    engine->positions[p->first - 1] = p->places;
}

/* Upper bounds for the positions and pairs that merging a pair needs in addition to its list. */
static inline int64_t hr_engine_room_positions(int64_t occurrences)
{
    /* Per occurrence: two events of two words, two positions, and the two-word header of each
     * list. */
    return 10 * occurrences + 64;
}
static inline int64_t hr_engine_room_pairs(const hr_engine *engine, int64_t occurrences)
{
    const int64_t by_neighbor = 2 * (int64_t)engine->vocabulary.count;
    return (2 * occurrences < by_neighbor ? 2 * occurrences : by_neighbor) + 2;
}

#endif
