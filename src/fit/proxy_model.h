/* SPDX-License-Identifier: Apache-2.0 */
/* fit/proxy_model.h - what one layer takes of bytes and time, asked of a small proxy model of the
 * model.
 *
 * Bytes alive at a step of layer l are those the layers below keep, and others that depend on the
 * keep-set of layer l alone: layers above hold nothing that does. All but the first and the last
 * layer are alike, and what the place of a layer adds grows by the same amount from layer to layer.
 * So a proxy model of three layers says what each keep-set takes in each place, and one of four how
 * that moves with depth. Models of up to four layers are their own proxy model. */
#ifndef HR_FIT_PROXY_MODEL_H
#define HR_FIT_PROXY_MODEL_H

#include "fit/space.h"
#include "graph/program.h"
#include "model/rules.h"
#include "plan/cost.h"

enum {
    HR_PROXY_LAYERS = 3,
    HR_PROXY_LAYERS_MOST = 4,
    HR_PROXY_FROZEN_MOST = 2,
    HR_PROXY_SECTIONS_MOST = 8,
    HR_PROXY_DEPTHS = 2
};

typedef enum { HR_PASS_FORWARD, HR_PASS_BACKWARD, HR_PASSES } hr_proxy_pass;

/* Where a layer stands. In a model that is its own proxy model a place is a layer. Of layers that
 * no gradient reaches a proxy model has two at most: they keep nothing, and nothing is chosen for
 * them. */
typedef struct {
    int32_t layers; /* of the model, without those that no gradient reaches */
    bool exact;     /* its own proxy model */
    int32_t places;
} hr_proxy_depth;

/* One keep-set, in all places. */
typedef struct {
    hr_intermediates recompute_set;
    int64_t kept; /* bytes of a layer that live until its backward pass, beyond the reference's */
    int64_t work[HR_PROXY_LAYERS_MOST][HR_PASSES]; /* most bytes alive, those kept below left out */
    int64_t ps[HR_PROXY_LAYERS_MOST]; /* picoseconds of a layer in a step of training */
} hr_proxy_set;

/* What knobs take outside the layers, at the depth of the model: with the reference keep-set, that
 * which drops most. */
typedef struct {
    int64_t head;  /* most bytes alive between the forward and the backward pass */
    int64_t other; /* most bytes alive where layers keep nothing: other sections, the embedding */
    int64_t ps;    /* of all that is no layer */
} hr_proxy_rest;

/* How work moves with the place of a layer; all zero for a model that is its own proxy model. */
typedef struct {
    int64_t step[HR_PASSES];                        /* from a middle layer to the next */
    int64_t depth[HR_PROXY_LAYERS_MOST][HR_PASSES]; /* for each layer beyond three */
} hr_proxy_slopes;

/* A model that no pass has touched, for micro-batches of so many sequences; 0: none yet. */
typedef struct {
    hr_region region;
    hr_program program;
    int64_t sequences;
} hr_proxy_program;

typedef struct {
    const hr_config *config;
    const hr_rates *rates;
    int32_t threads;
    hr_proxy_depth depth;
    hr_trained trained;
    hr_proxy_program models[HR_PROXY_DEPTHS];
    hr_region *region;            /* for proxy models, one after the other */
    int64_t built;                /* proxy models so far */
    int64_t steps;                /* of these proxy models */
    struct hr_proxy_cache *cache; /* of results; null, as hr_proxy_open leaves it: none */
} hr_proxy_model;

/* Bytes of region that the largest proxy model needs. */
int64_t hr_proxy_bytes(const hr_config *config);

HR_MUST_CHECK hr_status hr_proxy_open(hr_proxy_model *proxy, const hr_config *config,
                                      const hr_rates *rates, int32_t threads, hr_region *region,
                                      hr_error *err);

/* `layer` counts from the first that a gradient reaches, as everywhere in the search. */
int32_t hr_proxy_place(const hr_proxy_model *proxy, int32_t layer);

/* Bytes alive at most at a pass of a layer, those kept below left out. */
int64_t hr_proxy_work(const hr_proxy_model *proxy, const hr_proxy_set *set,
                      const hr_proxy_slopes *slopes, int32_t layer);

/* The keep-set `recomputed` in all places. knobs->recompute_set is not looked at.
 *   reference_head  bytes alive at the head with the reference in all layers of the proxy model; 0
 * when this is the reference, which then is written. */
HR_MUST_CHECK hr_status hr_proxy_set_of(hr_proxy_model *proxy, const hr_strategy *knobs,
                                        hr_intermediates recompute_set, int64_t *reference_head,
                                        hr_proxy_set *set, hr_error *err);

/* The proxy model of sets[0], which drops nothing, and what it says of all others: what layers work
 * with at least. At each of its steps what is kept is there, and what is not kept and read by a
 * step of the backward pass was made again; where blocks are tiled that may share bytes, and is
 * left out. sets  [count] in: recomputed. out: the first; work of those not `known` */
HR_MUST_CHECK hr_status hr_proxy_works_of(hr_proxy_model *proxy, const hr_strategy *knobs,
                                          int64_t *reference_head, hr_proxy_set *sets,
                                          const bool *known, int32_t count, hr_error *err);

/* True if sets add up: every value that may be recomputed is read by the backward pass itself, or
 * by nothing that is made again without it. Then parts that no step makes together save bytes and
 * cost time each for itself. At least one proxy model was built. */
bool hr_proxy_adds_up(const hr_proxy_model *proxy);

/* The rest of the step with each of `count` loss chunks, and the slopes, with the reference
 * keep-set `recomputed` in all layers. knobs->loss_chunk is not looked at. */
HR_MUST_CHECK hr_status hr_proxy_rests_of(hr_proxy_model *proxy, const hr_strategy *knobs,
                                          hr_intermediates recompute_set, const int64_t *chunks,
                                          int32_t count, hr_proxy_rest *rests,
                                          hr_proxy_slopes *slopes, hr_error *err);

#endif
