/* SPDX-License-Identifier: Apache-2.0 */
/* plan/spill.h - writes the inputs of layers to the file after the forward pass of their layer, and
 * reads them again before its backward pass.
 *
 * Backward reads the input of a layer long after forward. In between it takes no bytes of the arena
 * here. The spill begins behind the last forward step that accesses the value, outside of all loops
 * that are inside its home, and a fetch precedes the first backward or recomputed step that reads
 * it. A transfer ends before the next step, so a layer needs the bytes of its own values only: the
 * search measures layers apart. hr_spill_overlap then makes room for other steps in between. */
#ifndef HR_PLAN_SPILL_H
#define HR_PLAN_SPILL_H

#include "graph/program.h"

/* Spills the inputs of the layers whose set has HR_INTERMEDIATE_INPUT. Call it after all passes
 * that clone or tile steps.
 *
 *   sets  [layers]
 *
 * Errors   FAILURE  no room for steps or tensors; scratch too small.
 * Cost     two passes over the program. */
HR_MUST_CHECK hr_status hr_spill(hr_program *program, const hr_intermediates *sets,
                                 hr_region *scratch, hr_error *err);

/* Begins fetches earlier and waits for spills later, in bytes of the arena that are free below its
 * floor. Call it after hr_transfers, whose windows are part of the floor. One fetch and one spill
 * at most are under way. Does nothing to a program without spilled activations.
 *
 * Errors   as hr_lifetimes. */
HR_MUST_CHECK hr_status hr_spill_overlap(hr_program *program, int32_t threads, hr_region *scratch,
                                         hr_error *err);

#endif
