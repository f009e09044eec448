/* SPDX-License-Identifier: Apache-2.0 */
/* fit/uniform_layers.h - which of many layers that are alike keeps what: exact, by counts, not by
 * layers.
 *
 * Middle layers differ only in what lies below them. Where the bytes that a layer works with move
 * by the same amount from place to place in both passes, one order of their sets leaves every
 * choice as much room as any other order does (docs/fit.md). So only choices in that order are
 * looked at: state is (set, layers done, bytes kept), and what can follow is bounded by the sets
 * that may still come. Where the passes move differently one of them is left out: then what is
 * found is a bound. */
#ifndef HR_FIT_UNIFORM_LAYERS_H
#define HR_FIT_UNIFORM_LAYERS_H

#include "fit/layers.h"

enum { HR_UNIFORM_SETS_MOST = 256 }; /* that do not beat one another */

typedef struct {
    int64_t ps;       /* of the whole step */
    int32_t chunk;    /* index of the rest */
    bool out_of_room; /* and not known whether there is one */
    int64_t bound;    /* none takes less */
} hr_uniform_best;

/* The fastest choice for a model of more than four layers.
 *
 *   task    set_count at most HR_UNIFORM_SETS_MOST; ps_most is of the whole step; head is not
 * looked at chosen  out: [layers] indices of sets
 *
 * Returns false when there is none. */
bool hr_uniform_choose(hr_layers *layers, const hr_layers_task *task, const hr_proxy_rest *rests,
                       int32_t rest_count, hr_uniform_best *best, uint16_t *chosen);

/* No choice takes less; INT64_MAX: there is none. */
int64_t hr_uniform_bound(hr_layers *layers, const hr_layers_task *task, const hr_proxy_rest *rests,
                         int32_t rest_count);

#endif
