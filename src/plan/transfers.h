/* SPDX-License-Identifier: Apache-2.0 */
/* plan/transfers.h - gives steps access to values outside of the arena.
 *
 * A step reads and writes windows in the arena. Around a step with an operand in another space this
 * pass adds transfers: `fetch` copies the value to a window before the step, `spill` copies the
 * window back after it. Each has a half that begins it and a half that waits, so that other steps
 * run in between.
 *
 * An update is split into pieces (graph/transfer.h), which take turns in a few slots: while one
 * piece is updated, those after it are fetched and the one before it is spilled. The first pieces
 * may be fetched much earlier (plan/prefetch.h). Pieces end where the runs of an update do, so its
 * results do not change. Loading and saving use a window of the size of a state, that of a
 * gradient. */
#ifndef HR_PLAN_TRANSFERS_H
#define HR_PLAN_TRANSFERS_H

#include "plan/prefetch.h"

/* Adds the transfers. Call it after all passes that clone or tile steps. Does nothing to a program
 * with all values in the arena.
 *
 *   prefetch  chosen for this program; null: no piece is fetched early
 *
 * Errors   FAILURE  no room for steps or tensors; scratch too small.
 * Cost     one pass over the program. */
HR_MUST_CHECK hr_status hr_transfers(hr_program *program, const hr_prefetch *prefetch,
                                     hr_region *scratch, hr_error *err);

#endif
