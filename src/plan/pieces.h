/* SPDX-License-Identifier: Apache-2.0 */
/* plan/pieces.h - the pieces of updates whose states are outside of the arena, in program order. */
#ifndef HR_PLAN_PIECES_H
#define HR_PLAN_PIECES_H

#include "graph/program.h"

/* Elements [first, first + count) of all arrays of an update. */
typedef struct {
    int32_t step; /* HR_NONE: there is no piece */
    int64_t first, count;
} hr_piece;

/* The first piece of a program that has no transfers yet. */
hr_piece hr_piece_first(const hr_program *program);

/* The piece after this one. */
hr_piece hr_piece_next(const hr_program *program, hr_piece piece);

/* Whether a tensor of an operation that can be split (hr_op.split) has the elements that are split,
 * the scales of their blocks, or their residuals: a weight, master, state or gradient. */
static inline bool hr_piece_is_array(const hr_tensor *tensor)
{
    return tensor->role == HR_ROLE_WEIGHT || tensor->role == HR_ROLE_MASTER ||
           tensor->role == HR_ROLE_STATE || tensor->role == HR_ROLE_GRADIENT;
}

/* How many of its elements belong to the first `elements` of the `all` that are split: as many, a
 * scale for each block, or the codes of a residual. HR_NONE: it is no array, or of another shape.
 *   elements  whole runs of an update, or all of them */
int64_t hr_piece_own_elements(const hr_tensor *tensor, int64_t all, int64_t elements);

/* Whether a step is an update in pieces. */
bool hr_piece_has(const hr_program *program, int32_t step);

/* Elements of the arrays of an update in pieces. */
int64_t hr_piece_elements_of(const hr_program *program, int32_t step);

/* Bytes of the windows of a piece, in whole blocks. */
int64_t hr_piece_bytes(const hr_program *program, hr_piece piece);

/* Bytes of a buffer in the arena that has room for `bytes` from a block on, wherever the plan
 * places it. */
int64_t hr_window_bytes(const hr_program *program, int64_t bytes);

#endif
