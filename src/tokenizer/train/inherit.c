/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer/train/inherit.c - applies the ranks that occur in an atom in order, each from left to
 * right. Short atoms rescan all pairs; long atoms use a heap of rank and position. */
#include "tokenizer/train/inherit.h"

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"

enum { NO_RANK = UINT32_MAX, SHORT_BYTES = 40 };

static int32_t bits_for(int64_t merges)
{
    int32_t bits = 4;
    while (INT64_C(1) << bits < 2 * merges) bits++;
    return bits;
}

int64_t hr_inherited_lines(const char *text, int64_t bytes, int64_t lines_max)
{
    int64_t lines = 0;
    for (int64_t at = 0; at < bytes && lines < lines_max; lines++) {
        const char *newline = memchr(text + at, '\n', (size_t)(bytes - at));
        at = newline ? newline + 1 - text : bytes;
    }
    return lines;
}

int64_t hr_inherited_bytes(int64_t merges)
{
    return hr_merge_vocabulary_bytes(merges + 256, 1024) +
           hr_round_up(merges * (int64_t)sizeof(hr_inherited_merge), 64) +
           (INT64_C(16) << bits_for(merges)) + 2 * hr_round_up(merges + 256, 64) + 64;
}

static uint64_t key_of(uint32_t left, uint32_t right)
{
    return (uint64_t)left << 32 | right;
}

/* A slot is two words: the key, and the rank + 1. */
static uint64_t *rank_slot(const hr_inherited *in, uint64_t key)
{
    const uint64_t mask = (UINT64_C(1) << in->rank_bits) - 1;
    uint64_t i = key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - in->rank_bits);
    while (in->ranks[2 * i + 1] && in->ranks[2 * i] != key) i = (i + 1) & mask;
    return &in->ranks[2 * i];
}

static uint32_t rank_of(const hr_inherited *in, uint32_t left, uint32_t right)
{
    return (uint32_t)rank_slot(in, key_of(left, right))[1] - 1;
}

/* Adds the rank and the token of a merge whose parts are tokens. */
static void add_merge(hr_inherited *in, int64_t rank)
{
    hr_inherited_merge *merge = &in->merges[rank];
    if (merge->left == HR_NO_TOKEN || merge->right == HR_NO_TOKEN) return;
    const int64_t characters = (int64_t)in->vocabulary.tokens[merge->left].characters +
                               in->vocabulary.tokens[merge->right].characters;
    if (characters >= in->characters_max && characters > 2) return;
    uint64_t *slot = rank_slot(in, key_of(merge->left, merge->right));
    if (slot[1]) {
        merge->left = HR_NO_TOKEN; /* a duplicate: its second rank never matches */
        return;
    }
    slot[0] = key_of(merge->left, merge->right);
    slot[1] = (uint64_t)rank + 1;
    merge->joined = hr_vocabulary_join(&in->vocabulary, merge->left, merge->right);
    in->first[merge->joined] = in->first[merge->left];
    in->last[merge->joined] = in->last[merge->right];
    const uint8_t a = in->last[merge->left], b = in->first[merge->right];
    in->joins[a][b >> 3] |= (uint8_t)(1 << (b & 7));
}

hr_status hr_inherited_place(hr_inherited *in, hr_region *region, const char *path,
                             const char *text, int64_t bytes, int64_t lines_max,
                             int64_t characters_max, hr_error *err)
{
    const int64_t lines = hr_inherited_lines(text, bytes, lines_max);
    const bool has_header = bytes > 8 && !memcmp(text, "#version", 8);
    const int64_t count = hr_max(0, lines - has_header);
    *in = (hr_inherited){ .rank_bits = bits_for(count), .characters_max = characters_max };
    hr_vocabulary_place(&in->vocabulary, region, count + 256, 1024);
    in->merges = hr_region_take(region, count, sizeof *in->merges);
    in->ranks = hr_region_take(region, INT64_C(2) << in->rank_bits, 8);
    in->first = hr_region_take(region, count + 256, 1);
    in->last = hr_region_take(region, count + 256, 1);
    HR_ASSERT(in->merges && in->ranks && in->first && in->last);
    for (int32_t byte = 0; byte < 256; byte++) {
        char spelled[HR_SPELL_BYTES];
        const int32_t spelled_bytes = hr_byte_spell((uint8_t)byte, spelled);
        hr_vocabulary_leaf(&in->vocabulary, spelled, spelled_bytes, byte);
        in->first[byte] = in->last[byte] = (uint8_t)byte;
    }
    int64_t at = 0;
    for (int64_t line = 0; line < lines; line++) {
        const char *newline = memchr(text + at, '\n', (size_t)(bytes - at));
        const int64_t end = newline ? newline - text : bytes;
        const char *space = memchr(text + at, ' ', (size_t)(end - at));
        const char *second = space ? space + 1 : 0;
        if (line > 0 || !has_header) {
            if (!space || space == text + at || second == text + end ||
                memchr(second, ' ', (size_t)(text + end - second)))
                return hr_fail(err, HR_CORRUPT,
                               "%s: line %lld is not two tokens separated by a space", path,
                               (long long)line + 1);
            hr_inherited_merge *merge = &in->merges[in->count];
            merge->left = hr_vocabulary_find(&in->vocabulary, text + at, space - (text + at));
            merge->right = hr_vocabulary_find(&in->vocabulary, second, text + end - second);
            add_merge(in, in->count++);
        }
        at = end + 1;
    }
    return HR_OK;
}

/* ---- atoms */

/* The lowest rank above `last` in tokens [count]; NO_RANK: none. Marks all merges that occur. */
static uint32_t least_rank(const hr_inherited *in, uint8_t *there, const uint32_t *tokens,
                           int64_t count, int64_t last)
{
    uint32_t least = NO_RANK;
    for (int64_t i = 0; i + 1 < count; i++) {
        const uint32_t rank = rank_of(in, tokens[i], tokens[i + 1]);
        if (rank == NO_RANK || (int64_t)rank <= last) continue;
        there[rank] = 1;
        if (rank < least) least = rank;
    }
    return least;
}

static int64_t merge_short(const hr_inherited *in, uint8_t *there, uint32_t *tokens, int64_t count)
{
    for (int64_t last = -1;;) {
        const uint32_t rank = least_rank(in, there, tokens, count, last);
        if (rank == NO_RANK) return count;
        const hr_inherited_merge *merge = &in->merges[rank];
        int64_t to = 0;
        for (int64_t i = 0; i < count;) {
            while (i < count &&
                   !(i + 1 < count && tokens[i] == merge->left && tokens[i + 1] == merge->right))
                tokens[to++] = tokens[i++];
            if (i == count) break;
            tokens[to++] = merge->joined;
            i += 2;
        }
        count = to;
        last = rank;
    }
}

typedef struct {
    uint64_t *heap; /* rank << 32 | position, smallest first */
    uint32_t *next, *previous, *merged;
    int64_t heap_count;
} long_work;

int64_t hr_inherited_scratch_bytes(int64_t most)
{
    return most <= SHORT_BYTES ? 64 : hr_round_up(most * 3 * 8, 64) + 3 * hr_round_up(4 * most, 64);
}

static void push(long_work *w, uint64_t value)
{
    int64_t at = w->heap_count++;
    for (; at > 0 && w->heap[(at - 1) / 2] > value; at = (at - 1) / 2)
        w->heap[at] = w->heap[(at - 1) / 2];
    w->heap[at] = value;
}

static uint64_t pop(long_work *w)
{
    const uint64_t top = w->heap[0], value = w->heap[--w->heap_count];
    int64_t at = 0;
    for (int64_t child; (child = 2 * at + 1) < w->heap_count; at = child) {
        if (child + 1 < w->heap_count && w->heap[child + 1] < w->heap[child]) child++;
        if (w->heap[child] >= value) break;
        w->heap[at] = w->heap[child];
    }
    if (w->heap_count) w->heap[at] = value;
    return top;
}

/* Pushes a pair if its rank is above `last`. */
static void offer(const hr_inherited *in, uint8_t *there, long_work *w, const uint32_t *tokens,
                  uint32_t at, int64_t last)
{
    if (w->next[at] == HR_NO_TOKEN) return;
    const uint32_t rank = rank_of(in, tokens[at], tokens[w->next[at]]);
    if (rank == NO_RANK || (int64_t)rank <= last) return;
    there[rank] = 1;
    push(w, (uint64_t)rank << 32 | at);
}

static int64_t merge_long(const hr_inherited *in, uint8_t *there, void *scratch, uint32_t *tokens,
                          int64_t count)
{
    hr_region region = hr_region_over(scratch, hr_inherited_scratch_bytes(count));
    long_work w = { .heap = hr_region_take_raw(&region, count * 3, 8),
                    .next = hr_region_take_raw(&region, count, 4),
                    .previous = hr_region_take_raw(&region, count, 4),
                    .merged = hr_region_take_raw(&region, count, 4) };
    HR_ASSERT(w.heap && w.merged);
    for (int64_t i = 0; i < count; i++) {
        w.next[i] = i + 1 < count ? (uint32_t)i + 1 : HR_NO_TOKEN;
        w.previous[i] = (uint32_t)(i - 1); /* HR_NO_TOKEN for the first */
    }
    for (int64_t i = 0; i < count; i++) offer(in, there, &w, tokens, (uint32_t)i, -1);
    while (w.heap_count) {
        const uint32_t rank = (uint32_t)(w.heap[0] >> 32);
        const hr_inherited_merge *merge = &in->merges[rank];
        int64_t merged = 0;
        while (w.heap_count && w.heap[0] >> 32 == rank) {
            const uint32_t at = (uint32_t)pop(&w), right = w.next[at];
            if (tokens[at] != merge->left || right == HR_NO_TOKEN || tokens[right] != merge->right)
                continue;
            tokens[at] = merge->joined;
            tokens[right] = HR_NO_TOKEN;
            w.next[at] = w.next[right];
            if (w.next[at] != HR_NO_TOKEN) w.previous[w.next[at]] = at;
            w.merged[merged++] = at;
        }
        /* Neighbors are examined after all merges of a rank, because pairs that exist only in
         * between do not count. A pair of two merged tokens is pushed once, by its left token. */
        for (int64_t i = 0; i < merged; i++) {
            const uint32_t at = w.merged[i], before = w.previous[at];
            if (before != HR_NO_TOKEN && tokens[before] != merge->joined)
                offer(in, there, &w, tokens, before, rank);
            offer(in, there, &w, tokens, at, rank);
        }
    }
    int64_t to = 0;
    for (int64_t i = 0; i < count; i++)
        if (tokens[i] != HR_NO_TOKEN) tokens[to++] = tokens[i];
    return to;
}

int64_t hr_inherited_merge_atom(const hr_inherited *in, uint8_t *there, const uint8_t *atom,
                                int64_t bytes, void *scratch, uint32_t *tokens)
{
    for (int64_t i = 0; i < bytes; i++) tokens[i] = atom[i];
    if (bytes <= SHORT_BYTES) return merge_short(in, there, tokens, bytes);
    return merge_long(in, there, scratch, tokens, bytes);
}
