/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/charsmap.c - searches the trie. Every index is checked, because the file may be
 * invalid. */
#include "tokenizer/charsmap.h"

#include <string.h>

#include "base/checked.h"
#include "tokenizer/unicode.h"

enum { UNIT_BYTES = 4, BLOCK_BYTES = 1024, RESULTS_MAX = 32 };

int64_t hr_charsmap_bytes(int64_t bytes)
{
    return bytes + 2 * 64;
}

const char *hr_charsmap_place(hr_charsmap *map, hr_region *region, const uint8_t *blob,
                              int64_t bytes)
{
    uint32_t trie_bytes;
    if (bytes <= UNIT_BYTES) return "it is too short";
    memcpy(&trie_bytes, blob, UNIT_BYTES);
    if ((int64_t)trie_bytes >= bytes - UNIT_BYTES || trie_bytes < BLOCK_BYTES ||
        trie_bytes % BLOCK_BYTES)
        return "the size of its trie is invalid";
    const int64_t rest = bytes - UNIT_BYTES - (int64_t)trie_bytes;
    uint32_t *units = hr_region_take_raw(region, trie_bytes / UNIT_BYTES, UNIT_BYTES);
    uint8_t *texts = hr_region_take_raw(region, rest, 1);
    if (!units || !texts) return "out of memory";
    memcpy(units, blob + UNIT_BYTES, trie_bytes);
    memcpy(texts, blob + UNIT_BYTES + trie_bytes, (size_t)rest);
    if (texts[rest - 1]) return "its last replacement is not terminated";
    if (!hr_utf8_valid(texts, rest)) return "its replacements are not UTF-8";
    *map = (hr_charsmap){ units, trie_bytes / UNIT_BYTES, texts, rest };
    return NULL;
}

static inline uint64_t offset_of(uint32_t unit)
{
    return (uint64_t)(unit >> 10) << ((unit & (1u << 9)) >> 6);
}

/* Follows the edge of a byte. Returns true if a key ends there, and its value. *at: -1 if no key
 * continues. */
static inline bool step(const hr_charsmap *map, int64_t *at, uint8_t byte, uint32_t *value)
{
    const uint64_t next = (uint64_t)*at ^ byte;
    *at = -1;
    if (next >= (uint64_t)map->count) return false;
    const uint32_t unit = map->units[next];
    if ((unit & (1u << 31 | 0xff)) != byte) return false;
    const uint64_t base = next ^ offset_of(unit);
    if (base >= (uint64_t)map->count) return false;
    *at = (int64_t)base;
    *value = map->units[base] & 0x7fffffff;
    return (unit >> 8 & 1) && (int64_t)*value < map->bytes;
}

static inline int64_t root(const hr_charsmap *map)
{
    const uint64_t base = offset_of(map->units[0]);
    return base < (uint64_t)map->count ? (int64_t)base : -1;
}

static hr_charsmap_match match_of(const hr_charsmap *map, int64_t taken, uint32_t value)
{
    const uint8_t *text = map->texts + value;
    return (hr_charsmap_match){ taken, text, (int64_t)strlen((const char *)text) };
}

hr_charsmap_match hr_charsmap_shortest(const hr_charsmap *map, const uint8_t *text, int64_t bytes)
{
    int64_t at = root(map);
    uint32_t value;
    for (int64_t i = 0; i < bytes && at >= 0 && text[i]; i++)
        if (step(map, &at, text[i], &value)) return match_of(map, i + 1, value);
    return (hr_charsmap_match){ 0, NULL, 0 };
}

hr_charsmap_match hr_charsmap_longest(const hr_charsmap *map, const uint8_t *text, int64_t bytes,
                                      bool *more)
{
    int64_t at = root(map), taken = 0;
    uint32_t value, longest = 0;
    int32_t found = 0;
    const int64_t most = hr_min(bytes, HR_CHARSMAP_KEY_MAX);
    int64_t i = 0;
    for (; i < most && at >= 0 && found < RESULTS_MAX; i++) {
        if (!step(map, &at, text[i], &value)) continue;
        taken = i + 1;
        longest = value;
        found++;
    }
    *more = i == bytes && at >= 0 && found < RESULTS_MAX && bytes < HR_CHARSMAP_KEY_MAX;
    return taken ? match_of(map, taken, longest) : (hr_charsmap_match){ 0, NULL, 0 };
}
