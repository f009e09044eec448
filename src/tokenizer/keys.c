/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/keys.c - the hash table of tokens by text, and the characters that stand for bytes. */
#include <string.h>

#include "base/checked.h"
#include "tokenizer/reading.h"

static int32_t bits_for(int64_t ids)
{
    int32_t bits = 4;
    while ((INT64_C(1) << bits) < 2 * ids) bits++;
    return bits;
}

int64_t hr_keys_bytes(int64_t ids)
{
    return 8 * (ids + 1) + (INT64_C(4) << bits_for(ids)) + 4 * 64;
}

bool hr_keys_place(hr_keys *keys, hr_region *region, int64_t ids, const char *text)
{
    *keys = (hr_keys){ .text = text, .ids = ids, .bits = bits_for(ids) };
    keys->at = hr_region_take_raw(region, ids + 1, 4);
    keys->bytes = hr_region_take_raw(region, ids + 1, 4);
    keys->slots = hr_region_take_raw(region, INT64_C(1) << keys->bits, 4);
    if (!keys->slots) return false;
    memset(keys->bytes, 0xff, (size_t)(ids + 1) * 4);
    memset(keys->slots, 0xff, (size_t)4 << keys->bits);
    return true;
}

static uint64_t hash_on(uint64_t hash, const char *text, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++)
        hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x9e3779b97f4a7c15), hash ^= hash >> 29;
    return hash;
}

static int64_t slot_of(const hr_keys *keys, const char *text, int64_t bytes, const char *more,
                       int64_t more_bytes)
{
    const int64_t mask = (INT64_C(1) << keys->bits) - 1;
    int64_t slot = (int64_t)(hash_on(hash_on(1, text, bytes), more, more_bytes) >> 8) & mask;
    for (; keys->slots[slot] >= 0; slot = (slot + 1) & mask) {
        const int32_t id = keys->slots[slot];
        const char *there = keys->text + keys->at[id];
        if (keys->bytes[id] == bytes + more_bytes && !memcmp(there, text, (size_t)bytes) &&
            !memcmp(there + bytes, more, (size_t)more_bytes))
            break;
    }
    return slot;
}

int32_t hr_keys_find(const hr_keys *keys, const char *text, int64_t bytes, const char *more,
                     int64_t more_bytes)
{
    return keys->slots[slot_of(keys, text, bytes, more, more_bytes)];
}

const char *hr_keys_add(hr_keys *keys, const char *text, int64_t bytes, int64_t id)
{
    if (id < 0 || id >= keys->ids) return "the id is out of range";
    if (keys->bytes[id] >= 0) return "another token has the same id";
    const int64_t slot = slot_of(keys, text, bytes, "", 0);
    if (keys->slots[slot] >= 0) return "it occurs twice";
    keys->slots[slot] = (int32_t)id;
    keys->at[id] = (uint32_t)(text - keys->text);
    keys->bytes[id] = (int32_t)bytes;
    keys->count++;
    keys->text_bytes += bytes;
    return NULL;
}

static int32_t hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int32_t hr_byte_piece(const uint8_t *text, int64_t bytes)
{
    if (bytes != 6 || memcmp(text, "<0x", 3) || text[5] != '>') return -1;
    const int32_t high = text[3] == '+' ? 0 : hex_digit(text[3]), low = hex_digit(text[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Bytes 33 to 126, 161 to 172 and 174 to 255 map to themselves, the others to U+0100 and up. */
static bool is_itself(uint32_t byte)
{
    return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) ||
           (byte >= 174 && byte <= 255);
}

uint32_t hr_byte_character(uint8_t byte)
{
    if (is_itself(byte)) return byte;
    uint32_t character = 0x100;
    for (uint32_t other = 0; other < byte; other++) character += !is_itself(other);
    return character;
}

int32_t hr_character_byte(uint32_t character)
{
    if (character < 0x100) return is_itself(character) ? (int32_t)character : -1;
    if (character <= 0x120) return (int32_t)(character - 0x100); /* 0 to 32 */
    if (character <= 0x142) return (int32_t)(character - 0x121) + 127;
    return character == 0x143 ? 173 : -1;
}
