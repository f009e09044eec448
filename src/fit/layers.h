/* SPDX-License-Identifier: Apache-2.0 */
/* fit/layers.h - which layer keeps what: exact, by dynamic programming over what is kept.
 *
 * The peak is the largest over layers of (kept by the layers below + work of the layer), and what
 * is kept at the head. So of two choices for the layers below that keep no more and take no longer
 * one is enough, and the state is one number. */
#ifndef HR_FIT_LAYERS_H
#define HR_FIT_LAYERS_H

#include "fit/proxy_model.h"

/* Layers 0 to some l, chosen: kept bytes and time, and the state of layer l - 1 it came from. */
typedef struct {
    int64_t kept, ps;
    int32_t from;
    uint16_t set; /* index of the layer's set */
} hr_layers_state;

typedef struct {
    hr_layers_state *states; /* layer by layer */
    int64_t *first;          /* [2 * (layers + 1)] of each layer; the last: one past the end */
    int64_t most;            /* room in states */
    hr_layers_state *spare;  /* [3 * HR_LAYERS_STATES] for merging */
    bool thinned; /* states were left out for want of room: what is found may not be the best */
    void *alike;  /* [HR_LAYERS_ALIKE_BYTES] of the search over counts: too large for a stack */
    int64_t work; /* states looked at, by all three searches, since the caller put it to 0 */
    int64_t work_most;
} hr_layers;

/* States that may be looked at for one answer: about a tenth of a second. Beyond, only coarse lists
 * are made: what is found may not be the best, and a bound says how far off it is at most. BRIEF:
 * for one of many answers that are compared. */
enum { HR_LAYERS_WORK_MOST = 16 << 20, HR_LAYERS_WORK_BRIEF = 2 << 20 };

static inline bool hr_layers_spent(const hr_layers *layers)
{
    return layers->work >= layers->work_most;
}

enum { HR_LAYERS_ALIKE_BYTES = 384 << 10 };
enum {
    HR_LAYERS_STATES = 1 << 12, /* of one layer */
    HR_LAYERS_COARSE = 32       /* of one layer, at a first look and where work is spent */
};

int64_t hr_layers_bytes(int32_t layers);
HR_MUST_CHECK hr_status hr_layers_place(hr_layers *layers, int32_t count, hr_region *region,
                                        hr_error *err);

typedef struct hr_parts hr_parts; /* fit/parts.h */

/* What is asked of the layers. */
typedef struct {
    const hr_proxy_model *proxy;
    const hr_proxy_set *sets; /* [set_count] none dominated by another */
    int32_t set_count;
    const hr_proxy_slopes *slopes;
    int64_t limit;    /* bytes that no layer exceeds */
    int64_t head;     /* bytes that the head needs at least, beside what all layers keep */
    int64_t ps_most;  /* choices that take longer are not wanted */
    int64_t ps_least; /* none takes less */
    const hr_parts *parts;
} hr_layers_task;

/* No choice for the layers takes less, in picoseconds: each kept byte saves what it saves at best.
 * INT64_MAX when the least that they can keep is too much. */
int64_t hr_layers_bound(const hr_layers_task *task);

/* All choices worth having: kept bytes rise and time falls.
 *
 *   states_most  of one layer; where there are more some are left out evenly
 *   frontier     out: [returned count]; valid until the next call */
int32_t hr_layers_choose(hr_layers *layers, const hr_layers_task *task, int32_t states_most,
                         const hr_layers_state **frontier);

/* Writes the choice that ends in frontier[state] as indices of sets, layer by layer. */
void hr_layers_read(const hr_layers *layers, const hr_layers_task *task, int32_t state,
                    uint16_t *chosen);

/* Any choice keeps within the limit, with the head. ps_most is not looked at. */
bool hr_layers_have_room(const hr_layers_task *task);

/* The lowest limit for which any choice exists whose kept bytes plus `head` are within it, too.
 *
 *   chosen  out: [layers] such a choice, indices of sets; null: it is not asked for */
int64_t hr_layers_least(const hr_proxy_model *proxy, const hr_proxy_set *sets, int32_t set_count,
                        const hr_proxy_slopes *slopes, int64_t head, uint16_t *chosen);

/* Leaves of sets only those that no other beats in kept bytes, time and work in every place; of
 * equals the first. Returns how many. */
int32_t hr_layers_prune(const hr_proxy_model *proxy, hr_proxy_set *sets, int32_t set_count);

#endif
