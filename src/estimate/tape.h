/* SPDX-License-Identifier: Apache-2.0 */
/* estimate/tape.h - the live bytes of a training step under automatic differentiation.
 *
 * It records operations as PyTorch's autograd does: an operation makes a storage, a node that saves
 * some storages, and edges to the nodes of its inputs. The backward pass walks through the nodes in
 * reverse; each makes the gradients of its inputs and frees what it saved. Storages are counted by
 * reference, so the tape knows what is live at every moment. */
#ifndef HR_ESTIMATE_TAPE_H
#define HR_ESTIMATE_TAPE_H

#include <stdbool.h>

#include "base/region.h"
#include "headroom/estimate.h"

enum { HR_TAPE_NONE = -1, HR_TAPE_EDGES = 4, HR_TAPE_SAVES = 6 };

typedef enum { HR_TAPE_FORWARD, HR_TAPE_BACKWARD, HR_TAPE_UPDATE, HR_TAPE_PHASES } hr_tape_phase;

/* A tensor: where its bytes are, and which node makes its gradient. */
typedef struct {
    int32_t storage, node;
    int64_t count; /* elements */
    int64_t width; /* bytes of an element */
    bool grad;     /* a gradient flows to it */
} hr_value;

typedef struct {
    const char *label;
    int64_t bytes;
    int32_t references, component;
} hr_tape_storage;

typedef struct {
    const char *label;
    int32_t input[HR_TAPE_EDGES];      /* nodes */
    int64_t bytes[HR_TAPE_EDGES];      /* of the new gradient; 0: the incoming one is passed on */
    int32_t component[HR_TAPE_EDGES];  /* of the new gradient */
    int32_t saved[HR_TAPE_SAVES];      /* storages */
    int32_t edges, saves, saves_first; /* saves_first: in the first run of the forward pass */
    int32_t region;                    /* of recomputation; HR_TAPE_NONE: none */
    int32_t buffer;                    /* storage of the gradient that has arrived */
    int64_t extra;                     /* temporaries while the node runs */
    bool collects;                     /* gradients of parts are kept side by side */
    bool early;                        /* what it saved is what it returns */
    /* A leaf: a parameter. Its gradient stays. */
    bool leaf;
    int32_t pending; /* edges that have not delivered */
    int32_t gradient;
} hr_tape_node;

typedef struct hr_tape hr_tape;
typedef hr_value (*hr_tape_layer)(hr_tape *tape, const void *model, int64_t layer, hr_value x);

/* A layer that keeps its input alone and runs again in the backward pass. */
typedef struct {
    hr_tape_layer run;
    const void *model;
    int64_t layer;
    hr_value input;
    int32_t first, last, saving; /* nodes; saving: the last one that saves */
    int32_t output, arrived;     /* storages that reentrant recomputation holds */
    bool ready;                  /* its values have been computed again */
} hr_tape_region;

struct hr_tape {
    hr_region memory;
    hr_tape_storage *storages;
    hr_tape_node *nodes;
    hr_tape_region *regions;
    int32_t *held;   /* storages that the running functions hold */
    int32_t *caches; /* storages that autocast holds until its end */
    int32_t storage_count, node_count, region_count, held_count, cache_count;
    int32_t storage_most, node_most, region_most, held_most, cache_most;
    int32_t free_storage; /* head of the list of free slots; linked by `references` */
    int32_t region;       /* being recorded; HR_TAPE_NONE: none */
    int32_t cursor;       /* next node of a region that runs again; HR_TAPE_NONE: none runs */
    int32_t replayed;     /* the region that runs again */
    bool stopped;         /* nothing else of that region is needed */
    bool reentrant;       /* layers run again to their end */
    bool full;            /* a table is too small, or a size too large */
    hr_tape_phase phase;
    int64_t live, events, peak, peak_event, phase_peaks[HR_TAPE_PHASES];
    int64_t components[HR_ESTIMATE_COMPONENTS], most[HR_ESTIMATE_COMPONENTS];
    const char *peak_label;
    hr_tape_phase peak_phase;
    int64_t rounding; /* sizes are rounded up to this */
    int64_t shares;   /* a finished gradient of a weight keeps one of so many parts */
    bool to_host;     /* a finished gradient of a weight moves to the host */
    /* At event `snapshot` the answer is filled. */
    int64_t snapshot;
    hr_estimate_answer *answer;
};

/* Takes the tables from a region. False: it is too small. */
bool hr_tape_open(hr_tape *tape, hr_region *region, int64_t layers);
int64_t hr_tape_bytes(int64_t layers);

/* A storage with one reference, held by the running function. */
int32_t hr_tape_storage_new(hr_tape *tape, const char *label, int32_t component, int64_t bytes);
hr_value hr_tape_value(hr_tape *tape, const char *label, int32_t component, int64_t count,
                       int64_t width);
/* A storage that nothing frees. */
int32_t hr_tape_keep(hr_tape *tape, const char *label, int32_t component, int64_t bytes);
void hr_tape_refer(hr_tape *tape, int32_t storage);
void hr_tape_release(hr_tape *tape, int32_t storage);

/* Functions: what they hold is dropped at the end, but for the result. */
int32_t hr_tape_enter(const hr_tape *tape);
hr_value hr_tape_leave(hr_tape *tape, int32_t mark, hr_value result);
void hr_tape_drop(hr_tape *tape, hr_value value);

/* A trained parameter of so many bytes: its node. */
int32_t hr_tape_leaf(hr_tape *tape, const char *label);

/* The node of an operation, edge by edge; HR_TAPE_NONE without an input that needs a gradient. */
int32_t hr_tape_node_new(hr_tape *tape, const char *label, bool any);
void hr_tape_edge(hr_tape *tape, int32_t node, hr_value input, int64_t bytes, int32_t component);
void hr_tape_save(hr_tape *tape, int32_t node, hr_value value);
void hr_tape_extra(hr_tape *tape, int32_t node, int64_t bytes);

/* Temporaries inside an operation of the forward pass or the update. */
void hr_tape_burst(hr_tape *tape, const char *label, int32_t component, int64_t bytes);

/* Runs a layer under checkpointing. */
hr_value hr_tape_checkpoint(hr_tape *tape, hr_tape_layer run, const void *model, int64_t layer,
                            hr_value x);

/* Holds a storage until the end of autocast. */
void hr_tape_cache(hr_tape *tape, int32_t storage);
void hr_tape_cache_end(hr_tape *tape, int32_t count);

/* The backward pass from a node; its gradient has so many bytes. Forgets all nodes but leaves. */
void hr_tape_backward(hr_tape *tape, int32_t node, int64_t bytes);

#endif
