/* SPDX-License-Identifier: Apache-2.0 */
/* fit/fit.h - the fastest strategy whose floor is within so many bytes, of all there are.
 *
 * Exact under the time model over the product of the knobs (fit/space.h) and of every keep-set in
 * every layer: the floor of the strategy that is found is the floor of the program built with it,
 * and its time the sum over that program's steps. No strategy of the space is faster within the
 * limit, so the time found with a limit is a lower bound for every plan whose arena is within it.
 * docs/fit.md says why. */
#ifndef HR_FIT_FIT_H
#define HR_FIT_FIT_H

#include "fit/layers.h"

/* A strategy, what it takes, and what is known about it. */
typedef struct {
    hr_strategy strategy; /* recomputed: the caller's, [layers] */
    int64_t floor_bytes;
    int64_t step_ps;  /* picoseconds of a step of training, predicted */
    int64_t bound_ps; /* no strategy of the space takes less; = step_ps when proven */
    bool proven;      /* no strategy of the space is better */
} hr_fit_found;

/* Where the search has its settings: they are too large for a stack. */
typedef struct hr_fit_desk hr_fit_desk;

typedef struct {
    hr_proxy_model proxy;
    hr_layers layers;
    const hr_config *config;
    hr_layer_schema form;
    hr_intermediates sets[HR_FIT_SETS_MOST];
    int32_t set_count;
    uint16_t *trial, *spare; /* [layers] */
    hr_fit_desk *desk;
    hr_region region; /* of proxy models */
} hr_fit;

/* Bytes of region that searching takes. */
int64_t hr_fit_bytes(const hr_config *config);

/* Errors   FAILURE, NO_FIT as compiling. */
HR_MUST_CHECK hr_status hr_fit_open(hr_fit *fit, const hr_config *config, const hr_rates *rates,
                                    int32_t threads, hr_region *region, hr_error *err);

/* The fastest strategy with a floor of at most `limit` bytes; of equally fast ones the smallest.
 *
 *   found   in: strategy.recompute_set [layers], to be written. out
 *
 * Errors   NO_FIT  there is none. Others as compiling.
 * Cost     a few hundred small programs. */
HR_MUST_CHECK hr_status hr_fit_fastest(hr_fit *fit, int64_t limit, hr_fit_found *found,
                                       hr_error *err);

/* The least floor of any strategy, and one that has it: not the fastest of them.
 *
 *   most    where it is seen to be above this, no strategy is looked for: floor_bytes is more than
 *           that and not above the least floor, and the strategy has no layers
 *   found   in: strategy.recompute_set [layers], to be written. out: strategy and floor_bytes */
HR_MUST_CHECK hr_status hr_fit_least(hr_fit *fit, int64_t most, hr_fit_found *found, hr_error *err);

#endif
