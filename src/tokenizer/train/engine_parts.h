/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/engine_parts.h - what counting anew and merging share. */
#ifndef HR_TOKENIZER_TRAIN_ENGINE_PARTS_H
#define HR_TOKENIZER_TRAIN_ENGINE_PARTS_H

#include "tokenizer/train/engine.h"

/* The id of a token, whether it is the first of its word or not. */
static inline uint32_t hr_slot_token(uint32_t slot)
{
    return slot & ~HR_SLOT_FIRST;
}

/* Where the token behind the token at `at` is, or the end. It has the plain id if it is of the same
 * word. */
static inline uint32_t hr_slot_next(const uint32_t *slots, uint32_t at)
{
    const uint32_t next = slots[at + 1];
    return next & HR_SLOT_DEAD ? at + (next & ~HR_SLOT_DEAD) : at + 1;
}

/* The token before the token at `at`; there must be one. */
static inline uint32_t hr_slot_previous(const uint32_t *slots, uint32_t at)
{
    const uint32_t last = slots[at - 1];
    return last & HR_SLOT_DEAD ? at - (last & ~HR_SLOT_DEAD) : at - 1;
}

static inline uint64_t hr_pair_key(uint32_t left, uint32_t right)
{
    return (uint64_t)left << 32 | right;
}

hr_engine_pair *hr_engine_find(const hr_engine *engine, uint64_t key);

/* Adds a pair that is not there yet, with room for a list of `places` positions behind all others,
 * of which nothing is written. Returns its number. */
uint32_t hr_engine_add_pair(hr_engine *engine, uint64_t key, int64_t count, uint32_t places);

/* Writes the two words before a pair's list: whose it is, and how long. */
static inline void hr_engine_head_list(hr_engine *engine, uint32_t pair)
{
    const hr_engine_pair *p = &engine->pairs[pair];
    engine->positions[p->first - 2] = pair;
    engine->positions[p->first - 1] = p->places;
}

/* Orders heap [heap_count]. */
void hr_engine_make_heap(hr_engine *engine);

/* Positions that merging a pair of so many occurrences may need beside its list; and pairs. */
static inline int64_t hr_engine_room_positions(int64_t occurrences)
{
    /* Each: two events of two words, two positions, and two words before the list of each. */
    return 10 * occurrences + 64;
}
static inline int64_t hr_engine_room_pairs(const hr_engine *engine, int64_t occurrences)
{
    const int64_t by_neighbour = 2 * (int64_t)engine->vocabulary.count;
    return (2 * occurrences < by_neighbour ? 2 * occurrences : by_neighbour) + 2;
}

#endif
