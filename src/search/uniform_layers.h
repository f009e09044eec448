/* SPDX-License-Identifier: Apache-2.0 */
/* search/uniform_layers.h - chooses the recompute sets of many equal layers: exact, over counts of
 * layers.
 *
 * Middle layers differ only in the bytes kept below them. When their work changes by the same
 * amount from layer to layer in both passes, one order of the sets is at least as good as any
 * other (docs/fit.md). So the search only visits choices in that order: its state is (set,
 * layers done, bytes kept), and the remaining sets bound the rest. When the passes change
 * differently it ignores one pass, and the result is a bound. */
#ifndef HR_SEARCH_UNIFORM_LAYERS_H
#define HR_SEARCH_UNIFORM_LAYERS_H

#include "search/layers.h"

enum { HR_UNIFORM_SETS_MOST = 256 }; /* sets of which none beats another */

typedef struct {
    int64_t ps;       /* of the whole step */
    int32_t chunk;    /* index of the loss chunk in rests */
    bool out_of_room; /* the search ran out of room: a choice may exist */
    int64_t bound;    /* lower bound on the time of any choice */
} hr_uniform_best;

/* Finds the fastest choice for a model of more than four layers. Returns false if none was found.
 *
 *   task    set_count is at most HR_UNIFORM_SETS_MOST; ps_most is for the whole step; head is
 *           ignored
 *   chosen  out: [layers] set indices */
bool hr_uniform_choose(hr_layers *layers, const hr_layers_task *task, const hr_proxy_rest *rests,
                       int32_t rest_count, hr_uniform_best *best, uint16_t *chosen);

/* Returns a lower bound on the time of any choice; INT64_MAX: there is none. */
int64_t hr_uniform_bound(hr_layers *layers, const hr_layers_task *task, const hr_proxy_rest *rests,
                         int32_t rest_count);

#endif
