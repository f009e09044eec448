/* SPDX-License-Identifier: Apache-2.0 */
/* search/proxy_census.h - the maximum live bytes and the time of a built proxy model, by the part
 * of the step they belong to. */
#ifndef HR_SEARCH_PROXY_CENSUS_H
#define HR_SEARCH_PROXY_CENSUS_H

#include "base/checked.h"
#include "search/proxy_model.h"

/* Maximum live bytes and total picoseconds of a proxy model, by the part of the step they belong
 * to. */
typedef struct {
    int64_t work[HR_PROXY_LAYERS_MOST][HR_PASSES];
    int64_t layer_ps[HR_PROXY_LAYERS_MOST];
    int64_t head, head_first; /* maximum; at the first step of the head */
    int64_t before, after;    /* before the first layer in forward, and after it in backward */
    int64_t section[HR_PROXY_SECTIONS_MOST];
    int64_t rest_ps;
} hr_proxy_census;

/* Which steps are timed. A proxy model that measures one group does not need the times of the
 * other. */
typedef enum { HR_PRICE_LAYERS, HR_PRICE_REST } hr_proxy_prices;

/* Measures a proxy model.
 *
 *   alive  [program->step_count] live bytes at each step */
void hr_proxy_census_take(const hr_proxy_model *proxy, const hr_program *program,
                          const int64_t *alive, hr_proxy_prices wanted, hr_proxy_census *c);

/* True if step s belongs to a training step: to the forward or backward pass, or to the pass that
 * computes the gradient norm. */
bool hr_proxy_trains(const hr_program *program, int32_t s);

/* Returns the place of a step's layer. Layers that no gradient reaches count as the first place:
 * they use the same tiles and chunks, and nothing is kept below them. */
int32_t hr_proxy_place_of(const hr_proxy_model *proxy, const hr_step *step);

static inline void hr_proxy_raise(int64_t *most, int64_t bytes)
{
    *most = hr_max(*most, bytes);
}

#endif
