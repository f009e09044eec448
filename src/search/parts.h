/* SPDX-License-Identifier: Apache-2.0 */
/* search/parts.h - chooses how many layers recompute each part: exact where possible, else a bound.
 *
 * When the saving and the cost of a set are sums over its parts, the time and kept bytes of a
 * choice are sums over (part, number of layers of a kind that recompute it). That is a small
 * knapsack over parts instead of layers. It ignores the working memory of layers, so its result is
 * a bound. Placing the layers that recompute most at the bottom usually meets the limit, and then
 * the bound is exact. */
#ifndef HR_SEARCH_PARTS_H
#define HR_SEARCH_PARTS_H

#include "search/layers.h"

enum { HR_PARTS_MOST = HR_FIT_PARTS_MOST * HR_LAYER_KINDS_MOST };

/* What each part saves and costs in layers of one kind, as the minimum over their places. */
struct hr_parts {
    bool add_up;
    int32_t count;
    int64_t kept, ps[HR_PROXY_PLACES_MOST]; /* of the set that recomputes nothing */
    struct {
        hr_intermediates recompute_set;
        int32_t group;  /* of layers: hr_proxy_group */
        int64_t layers; /* of the group, without the last layer of the model */
        int64_t saved, ps;
    } parts[HR_PARTS_MOST];
};

/* Fills `parts` from all sets, in the order of hr_fit_sets. add_up becomes false if some set
 * keeps less or is faster than its parts say, or if sets are missing. */
void hr_parts_of(const hr_proxy_model *proxy, const hr_proxy_set *sets, int32_t set_count,
                 hr_parts *parts);

typedef struct {
    int64_t bound; /* lower bound on the time of any choice; INT64_MAX: there is none */
    bool found;    /* a choice within the limit was found: */
    int64_t ps;    /* of the whole step; = bound if it is the fastest choice */
    int32_t chunk; /* index of the loss chunk in rests */
} hr_parts_best;

/* Chooses the sets of a model of more than four layers.
 *
 *   task    requires parts->add_up; ps_most is for the whole step; head is ignored
 *   chosen  out: [layers] set indices, if best->found */
void hr_parts_choose(hr_layers *layers, const hr_layers_task *task, const hr_proxy_rest *rests,
                     int32_t rest_count, hr_parts_best *best, uint16_t *chosen);

#endif
