/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/word_counts.h - a hash table of distinct words and their counts, which can be
 * moved to larger memory when it is full. */
#ifndef HR_TOKENIZER_TRAIN_WORD_COUNTS_H
#define HR_TOKENIZER_TRAIN_WORD_COUNTS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/region.h"

typedef struct {
    int64_t words, bytes; /* capacity */
} hr_word_room;

typedef struct {
    uint64_t text; /* offset of its bytes */
    int64_t count;
    uint32_t bytes, hash;
} hr_counted_word;

/* One thread per object. */
typedef struct {
    hr_counted_word *words;
    uint64_t *slots; /* hash << 32 | index + 1; 0: free */
    uint8_t *text;
    hr_word_room room;
    int64_t word_count, text_bytes;
    int32_t slot_bits;
} hr_word_counts;

/* Pure. */
int64_t hr_word_counts_bytes(hr_word_room room);
void hr_word_counts_place(hr_word_counts *counts, hr_region *region, hr_word_room room);

/* Adds all words of `from` to `counts`, which must have room for the new ones. Moves a table into
 * an empty one, or combines the tables of two threads. */
void hr_word_counts_add_all(hr_word_counts *counts, const hr_word_counts *from);

/* The capacity to grow `counts` to. */
hr_word_room hr_word_counts_more(const hr_word_counts *counts);

static inline uint64_t hr_word_hash(const uint8_t *word, int64_t bytes)
{
    uint64_t hash = (uint64_t)bytes * UINT64_C(0x9e3779b97f4a7c15), part;
    for (; bytes >= 8; bytes -= 8, word += 8) {
        memcpy(&part, word, 8);
        hash = (hash ^ part) * UINT64_C(0xbf58476d1ce4e5b9);
        hash ^= hash >> 29;
    }
    part = 0;
    for (int64_t i = 0; i < bytes; i++) part |= (uint64_t)word[i] << (8 * i);
    hash = (hash ^ part) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 32;
}

/* Adds `count` to a word; false: the word is new and there is no room. */
bool hr_word_counts_add(hr_word_counts *counts, const uint8_t *word, int64_t bytes, int64_t count);

/* The index of a word; -1: none. */
int64_t hr_word_counts_find(const hr_word_counts *counts, const uint8_t *word, int64_t bytes);

#endif
