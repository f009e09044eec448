/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_pattern.h - the blocks a mask keeps, as ranges of tokens.
 *
 * The keys of a query block are a near range that ends at the diagonal and, in front of it, single
 * blocks at equal distances. The queries of a key block are always one range. */
#ifndef HR_OPS_ATTENTION_PATTERN_H
#define HR_OPS_ATTENTION_PATTERN_H

#include "base/checked.h"
#include "ops/attention/attention_scratch.h"

/* Keys [first, last), computed from `base` on, a multiple of ATTENTION_ALIGN; `column` is where
 * they begin in the rows of scores. */
typedef struct {
    int64_t base, first, last, column;
} attention_keys;

enum { ATTENTION_KEYS_MAX = ATTENTION_KEY_CHUNK / ATTENTION_ALIGN };

/* A walk over the keys that a query block keeps, in ascending order. */
typedef struct {
    int64_t at, stop;            /* what is left of the range begun; equal: none */
    int64_t column, column_step; /* next single block, in tokens; how far apart they are */
    int64_t near, end;           /* the last range */
    int64_t block;
} attention_walk;

/* Keys in front of `end`, for queries of block `index`. */
static inline attention_walk attention_walk_keys(const hr_attention_mask *mask, int64_t index,
                                                 int64_t end)
{
    const int64_t window = mask->kind == HR_PATTERN_GLOBAL ? 0 : mask->window;
    const bool columns = mask->kind == HR_PATTERN_GLOBAL || mask->kind == HR_PATTERN_MIXED;
    const bool all = mask->kind == HR_PATTERN_DENSE || (columns && mask->stride == 1);
    const int64_t near = all ? 0 : hr_max(index - window, 0) * mask->block;
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

/* One past the last query that keeps key block `index`, in a sequence of `length`. */
static inline int64_t attention_queries_end(const hr_attention_mask *mask, int64_t index,
                                            int64_t length)
{
    if (mask->kind == HR_PATTERN_DENSE) return length;
    if (mask->kind != HR_PATTERN_LOCAL && index % mask->stride == 0) return length;
    const int64_t window = mask->kind == HR_PATTERN_GLOBAL ? 0 : mask->window;
    return hr_min(length, (index + window + 1) * mask->block);
}

#endif
