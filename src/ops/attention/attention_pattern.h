/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_pattern.h - the unmasked keys and queries of a mask, as ranges of tokens.
 *
 * The keys of a query block are a near range that ends at the diagonal and, before it, single
 * blocks at equal distances. The queries of a key block are always one range. A sliding window is a
 * near range whose start moves with the query. */
#ifndef HR_OPS_ATTENTION_PATTERN_H
#define HR_OPS_ATTENTION_PATTERN_H

#include "base/checked.h"
#include "ops/attention/attention_scratch.h"

/* Keys [first, last), computed from `base` on, a multiple of ATTENTION_ALIGN. `column` is their
 * first column in the score rows, `packed` their position among the packed keys. */
typedef struct {
    int64_t base, first, last, column, packed;
} attention_keys;

enum { ATTENTION_KEYS_MAX = ATTENTION_KEY_CHUNK / ATTENTION_ALIGN };

/* The first query that sees a key. */
static inline int64_t attention_seen_from(const hr_attention_mask *mask, int64_t key)
{
    return mask->kind == HR_PATTERN_COMPRESSED ? key * mask->stride + mask->window - 1 : key;
}

/* Query i sees only keys above i - reach. For other masks reach exceeds every sequence length. */
static inline int64_t attention_reach(const hr_attention_mask *mask)
{
    return mask->kind == HR_PATTERN_SLIDING ? mask->window : INT64_C(1) << 40;
}

/* Iterator over the unmasked key ranges of a query block, in ascending order. */
typedef struct {
    int64_t at, stop;            /* rest of the current range; equal: none */
    int64_t column, column_step; /* next single block, and the distance between blocks, in tokens */
    int64_t near, end;           /* the last range */
    int64_t block;
} attention_key_iterator;

/* Start of the near range of a query. For a sliding window it is rounded down to a chunk of keys,
 * so that all queries have the same chunks. */
static inline int64_t attention_near(const hr_attention_mask *mask, int64_t query)
{
    const int64_t window = mask->kind == HR_PATTERN_GLOBAL ? 0 : mask->window;
    if (mask->kind == HR_PATTERN_DENSE || mask->kind == HR_PATTERN_COMPRESSED) return 0;
    if (mask->kind != HR_PATTERN_SLIDING)
        return hr_max(query / mask->block - window, 0) * mask->block;
    return hr_max(query - window + 1, 0) / ATTENTION_KEY_CHUNK * ATTENTION_KEY_CHUNK;
}

/* Starts an iteration over the keys before `end`, for the queries of one block that starts at
 * `query`. */
static inline attention_key_iterator attention_iterate_keys(const hr_attention_mask *mask,
                                                            int64_t query, int64_t end)
{
    const bool columns = mask->kind == HR_PATTERN_GLOBAL || mask->kind == HR_PATTERN_MIXED;
    const int64_t near = columns && mask->stride == 1 ? 0 : attention_near(mask, query);
    return (attention_key_iterator){ .at = -1,
                                     .stop = -1,
                                     .column = columns ? 0 : near,
                                     .column_step = (int64_t)mask->stride * mask->block,
                                     .near = near,
                                     .end = end,
                                     .block = mask->block };
}

/* Writes the next range, at most `room` columns (a multiple of ATTENTION_ALIGN, possibly 0); false
 * at the end. */
static inline bool attention_next_keys(attention_key_iterator *iterator, int64_t room,
                                       attention_keys *keys)
{
    if (room == 0) return false;
    if (iterator->at == iterator->stop) {
        if (iterator->at == iterator->end) return false;
        const bool single = iterator->column < iterator->near;
        iterator->at = single ? iterator->column : iterator->near;
        iterator->stop = single ? iterator->at + iterator->block : iterator->end;
        iterator->column += iterator->column_step;
    }
    keys->base = iterator->at / ATTENTION_ALIGN * ATTENTION_ALIGN;
    keys->first = iterator->at;
    keys->last = iterator->at = hr_min(iterator->stop, keys->base + room);
    return true;
}

/* Clips a range to the keys [from, end) without moving its columns; false if nothing remains. */
static inline bool attention_clip(const attention_keys *range, int64_t from, int64_t end,
                                  attention_keys *keys)
{
    keys->first = hr_max(range->first, from);
    keys->last = hr_min(range->last, end);
    keys->base = keys->first / ATTENTION_ALIGN * ATTENTION_ALIGN;
    keys->column = range->column + keys->base - range->base;
    keys->packed = range->packed + keys->base - range->base;
    return keys->first < keys->last;
}

/* One past the last query that sees any of the keys [first, last) of one block, in a sequence of
 * `length`. */
static inline int64_t attention_queries_end(const hr_attention_mask *mask, int64_t first,
                                            int64_t last, int64_t length)
{
    const int64_t index = first / mask->block;
    if (mask->kind == HR_PATTERN_DENSE || mask->kind == HR_PATTERN_COMPRESSED) return length;
    if (mask->kind == HR_PATTERN_SLIDING) return hr_min(length, last - 1 + mask->window);
    if (mask->kind != HR_PATTERN_LOCAL && index % mask->stride == 0) return length;
    const int64_t window = mask->kind == HR_PATTERN_GLOBAL ? 0 : mask->window;
    return hr_min(length, (index + window + 1) * mask->block);
}

#endif
