/* SPDX-License-Identifier: Apache-2.0 */
/* fit/parts.h - how many layers drop each part: exact where it can be told, a bound where not.
 *
 * Where what a set saves and costs is the sum over what it drops, time and kept bytes of a choice
 * for all layers are sums over (part, number of layers that drop it). That is a knapsack with as
 * many kinds of things as a layer has parts, without layers: a short list. It does not know what
 * layers work with, so what it finds is a bound; laid out with the layers that drop most at the
 * bottom it mostly keeps within the limit, and then it is the answer. */
#ifndef HR_FIT_PARTS_H
#define HR_FIT_PARTS_H

#include "fit/layers.h"

/* What parts save and cost at least, in a layer where it is least. */
struct hr_parts {
    bool add_up;
    int32_t count;
    int64_t kept, ps[HR_PROXY_LAYERS_MOST]; /* of the set that drops nothing */
    struct {
        hr_intermediates recompute_set;
        int64_t saved, ps;
    } parts[HR_FIT_PARTS_MOST];
};

/* Of all sets there are, in the order of hr_fit_sets; add_up is false where some set keeps or takes
 * less than its parts say, or they are not all there are. */
void hr_parts_of(const hr_proxy_model *proxy, const hr_proxy_set *sets, int32_t set_count,
                 hr_parts *parts);

typedef struct {
    int64_t bound; /* no choice takes less; INT64_MAX: there is none */
    bool found;    /* a choice within the limit: */
    int64_t ps;    /* of the whole step; = bound if it is the fastest */
    int32_t chunk; /* index of the rest */
} hr_parts_best;

/* A choice for a model of more than four layers.
 *
 *   task    parts add up; ps_most is of the whole step; head is not looked at
 *   chosen  out: [layers] indices of sets, if one is found */
void hr_parts_choose(hr_layers *layers, const hr_layers_task *task, const hr_proxy_rest *rests,
                     int32_t rest_count, hr_parts_best *best, uint16_t *chosen);

#endif
