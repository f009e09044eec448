/* SPDX-License-Identifier: Apache-2.0 */
/* plan/reorder.h - moves steps across the peak as long as that lowers the floor.
 *
 * A heuristic outside of the space that the search covers: its gain is extra, at the same predicted
 * time. A step moves among its neighbors in one iteration of one loop. Two steps that access the
 * same value, one of them writing, keep their order, so the order of every sum is unchanged. */
#ifndef HR_PLAN_REORDER_H
#define HR_PLAN_REORDER_H

#include "graph/program.h"

/* Reorders steps of `program` in place. The floor never grows. The result depends only on the
 * program and `threads` (through scratch).
 *
 *   region  room for lifetimes; released on return
 *   moves   out: how many steps moved; 0: the program is as it was
 *
 * Errors   FAILURE  the region is too small. NO_FIT  a size of 2^63 bytes or more.
 * Cost     one derivation of lifetimes, and for each of at most 64 moves one per promising
 *          candidate, at most 48. */
HR_MUST_CHECK hr_status hr_reorder(hr_program *program, int32_t threads, hr_region *region,
                                   int32_t *moves, hr_error *err);

#endif
