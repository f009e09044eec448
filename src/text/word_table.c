/* SPDX-License-Identifier: Apache-2.0 */
/* text/word_table.c - linear probing with a load factor of at most one half, and a bounded heap for
 * the ranking. */
#include "text/word_table.h"

#include <string.h>
#include <xxhash.h>

#include "base/assert.h"
#include "base/checked.h"

static int slot_bits_for(int64_t words_max)
{
    int bits = 4;
    while ((INT64_C(1) << bits) < 2 * words_max) bits++;
    return bits;
}

int64_t hr_words_bytes_for(int64_t words_max, int64_t text_max)
{
    HR_ASSERT(words_max >= 1 && words_max <= HR_WORDS_MAX && text_max <= UINT32_MAX);
    return hr_round_up(words_max * (int64_t)sizeof(hr_word), 64) +
           (INT64_C(4) << slot_bits_for(words_max)) + hr_round_up(text_max, 64);
}

int64_t hr_words_bytes(int64_t words_max)
{
    return hr_words_bytes_for(words_max, words_max * HR_WORDS_TEXT_BYTES);
}

hr_word_table hr_words_place(void *memory, int64_t words_max)
{
    return hr_words_place_for(memory, words_max, words_max * HR_WORDS_TEXT_BYTES);
}

hr_word_table hr_words_place_for(void *memory, int64_t words_max, int64_t text_max)
{
    HR_ASSERT(words_max >= 1 && words_max <= HR_WORDS_MAX && text_max <= UINT32_MAX);
    hr_word_table table = { .words = memory,
                            .words_max = words_max,
                            .text_max = text_max,
                            .slot_bits = slot_bits_for(words_max) };
    table.slots = (uint32_t *)((uint8_t *)memory +
                               hr_round_up(words_max * (int64_t)sizeof(hr_word), 64));
    table.text = (uint8_t *)(table.slots + (INT64_C(1) << table.slot_bits));
    hr_words_clear(&table);
    return table;
}

void hr_words_clear(hr_word_table *table)
{
    table->word_count = 0;
    table->text_bytes = 0;
    memset(table->slots, 0, (size_t)4 << table->slot_bits);
}

uint64_t hr_words_hash(const uint8_t *word, int64_t bytes)
{
    return XXH3_64bits(word, (size_t)bytes);
}

/* The slot that holds the word, or the free slot for it. At least one slot is always free. */
static int64_t slot_of(const hr_word_table *table, const uint8_t *word, int64_t bytes,
                       uint64_t hash)
{
    const int64_t mask = (INT64_C(1) << table->slot_bits) - 1;
    int64_t slot = (int64_t)(hash >> (64 - table->slot_bits));
    for (; table->slots[slot]; slot = (slot + 1) & mask) {
        const hr_word *there = &table->words[table->slots[slot] - 1];
        if (there->bytes == bytes && memcmp(table->text + there->text, word, (size_t)bytes) == 0)
            break;
    }
    return slot;
}

int64_t hr_words_find(const hr_word_table *table, const uint8_t *word, int64_t bytes, uint64_t hash)
{
    return (int64_t)table->slots[slot_of(table, word, bytes, hash)] - 1;
}

int64_t hr_words_add(hr_word_table *table, const uint8_t *word, int64_t bytes, uint64_t hash)
{
    const int64_t slot = slot_of(table, word, bytes, hash);
    if (table->slots[slot]) return (int64_t)table->slots[slot] - 1;
    if (table->word_count == table->words_max || bytes > table->text_max - table->text_bytes)
        return -1;
    const int64_t index = table->word_count++;
    table->words[index] = (hr_word){ (uint32_t)table->text_bytes, (uint32_t)bytes, 0 };
    memcpy(table->text + table->text_bytes, word, (size_t)bytes);
    table->text_bytes += bytes;
    table->slots[slot] = (uint32_t)index + 1;
    return index;
}

static bool ranks_before(const hr_word_table *table, uint32_t a, uint32_t b)
{
    const int64_t count_a = table->words[a].count, count_b = table->words[b].count;
    return count_a != count_b ? count_a > count_b : a < b;
}

/* Restores the heap below `place`: the lowest-ranked word is on top. */
static void sink(const hr_word_table *table, uint32_t *heap, int64_t count, int64_t place)
{
    const uint32_t word = heap[place];
    for (int64_t child = 2 * place + 1; child < count; child = 2 * place + 1) {
        if (child + 1 < count && ranks_before(table, heap[child], heap[child + 1])) child++;
        if (!ranks_before(table, word, heap[child])) break;
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = word;
}

int64_t hr_words_rank(const hr_word_table *table, uint32_t *order, int64_t most)
{
    const int64_t count = hr_min(most, table->word_count);
    if (count <= 0) return 0;
    for (int64_t i = 0; i < count; i++) order[i] = (uint32_t)i;
    for (int64_t i = count / 2 - 1; i >= 0; i--) sink(table, order, count, i);
    for (int64_t i = count; i < table->word_count; i++) {
        if (!ranks_before(table, (uint32_t)i, order[0])) continue;
        order[0] = (uint32_t)i;
        sink(table, order, count, 0);
    }
    /* Remove the lowest-ranked word from the top repeatedly; this fills the order from its end. */
    for (int64_t left = count - 1; left > 0; left--) {
        const uint32_t last = order[0];
        order[0] = order[left];
        order[left] = last;
        sink(table, order, left, 0);
    }
    return count;
}
