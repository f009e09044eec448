/* SPDX-License-Identifier: Apache-2.0 */
/* ops/choose/choose_scratch.h - tiles of queries, and the scratch of a thread. */
#ifndef HR_OPS_CHOOSE_SCRATCH_H
#define HR_OPS_CHOOSE_SCRATCH_H

#include "ops/attention/attention_scratch.h"
#include "ops/choose/choose.h"

/* (head, query) pairs of a tile, as the kernel takes them. */
enum { CHOOSE_PAIRS = ATTENTION_QUERY_TILE, CHOOSE_QUERIES = 32 };

static inline int64_t choose_tile(const hr_choose_attr *attr)
{
    return hr_max(1, hr_min(CHOOSE_QUERIES, CHOOSE_PAIRS / (attr->H / attr->G)));
}

/* Floats of a row of probabilities, and of one of scores of blocks. */
static inline int64_t choose_row(const hr_choose_attr *attr)
{
    const hr_attention_mask mask = hr_choose_mask(attr);
    return attention_padded(hr_attention_keys_seen(&mask, attr->T - 1));
}

typedef struct {
    float *sums, *weights, *scores;
    uint8_t *kernel;
} choose_room;

static inline int64_t choose_place(uint8_t *base, const hr_choose_attr *attr, choose_room *out)
{
    const int64_t blocks = (attr->T + attr->block - 1) / attr->block;
    attention_scratch strips;
    int64_t at = 0;
    out->sums = attention_take(base, &at, choose_tile(attr) * choose_row(attr));
    out->weights = attention_take(base, &at, (attr->block + attr->length) / attr->stride);
    out->scores = attention_take(base, &at, blocks);
    out->kernel = base + at;
    return at + attention_scratch_place(NULL, ATTENTION_KEY_CHUNK, ATTENTION_QUERY_TILE,
                                        attr->head_width, &strips);
}

#endif
