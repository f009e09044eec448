/* SPDX-License-Identifier: Apache-2.0 */
/* plan/transfers.h - gives steps access to values outside of the arena.
 *
 * A step reads and writes windows in the arena. Around a step with an operand in another space this
 * pass adds transfers: `fetch` copies the value to a window before the step, `spill` copies the
 * window back after it. Each has a half that begins it and a half that waits, so that other steps
 * run in between.
 *
 * An update is split into pieces (graph/transfer.h). Pieces take turns in a few slots of one
 * buffer: while one piece is updated, those after it are fetched and the one before it is
 * spilled. Pieces end where the runs of an update do, so its results do not change. Loading and
 * saving use a window of the size of a state, that of a gradient. */
#ifndef HR_PLAN_TRANSFERS_H
#define HR_PLAN_TRANSFERS_H

#include "graph/program.h"

/* Adds the transfers. Call it after all passes that move or clone updates. Does nothing to a
 * program with all values in the arena.
 *
 * Errors   FAILURE  no room for steps or tensors; scratch too small.
 * Cost     one pass over the program. */
HR_MUST_CHECK hr_status hr_transfers(hr_program *program, hr_region *scratch, hr_error *err);

#endif
