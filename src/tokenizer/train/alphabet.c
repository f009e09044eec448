/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/alphabet.c - collects, limits and sorts the characters of the alphabet. */
#include "tokenizer/train/alphabet.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "tokenizer/unicode.h"

int64_t hr_alphabet_bytes(const char *initial)
{
    const int64_t most = 256 + (initial ? (int64_t)strlen(initial) : 0);
    return hr_round_up(most * (int64_t)sizeof(hr_alphabet_character), 64);
}

static void add(hr_alphabet *a, uint32_t point, int32_t byte, int64_t count)
{
    for (int64_t i = 0; i < a->count; i++) {
        if (a->characters[i].point != point) continue;
        a->characters[i].count = hr_max(a->characters[i].count, count);
        return;
    }
    HR_ASSERT(a->count < a->characters_max);
    a->characters[a->count++] = (hr_alphabet_character){ count, point, byte };
}

static hr_status add_initial(hr_alphabet *a, const char *initial, hr_error *err)
{
    if (!strcmp(initial, "bytes")) {
        for (int32_t byte = 0; byte < 256; byte++)
            add(a, hr_byte_point((uint8_t)byte), byte, INT64_MAX);
        return HR_OK;
    }
    const int64_t bytes = (int64_t)strlen(initial);
    for (int64_t at = 0; at < bytes;) {
        uint32_t point;
        int32_t byte = -1;
        const int64_t taken = hr_utf8_take((const uint8_t *)initial + at, bytes - at, &point);
        if (taken == 1 && (uint8_t)initial[at] >= 0x80)
            return hr_fail(err, HR_USAGE, "initial alphabet: byte %lld is not UTF-8",
                           (long long)at);
        for (int32_t b = 0; b < 256; b++)
            if (hr_byte_point((uint8_t)b) == point) byte = b;
        add(a, point, byte, INT64_MAX);
        at += taken;
    }
    return HR_OK;
}

/* Insertion sort, because there are only a few hundred characters. */
static void order(hr_alphabet *a, bool by_count)
{
    for (int64_t i = 1; i < a->count; i++) {
        const hr_alphabet_character moving = a->characters[i];
        int64_t at = i;
        for (; at > 0; at--) {
            const hr_alphabet_character *other = &a->characters[at - 1];
            const bool more = by_count && moving.count != other->count;
            if (more ? moving.count < other->count : moving.point > other->point) break;
            a->characters[at] = *other;
        }
        a->characters[at] = moving;
    }
}

hr_status hr_alphabet_place(hr_alphabet *a, hr_region *region, const int64_t counts[256],
                            const char *initial, int64_t limit, hr_error *err)
{
    *a = (hr_alphabet){ .characters_max = 256 + (initial ? (int64_t)strlen(initial) : 0) };
    a->characters = hr_region_take_raw(region, a->characters_max, sizeof *a->characters);
    HR_ASSERT(a->characters);
    for (int32_t byte = 0; byte < 256; byte++)
        if (counts[byte]) add(a, hr_byte_point((uint8_t)byte), byte, counts[byte]);
    hr_status status = initial ? add_initial(a, initial, err) : HR_OK;
    if (status != HR_OK) return status;
    if (limit > 0 && limit < a->count) {
        order(a, true);
        a->count = limit;
    }
    order(a, false);
    return HR_OK;
}

int64_t hr_alphabet_leaves(const hr_alphabet *a, const char *const *special, int32_t special_count)
{
    int64_t bytes = a->count * HR_SPELL_BYTES;
    for (int32_t i = 0; i < special_count; i++) bytes += (int64_t)strlen(special[i]);
    return bytes;
}

void hr_alphabet_put(const hr_alphabet *a, const char *const *special, int32_t special_count,
                     hr_vocabulary *vocabulary, uint32_t ids[256])
{
    for (int32_t i = 0; i < special_count; i++)
        hr_vocabulary_leaf(vocabulary, special[i], (int64_t)strlen(special[i]), -1);
    for (int32_t byte = 0; byte < 256; byte++) ids[byte] = HR_NO_TOKEN;
    for (int64_t i = 0; i < a->count; i++) {
        char text[HR_SPELL_BYTES];
        const hr_alphabet_character *c = &a->characters[i];
        const int32_t bytes = hr_point_spell(c->point, text);
        const uint32_t id = hr_vocabulary_leaf(vocabulary, text, bytes, c->byte);
        if (c->byte >= 0) ids[c->byte] = id;
    }
}
