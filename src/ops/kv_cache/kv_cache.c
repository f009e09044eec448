/* SPDX-License-Identifier: Apache-2.0 */
/* ops/kv_cache/kv_cache.c - builder functions and properties of the KV cache operations. */
#include "ops/kv_cache/kv_cache.h"

#include "ops/kv_cache/kv_cache_build.h"
#include "ops/list.h"

static int32_t build_rows(hr_builder *builder, const char *name, const hr_kv_cache *cache,
                          int32_t home)
{
    return hr_build_fixed(builder, name, HR_ROLE_ACTIVATION, builder->dtype, HR_ROWS,
                          cache->G * cache->capacity, cache->head_width, home);
}

static hr_kv_cache build_cache(hr_builder *builder, int32_t G, int32_t head_width, int64_t capacity,
                               int32_t home, bool has_values)
{
    hr_kv_cache cache = { HR_NONE, HR_NONE, G, head_width, capacity };
    cache.keys = build_rows(builder, "key cache", &cache, home);
    if (has_values) cache.values = build_rows(builder, "value cache", &cache, home);
    const hr_kv_cache_attr attr = { .G = G, .head_width = head_width, .capacity = capacity };
    hr_step *step = hr_build_step(builder, HR_OP_cache_clear, &attr, sizeof attr);
    step->out[0] = cache.keys;
    step->out[1] = cache.values;
    return cache;
}

hr_kv_cache hr_build_kv_cache(hr_builder *builder, int32_t G, int32_t head_width, int64_t capacity,
                              int32_t home)
{
    return build_cache(builder, G, head_width, capacity, home, true);
}

hr_kv_cache hr_build_key_cache(hr_builder *builder, int32_t G, int32_t head_width, int64_t capacity,
                               int32_t home)
{
    return build_cache(builder, G, head_width, capacity, home, false);
}

void hr_build_cache_append(hr_builder *builder, int32_t k, int32_t v, int32_t position,
                           const hr_kv_cache *cache, hr_kv_cache_attr attr)
{
    if (hr_build_status(builder) != HR_OK) return;
    const hr_tensor *tensors = builder->program->tensors;
    attr.G = cache->G;
    attr.head_width = cache->head_width;
    attr.capacity = cache->capacity;
    attr.k_width = tensors[k].dims[1];
    attr.v_width = tensors[v == HR_NONE ? k : v].dims[1];
    hr_step *step = hr_build_step(builder, HR_OP_cache_append, &attr, sizeof attr);
    step->in[0] = k;
    step->in[1] = v;
    step->in[2] = position;
    step->out[0] = cache->keys;
    step->out[1] = cache->values;
}

const hr_op hr_cache_clear_op = { .name = "cache_clear", .in = "", .out = "wW" };

const hr_op hr_cache_append_op = { .name = "cache_append", .in = "rRw", .out = "uu" };
