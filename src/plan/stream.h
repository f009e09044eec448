/* SPDX-License-Identifier: Apache-2.0 */
/* plan/stream.h - gives steps access to weights that stay in the files of the model.
 *
 * A step reads such a weight from a window in the arena. The transfer that fills it begins before
 * the steps that read the weight before this one, and is waited for before the step: while one
 * weight is used, the next is read, and two windows are alive. Tiles of one block read their
 * weights in each iteration: these are read once, before the loop, unless they are strips of one
 * (sections/head.h). */
#ifndef HR_PLAN_STREAM_H
#define HR_PLAN_STREAM_H

#include "base/region.h"
#include "graph/program.h"
#include "headroom/status.h"

/* Adds the windows and transfers. Call it after all passes that clone or tile steps, and before
 * hr_transfers. Does nothing to a program with all weights in the arena.
 *
 * Errors   FAILURE  no room for steps or tensors; scratch too small.
 * Cost     one pass over the program. */
HR_MUST_CHECK hr_status hr_stream(hr_program *program, hr_region *scratch, hr_error *err);

#endif
