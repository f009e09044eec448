/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_blocks.h - the queries that have selected each block of keys. */
#ifndef HR_OPS_ATTENTION_BLOCKS_H
#define HR_OPS_ATTENTION_BLOCKS_H

#include <stdint.h>

/* What some queries have selected: query i has `count` blocks from at[i * stride] on. */
typedef struct {
    const uint16_t *at;
    int64_t stride, count, length;
} attention_selection;

/* Lists them by block: those of block begin + j are entries[first[j]] to entries[first[j + 1] - 1],
 * ascending, for blocks [begin, end). */
static inline void attention_sort_by_block(const attention_selection *from, int64_t begin,
                                           int64_t end, int32_t *first, int32_t *entries)
{
    const int64_t blocks = end - begin;
    for (int64_t j = 0; j <= blocks; j++) first[j] = 0;
    for (int64_t i = 0; i < from->length; i++)
        for (int64_t n = 0; n < from->count; n++) {
            const int64_t j = from->at[i * from->stride + n] - begin;
            if (j >= 0 && j < blocks) first[j + 1]++;
        }
    for (int64_t j = 0; j < blocks; j++) first[j + 1] += first[j];
    for (int64_t i = 0; i < from->length; i++)
        for (int64_t n = 0; n < from->count; n++) {
            const int64_t j = from->at[i * from->stride + n] - begin;
            if (j >= 0 && j < blocks) entries[first[j]++] = (int32_t)i;
        }
    for (int64_t j = blocks; j > 0; j--) first[j] = first[j - 1];
    first[0] = 0;
}

#endif
