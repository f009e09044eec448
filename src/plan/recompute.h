/* SPDX-License-Identifier: Apache-2.0 */
/* plan/recompute.h - activation checkpointing: recomputes intermediates of a layer in the backward
 * pass instead of saving them.
 *
 * The lifetime of a dropped value ends in the forward pass. A clone of the step that computes it is
 * inserted before the first backward step that reads it. The clone has the same inputs and
 * attributes, so it produces the same bits. Row statistics are always saved; a clone writes only
 * values that backward reads. If an operation can derive its first output from its saved second one
 * (hr_op.remade_by), the clone is that operation.
 *
 * A clone serves all later readers, or with hr_program.again those of one block: attention is then
 * computed once more, and takes no bytes while the MLP's backward pass runs. */
#ifndef HR_PLAN_RECOMPUTE_H
#define HR_PLAN_RECOMPUTE_H

#include "graph/program.h"

/* Inserts the clones into the section `loop`, before any tiling.
 *
 *   recompute_set  [layers] drops the layer's tensors whose marks are all in this set
 *   whole          bit b: the backward steps of block b of a layer stay adjacent; clones of steps
 *                  of other blocks go before the first of them, not before the first reader
 *
 * Errors   FAILURE  the program has no room for the clones; scratch too small. */
HR_MUST_CHECK hr_status hr_recompute(hr_program *program, int32_t loop,
                                     const hr_intermediates *recompute_set, uint32_t whole,
                                     hr_region *scratch, hr_error *err);

#endif
