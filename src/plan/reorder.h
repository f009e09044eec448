/* SPDX-License-Identifier: Apache-2.0 */
/* plan/reorder.h - moves steps past the moment with the most bytes, as long as that lowers it.
 *
 * A heuristic, outside the space that the search proves things about: what it gains comes on top,
 * at the same predicted time. Steps move among their neighbours in one turn of one loop; two that
 * touch one value, one of them writing, keep their order, so every sum adds up as before. */
#ifndef HR_PLAN_REORDER_H
#define HR_PLAN_REORDER_H

#include "graph/program.h"

/* Reorders steps of `program` in place. The floor never grows; the result depends on the program
 * and `threads` (through scratch) alone.
 *
 *   region  room for lives, given back
 *
 * Errors   FAILURE  the region is too small. NO_FIT  a size of 2^63 bytes or more.
 * Cost     one derivation of lives, and for each of at most 64 moves one for every try that looks
 *          like a gain, 48 at most. */
HR_MUST_CHECK hr_status hr_reorder(hr_program *program, int32_t threads, hr_region *region,
                                   hr_error *err);

#endif
