/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/nfc.c - copies stable text. Decomposes, reorders and composes each run: a starter and
 * all characters that may combine with it.
 *
 * Source   The Unicode Standard, 3.11 (canonical ordering, composition) and 3.12 (Hangul). */
#include "tokenizer/nfc.h"

#include <string.h>

#include "tokenizer/unicode.h"

enum {
    SYLLABLE = 0xac00,
    LEADING = 0x1100,
    VOWEL = 0x1161,
    TRAILING = 0x11a7,
    VOWELS = 21,
    TRAILINGS = 28,
    LEADINGS = 19,
    SYLLABLES = LEADINGS * VOWELS * TRAILINGS,
    STABLE_BELOW = 0x300,
    UTF8_MOST = 4
};

static uint32_t pair_of(uint32_t first, uint32_t second)
{
    const uint32_t leading = first - LEADING, vowel = second - VOWEL;
    if (leading < LEADINGS && vowel < VOWELS)
        return SYLLABLE + (leading * VOWELS + vowel) * TRAILINGS;
    const uint32_t syllable = first - SYLLABLE, trailing = second - TRAILING;
    if (syllable < SYLLABLES && syllable % TRAILINGS == 0 && trailing - 1 < TRAILINGS - 1)
        return first + trailing;
    int32_t low = 0, high = HR_NFC_PAIRS;
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        const hr_nfc_pair *pair = &hr_nfc_pairs[middle];
        if (pair->first == first && pair->second == second) return pair->composed;
        if (pair->first < first || (pair->first == first && pair->second < second))
            low = middle + 1;
        else high = middle;
    }
    return 0;
}

/* Appends the decomposition of a code point; false: no room. */
static bool add_parts(hr_nfc_scratch *scratch, int32_t *count, uint32_t point)
{
    if (*count + 8 > HR_NFC_RUN_MAX) return false;
    const uint32_t syllable = point - SYLLABLE;
    if (syllable < SYLLABLES) {
        scratch->points[(*count)++] = LEADING + syllable / (VOWELS * TRAILINGS);
        scratch->points[(*count)++] = VOWEL + syllable % (VOWELS * TRAILINGS) / TRAILINGS;
        if (syllable % TRAILINGS) scratch->points[(*count)++] = TRAILING + syllable % TRAILINGS;
        return true;
    }
    const hr_nfc_form *form = hr_nfc_form_of(point);
    if (!form->count) scratch->points[(*count)++] = point;
    for (int32_t i = 0; i < form->count; i++)
        scratch->points[(*count)++] = hr_nfc_points[form->points + i];
    return true;
}

/* Stable sort of the marks between two starters by combining class. */
static void order_marks(hr_nfc_scratch *scratch, int32_t begin, int32_t end)
{
    int32_t starts[256] = { 0 };
    bool sorted = true;
    for (int32_t i = begin; i < end; i++) {
        starts[hr_nfc_form_of(scratch->points[i])->order]++;
        if (i > begin && hr_nfc_form_of(scratch->points[i])->order <
                             hr_nfc_form_of(scratch->points[i - 1])->order)
            sorted = false;
    }
    if (sorted) return;
    for (int32_t order = 0, at = begin; order < 256; order++) {
        const int32_t count = starts[order];
        starts[order] = at;
        at += count;
    }
    for (int32_t i = begin; i < end; i++)
        scratch->sorted[starts[hr_nfc_form_of(scratch->points[i])->order]++] = scratch->points[i];
    memcpy(scratch->points + begin, scratch->sorted + begin,
           (size_t)(end - begin) * sizeof *scratch->points);
}

static int32_t compose(hr_nfc_scratch *scratch, int32_t count)
{
    uint32_t *points = scratch->points;
    int32_t starter = -1, kept = 0, last_order = 0;
    for (int32_t i = 0; i < count; i++) {
        const int32_t order = hr_nfc_form_of(points[i])->order;
        const bool adjacent = starter == kept - 1;
        const bool blocked = !adjacent && (last_order >= order || last_order == 0);
        const uint32_t composed = starter >= 0 && !blocked ? pair_of(points[starter], points[i])
                                                           : 0;
        if (composed) {
            points[starter] = composed;
            continue;
        }
        if (order == 0) starter = kept;
        last_order = order;
        points[kept++] = points[i];
    }
    return kept;
}

static uint8_t *put(uint8_t *out, uint32_t point)
{
    if (point < 0x80) {
        *out++ = (uint8_t)point;
    } else if (point < 0x800) {
        *out++ = (uint8_t)(0xc0 | point >> 6);
        *out++ = (uint8_t)(0x80 | (point & 0x3f));
    } else if (point < 0x10000) {
        *out++ = (uint8_t)(0xe0 | point >> 12);
        *out++ = (uint8_t)(0x80 | (point >> 6 & 0x3f));
        *out++ = (uint8_t)(0x80 | (point & 0x3f));
    } else {
        *out++ = (uint8_t)(0xf0 | point >> 18);
        *out++ = (uint8_t)(0x80 | (point >> 12 & 0x3f));
        *out++ = (uint8_t)(0x80 | (point >> 6 & 0x3f));
        *out++ = (uint8_t)(0x80 | (point & 0x3f));
    }
    return out;
}

/* The end of the stable characters from `at` on. *last: where the last of them begins. */
static int64_t stable_end(const uint8_t *text, int64_t at, int64_t bytes, int64_t *last)
{
    uint32_t point;
    *last = at;
    for (int64_t p = at, taken; p < bytes; p += taken) {
        if (text[p] < 0x80) {
            *last = p;
            taken = 1;
            continue;
        }
        taken = hr_utf8_take(text + p, bytes - p, &point);
        if (point >= STABLE_BELOW && hr_nfc_form_of(point)->unstable) return p;
        *last = p;
    }
    return bytes;
}

bool hr_nfc_stable(const uint8_t *text, int64_t bytes)
{
    int64_t last;
    return stable_end(text, 0, bytes, &last) == bytes;
}

bool hr_nfc_compose(const uint8_t *text, int64_t bytes, bool whole, uint8_t *out, int64_t room,
                    hr_nfc_scratch *scratch, int64_t *taken, int64_t *written)
{
    int64_t at = 0, used = 0;
    *taken = *written = 0;
    while (at < bytes) {
        int64_t last, end = stable_end(text, at, bytes, &last);
        const int64_t copied = (end == bytes && whole ? end : last) - at;
        if (used + copied > room) return true;
        memcpy(out + used, text + at, (size_t)copied);
        used += copied;
        at += copied;
        *taken = at;
        *written = used;
        if (end == bytes) return true;

        int32_t count = 0;
        uint32_t point;
        int64_t p = at;
        for (bool first = true; p < bytes; first = false) {
            const int64_t next = p + hr_utf8_take(text + p, bytes - p, &point);
            if (!first && !hr_nfc_form_of(point)->unstable) break;
            if (!add_parts(scratch, &count, point)) return false;
            p = next;
        }
        if (p == bytes && !whole) return true;
        for (int32_t begin = 0, i = 0; i <= count; i++) {
            if (i < count && hr_nfc_form_of(scratch->points[i])->order) continue;
            order_marks(scratch, begin, i);
            begin = i + 1;
        }
        count = compose(scratch, count);
        if (used + UTF8_MOST * (int64_t)count > room) return true;
        uint8_t *end_of_run = out + used;
        for (int32_t i = 0; i < count; i++) end_of_run = put(end_of_run, scratch->points[i]);
        used = end_of_run - out;
        at = p;
        *taken = at;
        *written = used;
    }
    return true;
}

const hr_compatible *hr_compatible_of(uint32_t point)
{
    int32_t least = 0, most = hr_compatible_count;
    while (least < most) {
        const int32_t middle = (least + most) / 2;
        if (hr_compatibles[middle].point < point) least = middle + 1;
        else most = middle;
    }
    return least < hr_compatible_count && hr_compatibles[least].point == point
               ? &hr_compatibles[least]
               : NULL;
}
