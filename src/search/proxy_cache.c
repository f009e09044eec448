/* SPDX-License-Identifier: Apache-2.0 */
/* search/proxy_cache.c - a hash table that never fills up: beyond its limit, new results are
 * dropped. */
#include "search/proxy_cache.h"

#include <string.h>

#include "base/random.h"

enum {
    SLOTS = 1 << 14, /* a power of 2 */
    RESULTS_MOST = SLOTS / 2,
    WORKS_MOST = 48
};

typedef struct {
    hr_proxy_key key;
    hr_proxy_census census;
    bool taken;
} slot;

struct hr_proxy_cache {
    hr_config config;
    slot slots[SLOTS];
    int32_t count;
    hr_proxy_key works_keys[WORKS_MOST];
    hr_proxy_works works[WORKS_MOST];
    int32_t works_count;
    bool add_up, add_up_known;
};

int64_t hr_proxy_cache_bytes(void)
{
    return (int64_t)sizeof(hr_proxy_cache) + 64;
}

hr_status hr_proxy_cache_place(hr_region *region, hr_proxy_cache **cache, hr_error *err)
{
    hr_proxy_cache *made = hr_region_take(region, 1, sizeof *made);
    if (!made) return hr_fail(err, HR_FAILURE, "no room to keep results of the search");
    *cache = made;
    return HR_OK;
}

void hr_proxy_cache_clear(hr_proxy_cache *cache)
{
    for (int32_t i = 0; cache && i < SLOTS && cache->count > 0; i++) {
        cache->count -= cache->slots[i].taken;
        cache->slots[i].taken = false;
    }
    if (!cache) return;
    cache->works_count = 0;
    cache->add_up_known = false;
}

void hr_proxy_cache_use(hr_proxy_cache *cache, const hr_config *config)
{
    if (!cache) return;
    const int64_t budget = cache->config.memory.budget;
    cache->config.memory.budget = config->memory.budget;
    const bool same = memcmp(&cache->config, config, sizeof *config) == 0;
    cache->config.memory.budget = budget;
    if (same) return;
    hr_proxy_cache_clear(cache);
    cache->config = *config;
}

/* Keys are hashed and compared as bytes, so they must not have padding. */
_Static_assert(sizeof(hr_proxy_key) == 4 * sizeof(int64_t) + 6 * sizeof(int32_t),
               "as it is hashed");

static int32_t slot_of(const hr_proxy_cache *cache, const hr_proxy_key *key)
{
    uint64_t words[sizeof *key / sizeof(uint64_t)], hash = 0;
    memcpy(words, key, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) hash = hr_random_mix(hash ^ words[i]);
    int32_t at = (int32_t)(hash % SLOTS);
    while (cache->slots[at].taken && memcmp(&cache->slots[at].key, key, sizeof *key) != 0)
        at = (at + 1) % SLOTS;
    return at;
}

bool hr_proxy_cache_find(const hr_proxy_cache *cache, const hr_proxy_key *key,
                         hr_proxy_census *census)
{
    if (!cache) return false;
    const slot *found = &cache->slots[slot_of(cache, key)];
    if (found->taken) *census = found->census;
    return found->taken;
}

void hr_proxy_cache_put(hr_proxy_cache *cache, const hr_proxy_key *key,
                        const hr_proxy_census *census)
{
    if (!cache || cache->count == RESULTS_MOST) return;
    slot *at = &cache->slots[slot_of(cache, key)];
    cache->count += !at->taken;
    *at = (slot){ *key, *census, true };
}

const hr_proxy_works *hr_proxy_cache_works(const hr_proxy_cache *cache, const hr_proxy_key *key)
{
    for (int32_t i = 0; cache && i < cache->works_count; i++)
        if (!memcmp(&cache->works_keys[i], key, sizeof *key)) return &cache->works[i];
    return NULL;
}

hr_proxy_works *hr_proxy_cache_put_works(hr_proxy_cache *cache, const hr_proxy_key *key)
{
    if (!cache || cache->works_count == WORKS_MOST) return NULL;
    cache->works_keys[cache->works_count] = *key;
    return &cache->works[cache->works_count++];
}

bool hr_proxy_cache_adds_up(const hr_proxy_cache *cache, bool *add_up)
{
    if (!cache || !cache->add_up_known) return false;
    *add_up = cache->add_up;
    return true;
}

void hr_proxy_cache_put_adds_up(hr_proxy_cache *cache, bool add_up)
{
    if (!cache) return;
    cache->add_up = add_up;
    cache->add_up_known = true;
}
