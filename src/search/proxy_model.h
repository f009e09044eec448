/* SPDX-License-Identifier: Apache-2.0 */
/* search/proxy_model.h - measures the memory and time of one layer in a small proxy model.
 *
 * The live bytes at a step of layer l are the bytes kept by the layers below, plus bytes that
 * depend only on the recompute set of layer l. All layers of one kind but the first and last are
 * equal, and the effect of depth grows linearly, equally for all kinds (model/family.h). So a
 * proxy of the first layer, one middle layer of each kind and the last layer measures each
 * recompute set in each place, and one with another middle layer measures the growth with depth. A
 * model of up to four layers is its own proxy. */
#ifndef HR_SEARCH_PROXY_MODEL_H
#define HR_SEARCH_PROXY_MODEL_H

#include <stddef.h>

#include "graph/program.h"
#include "model/family.h"
#include "model/rules.h"
#include "plan/cost.h"
#include "search/space.h"

enum {
    HR_PROXY_PLACES_MOST = HR_LAYER_KINDS_MOST + 2,
    HR_PROXY_LAYERS_MOST = HR_PROXY_PLACES_MOST + 1,
    HR_PROXY_FROZEN_MOST = 2,
    HR_PROXY_SECTIONS_MOST = 8,
    HR_PROXY_DEPTHS = 2
};

typedef enum { HR_PASS_FORWARD, HR_PASS_BACKWARD, HR_PASSES } hr_proxy_pass;

/* The depth of the model and of its proxy. In a model that is its own proxy, every layer is a
 * place of its own. A proxy has at most two of the layers that no gradient reaches: they keep
 * nothing, and there is no choice to make for them. */
typedef struct {
    int32_t layers; /* of the model, without the layers that no gradient reaches */
    bool exact;     /* the model is its own proxy */
    int32_t places; /* layers of the smaller proxy */
    /* [layers] the place of each layer; null: first, middle and last */
    const uint8_t *place;
} hr_proxy_depth;

/* The cost of one recompute set in all places. */
typedef struct {
    hr_intermediates recompute_set;
    /* bytes that a layer keeps until its backward pass, beyond those of the reference set */
    int64_t kept;
    /* maximum live bytes, without those kept by the layers below */
    int64_t work[HR_PROXY_PLACES_MOST][HR_PASSES];
    int64_t ps[HR_PROXY_PLACES_MOST]; /* picoseconds of a layer in a training step */
} hr_proxy_set;

/* The cost of everything outside the layers, at the depth of the model, with the reference
 * recompute set: the one that recomputes most. */
typedef struct {
    int64_t head;  /* maximum live bytes between the forward and the backward pass */
    int64_t other; /* maximum live bytes where layers keep nothing: other sections, the embedding */
    int64_t ps;    /* picoseconds of everything outside the layers */
} hr_proxy_rest;

/* How the work of a layer changes with its position; all zero for a model that is its own proxy. */
typedef struct {
    int64_t step[HR_PASSES];                        /* from one middle layer to the next */
    int64_t depth[HR_PROXY_PLACES_MOST][HR_PASSES]; /* for each layer beyond the places */
} hr_proxy_slopes;

/* An assembled model that no pass has changed, for micro-batches of `sequences`; 0: not built. */
typedef struct {
    hr_region region;
    hr_program program;
    int64_t sequences;
} hr_proxy_program;

typedef struct {
    const hr_config *config;
    hr_config *small; /* the same, with the layers of the proxy model that is built */
    const hr_rates *rates;
    int32_t threads;
    hr_proxy_depth depth;
    hr_trained trained;
    /* kinds of the layers of the larger proxy. The smaller one lacks the last but one */
    uint8_t kinds[HR_PROXY_FROZEN_MOST + HR_PROXY_LAYERS_MOST];
    /* layers of the model that each frozen layer of a proxy stands for */
    int32_t frozen_like[HR_PROXY_FROZEN_MOST];
    hr_proxy_program models[HR_PROXY_DEPTHS];
    hr_region *region;            /* memory of one proxy model at a time */
    int64_t built;                /* number of proxy models built so far */
    int64_t steps;                /* total steps of these proxy models */
    struct hr_proxy_cache *cache; /* results; hr_proxy_open sets it to null: no cache */
} hr_proxy_model;

/* Bytes of region that the largest proxy model needs. */
int64_t hr_proxy_bytes(const hr_config *config);

HR_MUST_CHECK hr_status hr_proxy_open(hr_proxy_model *proxy, const hr_config *config,
                                      const hr_rates *rates, int32_t threads, hr_region *region,
                                      hr_error *err);

/* Returns the place of a layer. `layer` counts from the first layer that a gradient reaches, as
 * everywhere in the search. */
int32_t hr_proxy_place(const hr_proxy_model *proxy, int32_t layer);

/* True if the layers between the first and the last are of more than one kind. */
static inline bool hr_proxy_is_mixed(const hr_proxy_model *proxy)
{
    return proxy->depth.place != NULL;
}

/* Returns the group of layers of one kind that a layer belongs to: 0, or in a mixed model the
 * middle place of its kind, less 1. */
int32_t hr_proxy_group(const hr_proxy_model *proxy, int32_t layer);

/* Number of groups. */
static inline int32_t hr_proxy_groups(const hr_proxy_model *proxy)
{
    return hr_proxy_is_mixed(proxy) ? proxy->depth.places - 2 : 1;
}

/* Maximum live bytes in the passes of a layer, without those kept by the layers below. */
int64_t hr_proxy_work(const hr_proxy_model *proxy, const hr_proxy_set *set,
                      const hr_proxy_slopes *slopes, int32_t layer);

/* Measures one recompute set in all places. Ignores knobs->recompute_set.
 *
 *   reference_head  live bytes at the head with the reference set in all layers of the proxy. 0
 *                   when this call measures the reference set; then it is written */
HR_MUST_CHECK hr_status hr_proxy_set_of(hr_proxy_model *proxy, const hr_strategy *knobs,
                                        hr_intermediates recompute_set, int64_t *reference_head,
                                        hr_proxy_set *set, hr_error *err);

/* Measures sets[0], which recomputes nothing, and derives a lower bound on the work of all other
 * sets. At each step, a kept value is live, and so is a recomputed value that the backward step
 * reads. With tiles the recomputed value may share bytes, so it is not counted.
 *
 *   sets  [count] in: recompute_set. out: sets[0], and the work of every set that is not `known` */
HR_MUST_CHECK hr_status hr_proxy_works_of(hr_proxy_model *proxy, const hr_strategy *knobs,
                                          int64_t *reference_head, hr_proxy_set *sets,
                                          const bool *known, int32_t count, hr_error *err);

/* True if the costs of sets are sums over their parts: backward reads every recomputable value
 * itself, or every reader of the value makes values that are recomputed together with it. Then
 * parts that are not made by the same step save bytes and cost time independently. At least one
 * proxy model must have been built. */
bool hr_proxy_adds_up(const hr_proxy_model *proxy);

/* Measures everything outside the layers with each of `count` loss chunks, and the slopes, with
 * the reference set `recompute_set` in all layers. Ignores knobs->loss_chunk. */
HR_MUST_CHECK hr_status hr_proxy_rests_of(hr_proxy_model *proxy, const hr_strategy *knobs,
                                          hr_intermediates recompute_set, const int64_t *chunks,
                                          int32_t count, hr_proxy_rest *rests,
                                          hr_proxy_slopes *slopes, hr_error *err);

#endif
