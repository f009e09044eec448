/* SPDX-License-Identifier: Apache-2.0 */
/* plan/recompute.h - computes a layer's intermediates again in the backward pass instead of keeping
 * them.
 *
 * What is dropped dies in the forward pass; a clone of the step that made it stands before the
 * first backward step that reads it. The clone has the same inputs and attributes, so the same
 * bits come out. Row statistics are always kept: a clone writes only what is read again. Where an
 * operation can make its first output from its second (hr_op.remade_by) and that was kept, the
 * clone is that operation. */
#ifndef HR_PLAN_RECOMPUTE_H
#define HR_PLAN_RECOMPUTE_H

#include "graph/program.h"

/* Clones in the section `loop`, which no tile has cut yet.
 *
 *   dropped  [layers] tensors of that layer that are nothing but these are not kept
 *   whole    bit b: the backward steps of block b of a layer stay neighbours; clones of steps of
 *            another block stand before the first of them, and not before the first reader
 *
 * Errors   FAILURE  the program has no room for the clones; scratch too small. */
HR_MUST_CHECK hr_status hr_recompute(hr_program *program, int32_t loop,
                                     const hr_intermediates *recompute_set, uint32_t whole,
                                     hr_region *scratch, hr_error *err);

#endif
