/* SPDX-License-Identifier: Apache-2.0 */
/* search/proxy_cache.h - caches the results of proxy models between searches.
 *
 * A command such as --smallest searches one recipe with many budgets. The cost of a proxy model
 * does not depend on the budget, so each is built only once. The cache belongs to one config,
 * ignoring its budget. A null cache is always empty and stores nothing. */
#ifndef HR_SEARCH_PROXY_CACHE_H
#define HR_SEARCH_PROXY_CACHE_H

#include "base/region.h"
#include "search/proxy_census.h"

typedef struct hr_proxy_cache hr_proxy_cache;

/* Maximum live bytes in each place and pass, for each set. */
typedef int64_t hr_proxy_works[HR_PROXY_PLACES_MOST][HR_PASSES][HR_FIT_SETS_MOST];

/* Everything that a result depends on. */
typedef struct {
    int64_t micro_batch, loss_chunk, mlp_tile, attention_tile;
    int32_t recompute_set, layers;
    int32_t dw_first, consume;
    int32_t prices; /* which steps are timed */
    int32_t works;  /* 1: includes the work of all sets */
} hr_proxy_key;

int64_t hr_proxy_cache_bytes(void);

/* Places an empty cache. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_proxy_cache_place(hr_region *region, hr_proxy_cache **cache,
                                             hr_error *err);

/* Clears the cache if it holds results of another config. */
void hr_proxy_cache_use(hr_proxy_cache *cache, const hr_config *config);

/* Empties the cache: results also depend on the rates of a machine. Accepts null. */
void hr_proxy_cache_clear(hr_proxy_cache *cache);

/* Returns false if the result is not cached. */
bool hr_proxy_cache_find(const hr_proxy_cache *cache, const hr_proxy_key *key,
                         hr_proxy_census *census);

/* Stores a result, if there is room. */
void hr_proxy_cache_put(hr_proxy_cache *cache, const hr_proxy_key *key,
                        const hr_proxy_census *census);

/* Returns the work of a key, or null if it is not cached. */
const hr_proxy_works *hr_proxy_cache_works(const hr_proxy_cache *cache, const hr_proxy_key *key);

/* Returns where to write the work of a new key, or null if there is no room. */
hr_proxy_works *hr_proxy_cache_put_works(hr_proxy_cache *cache, const hr_proxy_key *key);

/* The cached result of hr_proxy_adds_up. Returns false if it is not cached. */
bool hr_proxy_cache_adds_up(const hr_proxy_cache *cache, bool *add_up);
void hr_proxy_cache_put_adds_up(hr_proxy_cache *cache, bool add_up);

#endif
