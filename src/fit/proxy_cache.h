/* SPDX-License-Identifier: Apache-2.0 */
/* fit/proxy_cache.h - results of building proxy models, kept from one search to the next.
 *
 * A question such as --smallest searches one recipe with many budgets. What a proxy model takes
 * does not depend on the budget, so each is built once. The cache belongs to one config, but for
 * its budget. A null cache is empty and takes nothing. */
#ifndef HR_FIT_PROXY_CACHE_H
#define HR_FIT_PROXY_CACHE_H

#include "base/region.h"
#include "fit/proxy_model.h"

typedef struct hr_proxy_cache hr_proxy_cache;

/* Most bytes alive, and picoseconds, by what a step belongs to. */
typedef struct {
    int64_t work[HR_PROXY_LAYERS_MOST][HR_PASSES];
    int64_t layer_ps[HR_PROXY_LAYERS_MOST];
    int64_t head, head_first; /* at most; at its first step */
    int64_t before, after;    /* before the first layer and after it came back */
    int64_t section[HR_PROXY_SECTIONS_MOST];
    int64_t rest_ps;
} hr_proxy_census;

/* Most bytes alive in each place and pass, with each set. */
typedef int64_t hr_proxy_works[HR_PROXY_LAYERS_MOST][HR_PASSES][HR_FIT_SETS_MOST];

/* Everything that one result depends on. */
typedef struct {
    int64_t micro_batch, loss_chunk, mlp_tile, attention_tile;
    int32_t recompute_set, layers;
    int32_t dw_first, consume;
    int32_t prices; /* which steps are priced */
    int32_t works;  /* 1: with works of all sets */
} hr_proxy_key;

int64_t hr_proxy_cache_bytes(void);

/* Places an empty cache. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_proxy_cache_place(hr_region *region, hr_proxy_cache **cache,
                                             hr_error *err);

/* Forgets all results if they are those of another config. */
void hr_proxy_cache_use(hr_proxy_cache *cache, const hr_config *config);

/* False: it is not known. */
bool hr_proxy_cache_find(const hr_proxy_cache *cache, const hr_proxy_key *key,
                         hr_proxy_census *census);

/* Keeps a result, if there is room. */
void hr_proxy_cache_put(hr_proxy_cache *cache, const hr_proxy_key *key,
                        const hr_proxy_census *census);

/* Works of a key; null: not known. */
const hr_proxy_works *hr_proxy_cache_works(const hr_proxy_cache *cache, const hr_proxy_key *key);

/* Where works of a new key go; null: there is no room. */
hr_proxy_works *hr_proxy_cache_put_works(hr_proxy_cache *cache, const hr_proxy_key *key);

/* Whether sets add up (hr_proxy_adds_up): kept once it is known. */
bool hr_proxy_cache_adds_up(const hr_proxy_cache *cache, bool *add_up);
void hr_proxy_cache_put_adds_up(hr_proxy_cache *cache, bool add_up);

#endif
