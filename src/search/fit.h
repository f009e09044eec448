/* SPDX-License-Identifier: Apache-2.0 */
/* search/fit.h - finds the fastest strategy whose floor is within a byte limit.
 *
 * The search is exact under the time model. It covers the product of the knobs (search/space.h) and
 * every recompute set of every layer. The floor it reports is the floor of the program built with
 * that strategy, and the time is the sum over the steps of that program. The time is a lower
 * bound for every plan whose arena is within the limit. docs/fit.md explains why. */
#ifndef HR_SEARCH_FIT_H
#define HR_SEARCH_FIT_H

#include "search/layers.h"

/* A strategy with its memory, its time and what is proven about it. */
typedef struct {
    hr_strategy strategy; /* recompute_set: owned by the caller, [layers] */
    int64_t floor_bytes;
    int64_t step_ps;  /* predicted picoseconds of a training step */
    int64_t bound_ps; /* lower bound on step_ps over all strategies; = step_ps when proven */
    bool proven;      /* no strategy is faster within the limit */
} hr_fit_found;

/* Scratch space of the search: its settings are too large for the stack. */
typedef struct hr_fit_scratch hr_fit_scratch;

typedef struct {
    hr_proxy_model proxy;
    hr_layers layers;
    const hr_config *config;
    hr_layer_schema form;
    int32_t values_most; /* of a layer, upper bound: those that a layer can keep */
    hr_intermediates sets[HR_FIT_SETS_MOST];
    int32_t set_count;
    uint16_t *trial, *spare; /* [layers] */
    hr_fit_scratch *scratch;
    hr_region region; /* memory for proxy models */
} hr_fit;

/* Bytes of region that hr_fit_open takes. */
int64_t hr_fit_bytes(const hr_config *config);

/* Errors   FAILURE, and NO_FIT as compiling reports it. */
HR_MUST_CHECK hr_status hr_fit_open(hr_fit *fit, const hr_config *config, const hr_rates *rates,
                                    int32_t threads, hr_region *region, hr_error *err);

/* Finds the fastest strategy with a floor of at most `limit` bytes. Among equally fast strategies
 * it takes the one with the smallest floor.
 *
 *   found   in: strategy.recompute_set, [layers] to write to. out: the result
 *
 * Errors   NO_FIT when no strategy fits. Others as compiling.
 * Cost     builds a few hundred small programs. */
HR_MUST_CHECK hr_status hr_fit_fastest(hr_fit *fit, int64_t limit, hr_fit_found *found,
                                       hr_error *err);

/* Finds the smallest floor of all strategies and one strategy that reaches it, not necessarily the
 * fastest one.
 *
 *   most    bytes. When a bound shows that the smallest floor exceeds this, the search stops:
 *           floor_bytes is then that bound, which is more than `most`, and the strategy has no
 *           layers
 *   enough  bytes. The search stops at the first floor that is at most this; 0: never
 *   found   in: strategy.recompute_set, [layers] to write to. out: strategy and floor_bytes */
HR_MUST_CHECK hr_status hr_fit_least(hr_fit *fit, int64_t most, int64_t enough, hr_fit_found *found,
                                     hr_error *err);

#endif
