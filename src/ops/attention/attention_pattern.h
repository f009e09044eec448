/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_pattern.h - what a mask keeps, as ranges of tokens.
 *
 * The keys of a query block are a near range that ends at the diagonal and, in front of it, single
 * blocks at equal distances. The queries of a key block are always one range. A sliding window is a
 * near range whose start moves with the query. */
#ifndef HR_OPS_ATTENTION_PATTERN_H
#define HR_OPS_ATTENTION_PATTERN_H

#include "base/checked.h"
#include "ops/attention/attention_scratch.h"

/* Keys [first, last), computed from `base` on, a multiple of ATTENTION_ALIGN; `column` is where
 * they begin in the rows of scores, `packed` among the keys that are packed. */
typedef struct {
    int64_t base, first, last, column, packed;
} attention_keys;

enum { ATTENTION_KEYS_MAX = ATTENTION_KEY_CHUNK / ATTENTION_ALIGN };

/* Query i sees no key i - reach or before: more than any sequence has, where a mask has blocks. */
static inline int64_t attention_reach(const hr_attention_mask *mask)
{
    return mask->kind == HR_PATTERN_SLIDING ? mask->window : INT64_C(1) << 40;
}

/* A walk over the keys that a query block keeps, in ascending order. */
typedef struct {
    int64_t at, stop;            /* what is left of the range begun; equal: none */
    int64_t column, column_step; /* next single block, in tokens; how far apart they are */
    int64_t near, end;           /* the last range */
    int64_t block;
} attention_walk;

/* Where the near range of a query begins. Of a sliding window: the chunk of keys it is in, so that
 * chunks are the same for all queries. */
static inline int64_t attention_near(const hr_attention_mask *mask, int64_t query)
{
    const int64_t window = mask->kind == HR_PATTERN_GLOBAL ? 0 : mask->window;
    if (mask->kind == HR_PATTERN_DENSE) return 0;
    if (mask->kind != HR_PATTERN_SLIDING)
        return hr_max(query / mask->block - window, 0) * mask->block;
    return hr_max(query - window + 1, 0) / ATTENTION_KEY_CHUNK * ATTENTION_KEY_CHUNK;
}

/* Keys in front of `end`, for queries of one block, the first of them `query`. */
static inline attention_walk attention_walk_keys(const hr_attention_mask *mask, int64_t query,
                                                 int64_t end)
{
    const bool columns = mask->kind == HR_PATTERN_GLOBAL || mask->kind == HR_PATTERN_MIXED;
    const int64_t near = columns && mask->stride == 1 ? 0 : attention_near(mask, query);
    return (attention_walk){ .at = -1,
                             .stop = -1,
                             .column = columns ? 0 : near,
                             .column_step = (int64_t)mask->stride * mask->block,
                             .near = near,
                             .end = end,
                             .block = mask->block };
}

/* The next keys, in at most `room` columns (a multiple of ATTENTION_ALIGN, maybe 0); false when
 * there are none. */
static inline bool attention_walk_next(attention_walk *walk, int64_t room, attention_keys *keys)
{
    if (room == 0) return false;
    if (walk->at == walk->stop) {
        if (walk->at == walk->end) return false;
        const bool single = walk->column < walk->near;
        walk->at = single ? walk->column : walk->near;
        walk->stop = single ? walk->at + walk->block : walk->end;
        walk->column += walk->column_step;
    }
    keys->base = walk->at / ATTENTION_ALIGN * ATTENTION_ALIGN;
    keys->first = walk->at;
    keys->last = walk->at = hr_min(walk->stop, keys->base + room);
    return true;
}

/* The part of a range of keys that rows see which begin at key `from` and end before `end`, in
 * the same columns; false when that is none. */
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

/* One past the last query that keeps any of the keys [first, last) of one block, in a sequence of
 * `length`. */
static inline int64_t attention_queries_end(const hr_attention_mask *mask, int64_t first,
                                            int64_t last, int64_t length)
{
    const int64_t index = first / mask->block;
    if (mask->kind == HR_PATTERN_DENSE) return length;
    if (mask->kind == HR_PATTERN_SLIDING) return hr_min(length, last - 1 + mask->window);
    if (mask->kind != HR_PATTERN_LOCAL && index % mask->stride == 0) return length;
    const int64_t window = mask->kind == HR_PATTERN_GLOBAL ? 0 : mask->window;
    return hr_min(length, (index + window + 1) * mask->block);
}

#endif
