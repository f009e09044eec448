/* SPDX-License-Identifier: Apache-2.0 */
/* ops/kv_cache/kv_cache_build.h - adds a cache of keys and values to a program. */
#ifndef HR_OPS_KV_CACHE_BUILD_H
#define HR_OPS_KV_CACHE_BUILD_H

#include "graph/builder.h"
#include "ops/kv_cache/kv_cache.h"

/* The cache of one layer. */
typedef struct {
    int32_t keys, values; /* tensors */
    int32_t G, head_width;
    int64_t capacity;
} hr_kv_cache;

/* A cache of `capacity` rows (hr_kv_cache_rows), in the type of activations: its tensors, and the
 * step that clears them, at the builder's place. They live in one turn of `home`: the loop around
 * all that clears, appends and reads. */
hr_kv_cache hr_build_kv_cache(hr_builder *builder, int32_t G, int32_t head_width, int64_t capacity,
                              int32_t home);

/* Writes rows of k and v into a cache, from `position` on. v HR_NONE: both lie in k. Offsets and
 * strides come in `attr`, the rest is filled in here. */
void hr_build_cache_append(hr_builder *builder, int32_t k, int32_t v, int32_t position,
                           const hr_kv_cache *cache, hr_kv_cache_attr attr);

#endif
