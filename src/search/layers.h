/* SPDX-License-Identifier: Apache-2.0 */
/* search/layers.h - chooses the recompute set of every layer: exact, by dynamic programming over
 * kept bytes.
 *
 * The peak is the maximum of the bytes at the head and, over all layers, of the bytes kept by the
 * layers below plus the work of the layer. So among choices for the lower layers, only those
 * matter that no other beats in both kept bytes and time, and the state is one number. */
#ifndef HR_SEARCH_LAYERS_H
#define HR_SEARCH_LAYERS_H

#include "search/proxy_model.h"

/* A choice for layers 0 to l: kept bytes, time, and the index of the state of layer l - 1 that
 * it extends. */
typedef struct {
    int64_t kept, ps;
    int32_t from;
    uint16_t set; /* index of the set of layer l */
} hr_layers_state;

typedef struct {
    hr_layers_state *states; /* ordered by layer */
    /* [2 * (layers + 1)] index of the first state of each layer; the last is one past the end */
    int64_t *first;
    int64_t most;           /* capacity of states */
    hr_layers_state *spare; /* [3 * HR_LAYERS_STATES] buffers for merging */
    bool thinned; /* states were dropped for lack of room: the result may not be the best */
    /* [HR_LAYERS_UNIFORM_BYTES] of the searches over counts and of bounds: too large for the
     * stack */
    void *uniform;
    int64_t work; /* states visited by all three searches since the caller set it to 0 */
    int64_t work_most;
} hr_layers;

/* States that may be visited for one answer: about a tenth of a second. Beyond that, only coarse
 * lists are made: the result may not be the best, and a bound says how far off it can be. BRIEF
 * is for one of many answers that are compared. */
enum { HR_LAYERS_WORK_MOST = 16 << 20, HR_LAYERS_WORK_BRIEF = 2 << 20 };

static inline bool hr_layers_spent(const hr_layers *layers)
{
    return layers->work >= layers->work_most;
}

enum { HR_LAYERS_UNIFORM_BYTES = 384 << 10 };
enum {
    HR_LAYERS_STATES = 1 << 12, /* of one layer */
    /* of one layer, in the first, coarse pass and when the work limit is reached */
    HR_LAYERS_COARSE = 32
};

int64_t hr_layers_bytes(int32_t layers);
HR_MUST_CHECK hr_status hr_layers_place(hr_layers *layers, int32_t count, hr_region *region,
                                        hr_error *err);

typedef struct hr_parts hr_parts; /* search/parts.h */

/* The input of a choice for all layers. */
typedef struct {
    const hr_proxy_model *proxy;
    const hr_proxy_set *sets; /* [set_count] none dominates another */
    int32_t set_count;
    const hr_proxy_slopes *slopes;
    int64_t limit;    /* bytes: the peak of every layer is at most this */
    int64_t head;     /* bytes that the head needs at least, in addition to what all layers keep */
    int64_t ps_most;  /* slower choices are not wanted */
    int64_t ps_least; /* lower bound on the time of any choice */
    const hr_parts *parts;
} hr_layers_task;

/* Returns a lower bound on the time of any choice, in picoseconds: it assumes that every kept
 * byte saves time at the best rate. INT64_MAX when even the smallest choice exceeds the limit. */
int64_t hr_layers_bound(hr_layers *layers, const hr_layers_task *task);

/* Finds all choices that no other beats. Along the frontier, kept bytes rise and time falls.
 * Returns the number of choices.
 *
 *   states_most  per layer; when there are more, some are dropped at even intervals
 *   frontier     out: [returned count]; valid until the next call */
int32_t hr_layers_choose(hr_layers *layers, const hr_layers_task *task, int32_t states_most,
                         const hr_layers_state **frontier);

/* Writes the choice that ends in frontier[state] as set indices, one per layer. */
void hr_layers_read(const hr_layers *layers, const hr_layers_task *task, int32_t state,
                    uint16_t *chosen);

/* True if some choice, together with the head, is within the limit. Ignores ps_most. */
bool hr_layers_have_room(const hr_layers_task *task);

/* Returns the lowest limit within which some choice fits, including its kept bytes plus `head`.
 *
 *   chosen  out: [layers] set indices of such a choice; may be null */
int64_t hr_layers_least(const hr_proxy_model *proxy, const hr_proxy_set *sets, int32_t set_count,
                        const hr_proxy_slopes *slopes, int64_t head, uint16_t *chosen);

/* Removes every set that another set beats or equals in kept bytes, time and work in every
 * place. Of equal sets the first stays. Returns how many stay. */
int32_t hr_layers_prune(const hr_proxy_model *proxy, hr_proxy_set *sets, int32_t set_count);

#endif
