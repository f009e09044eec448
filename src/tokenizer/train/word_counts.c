/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/word_counts.c - open addressing. A slot holds half of the hash, so most
 * mismatches are rejected without reading the word. */
#include "tokenizer/train/word_counts.h"

#include "base/assert.h"
#include "base/checked.h"

static int32_t bits_for(int64_t words)
{
    int32_t bits = 6;
    while (INT64_C(1) << bits < words + words / 2) bits++;
    return bits;
}

int64_t hr_word_counts_bytes(hr_word_room room)
{
    return hr_round_up(room.words * (int64_t)sizeof(hr_counted_word), 64) +
           (INT64_C(8) << bits_for(room.words)) + hr_round_up(room.bytes, 64);
}

void hr_word_counts_place(hr_word_counts *c, hr_region *region, hr_word_room room)
{
    *c = (hr_word_counts){ .room = room, .slot_bits = bits_for(room.words) };
    c->words = hr_region_take_raw(region, room.words, sizeof *c->words);
    c->slots = hr_region_take(region, INT64_C(1) << c->slot_bits, 8);
    c->text = hr_region_take_raw(region, room.bytes, 1);
    HR_ASSERT(c->words && c->slots && c->text);
}

/* The slot of a word, or the free slot where it belongs. */
static uint64_t *find(const hr_word_counts *c, const uint8_t *word, int64_t bytes, uint32_t hash)
{
    const uint64_t mask = (UINT64_C(1) << c->slot_bits) - 1;
    for (uint64_t i = hash & mask;; i = (i + 1) & mask) {
        const uint64_t slot = c->slots[i];
        if (!slot) return &c->slots[i];
        if (slot >> 32 != hash) continue;
        const hr_counted_word *known = &c->words[(uint32_t)slot - 1];
        if (known->bytes == bytes && !memcmp(c->text + known->text, word, (size_t)bytes))
            return &c->slots[i];
    }
}

static uint32_t hash_of(const uint8_t *word, int64_t bytes)
{
    return (uint32_t)hr_word_hash(word, bytes);
}

static bool add(hr_word_counts *c, const uint8_t *word, int64_t bytes, uint32_t hash, int64_t count)
{
    uint64_t *slot = find(c, word, bytes, hash);
    if (!*slot) {
        if (c->word_count == c->room.words || c->text_bytes + bytes > c->room.bytes) return false;
        c->words[c->word_count] = (hr_counted_word){ (uint64_t)c->text_bytes, 0, (uint32_t)bytes,
                                                     hash };
        memcpy(c->text + c->text_bytes, word, (size_t)bytes);
        c->text_bytes += bytes;
        *slot = (uint64_t)hash << 32 | (uint64_t)++c->word_count;
    }
    c->words[(uint32_t)*slot - 1].count += count;
    return true;
}

bool hr_word_counts_add(hr_word_counts *c, const uint8_t *word, int64_t bytes, int64_t count)
{
    return add(c, word, bytes, hash_of(word, bytes), count);
}

int64_t hr_word_counts_find(const hr_word_counts *c, const uint8_t *word, int64_t bytes)
{
    return (int64_t)(uint32_t)*find(c, word, bytes, hash_of(word, bytes)) - 1;
}

void hr_word_counts_add_all(hr_word_counts *c, const hr_word_counts *from)
{
    for (int64_t i = 0; i < from->word_count; i++) {
        const hr_counted_word *word = &from->words[i];
        const bool added = add(c, from->text + word->text, word->bytes, word->hash, word->count);
        HR_ASSERT(added);
    }
}

hr_word_room hr_word_counts_more(const hr_word_counts *c)
{
    hr_word_room room = c->room;
    if (c->word_count * 4 >= room.words * 3) room.words = hr_min(2 * room.words, UINT32_MAX / 2);
    if (c->text_bytes * 4 >= room.bytes * 3) room.bytes *= 2;
    return room;
}
