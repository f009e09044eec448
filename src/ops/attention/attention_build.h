/* SPDX-License-Identifier: Apache-2.0 */
/* ops/attention/attention_build.h - adds attention to a program. */
#ifndef HR_OPS_ATTENTION_BUILD_H
#define HR_OPS_ATTENTION_BUILD_H

#include "graph/builder.h"
#include "ops/attention/attention.h"
#include "ops/kv_cache/kv_cache_build.h"

/* o = attention(q, k, v), or over the layer's KV cache if the builder has caches. k and v HR_NONE:
 * q holds all three. The caller sets heads, offsets, strides, mask, scale and dropout in `attr`;
 * this function sets widths, T and site. Dropout is 0 outside training. Returns o. */
int32_t hr_build_attention(hr_builder *builder, const char *name, int32_t q, int32_t k, int32_t v,
                           hr_attention_attr attr);

/* o = one of several attentions over the same queries: with the mask of `attr`, and blocks if it is
 * one of selected blocks. For training or to select blocks it saves its lse.
 *
 *   lse  out; null: only training needs it */
int32_t hr_build_attention_branch(hr_builder *builder, const char *name, int32_t q, int32_t k,
                                  int32_t v, int32_t blocks, hr_attention_attr attr, int32_t *lse);

/* o = attention of rows q, from `position` (int32 [1]) on, over a cache that has their keys and
 * values. Heads, offset and stride of q, mask and scale come from `attr`. Returns o. */
int32_t hr_build_attention_cached(hr_builder *builder, const char *name, int32_t q,
                                  int32_t position, const hr_kv_cache *cache,
                                  const hr_attention_attr *attr);

/* Unmasked pairs (i, j) with j <= i < length. */
int64_t hr_attention_pairs(const hr_attention_mask *mask, int64_t length);

/* Scores of all heads that `rows` rows have; over a cache that is full. */
int64_t hr_attention_scores(const hr_attention_attr *attr, int64_t rows);
int64_t hr_attention_cached_scores(const hr_attention_cached_attr *attr, int64_t rows);

#endif
