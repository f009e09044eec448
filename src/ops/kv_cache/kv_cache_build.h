/* SPDX-License-Identifier: Apache-2.0 */
/* ops/kv_cache/kv_cache_build.h - adds a KV cache to a program. */
#ifndef HR_OPS_KV_CACHE_BUILD_H
#define HR_OPS_KV_CACHE_BUILD_H

#include "graph/builder.h"
#include "ops/kv_cache/kv_cache.h"

/* The KV cache of one layer. */
typedef struct {
    int32_t keys, values; /* tensor ids */
    int32_t G, head_width;
    int64_t capacity;
} hr_kv_cache;

/* Creates the tensors of a cache with `capacity` rows (hr_kv_cache_rows), in the dtype of
 * activations, and the step that clears them. Their lifetime is one iteration of `home`, the loop
 * around all steps that clear, append and read. */
hr_kv_cache hr_build_kv_cache(hr_builder *builder, int32_t G, int32_t head_width, int64_t capacity,
                              int32_t home);

/* The same with keys alone. */
hr_kv_cache hr_build_key_cache(hr_builder *builder, int32_t G, int32_t head_width, int64_t capacity,
                               int32_t home);

/* Appends rows of k and v to a cache from `position` on. v HR_NONE: k holds both. The caller sets
 * offsets and strides in `attr`; this function sets the rest. */
void hr_build_cache_append(hr_builder *builder, int32_t k, int32_t v, int32_t position,
                           const hr_kv_cache *cache, hr_kv_cache_attr attr);

#endif
