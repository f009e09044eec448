/* SPDX-License-Identifier: Apache-2.0 */
/* graph/transfer.h - transfers between the arena and the other spaces, as plan/transfers.h adds
 * them to a program. */
#ifndef HR_GRAPH_TRANSFER_H
#define HR_GRAPH_TRANSFER_H

#include <stdint.h>

#include "headroom/status.h"

/* What an operation does for a transfer. A begin and its wait are two steps. */
typedef enum {
    HR_TRANSFER_NONE,
    HR_TRANSFER_FETCH_BEGIN, /* from another space to the arena */
    HR_TRANSFER_FETCH_WAIT,
    HR_TRANSFER_SPILL_BEGIN, /* from the arena to another space */
    HR_TRANSFER_SPILL_WAIT,
    HR_TRANSFERS
} hr_transfer;

/* The input and output of a begin at one index have equal bytes. */
typedef struct {
    int32_t slot; /* begins and waits pair by it: a slot has one open transfer at most */
} hr_transfer_attr;

/* A parameter, or some columns of it. */
typedef struct {
    int32_t param;
    int64_t first, columns; /* columns 0: all */
} hr_base_part;

/* What reads weights from the files of a frozen model. */
typedef struct {
    /* Begins to read a part to its window, and its scales, which may be null: they belong to the
     * source until wait. Returns a ticket. */
    int64_t (*begin)(void *context, hr_base_part part, void *window, float *scales);
    hr_status (*wait)(void *context, int64_t ticket, hr_error *err);
    void (*drain)(void *context); /* waits until no window is written */
    /* Reads the rows [count, N] of a table that the ids choose, in the dtype of the weight. */
    hr_status (*look_up)(void *context, int32_t param, const int32_t *ids, int64_t count, void *to,
                         hr_error *err);
    void *context;
} hr_base_source;

/* Elements of each state in a piece of an update: at least 256 KiB in fp32, and 4 MiB unless the
 * model is small. Whole blocks of direct I/O, and whole runs of the update, so that its results do
 * not depend on pieces. */
enum { HR_PIECE_ELEMENTS = 64 << 10, HR_PIECE_ELEMENTS_FAST = 1 << 20 };

/* The elements of a piece in a model whose largest parameter has this many: 4 to 8 pieces of it in
 * a small model, whose windows would otherwise take what the file saves. At most 64 in a large one,
 * so that its tables stay small. */
static inline int64_t hr_piece_elements(int64_t largest)
{
    int64_t elements = HR_PIECE_ELEMENTS;
    while (elements < HR_PIECE_ELEMENTS_FAST && elements < largest / 8) elements *= 2;
    while (elements < largest / 64) elements *= 2;
    return elements;
}

/* At most HR_SLOTS pieces are in the arena at a time: the one that is updated, the one before it
 * and the one after it. Beside them at most HR_PREFETCH_MOST are fetched early, each in its own
 * slot. Activations have a slot of their own for each direction (plan/spill.h). */
enum {
    HR_SLOTS = 3,
    HR_PREFETCH_MOST = 96,
    HR_SPILL_SLOT = HR_SLOTS + HR_PREFETCH_MOST,
    HR_UNSPILL_SLOT,
    HR_SLOTS_MOST
};

/* Weights of the base are fetched in turn in slots of their own, after those of pieces: the windows
 * of one run of steps and of the next (plan/stream.h) are fewer. */
enum { HR_BASE_SLOTS = 64, HR_ALL_SLOTS = HR_SLOTS_MOST + HR_BASE_SLOTS };

/* The most that spills of activations add to a program for each layer: two transfers of two halves
 * in two passes, with the value in the file, its window and its views in loops. */
enum { HR_SPILL_STEPS = 8, HR_SPILL_TENSORS = 20 };

/* The most that transfers add to a program of `params` parameters with `pieces` pieces and `states`
 * states outside of the arena. */
static inline int64_t hr_transfer_steps(int64_t params, int64_t pieces, int64_t states)
{
    enum { OF_PIECE = 5, OF_STATE = 6 }; /* of a state: load and save it */
    return pieces * OF_PIECE + params * states * OF_STATE;
}

static inline int64_t hr_transfer_tensors(int64_t params, int64_t pieces, int64_t states)
{
    enum { ARRAYS = 3, OF_STATE = 4, BUFFER = 2 }; /* gradient, master and weight */
    return pieces * (ARRAYS + 2 * states + BUFFER) + params * states * OF_STATE + BUFFER;
}

#endif
