/* SPDX-License-Identifier: Apache-2.0 */
/* plan/tile.h - the one pass that makes loops: cuts a contiguous range of steps by token rows.
 *
 * Micro-batch is a tile over a section, loss chunk a tile over the head. Values of rows that
 * only the range touches shrink to one turn's rows and become the loop's own; values that are
 * also touched outside are seen through views that move with the loop. */
#ifndef HR_PLAN_TILE_H
#define HR_PLAN_TILE_H

#include "graph/program.h"

/* A loop to be made. Steps [first, last] must be all of a loop or lie in one loop whole, inner
 * loops included. */
typedef struct {
    int32_t first, last;
    const char *name; /* of the loop */
    int64_t rows;     /* token rows a turn, less than those the range works on; the last turn may be
                       * short */
} hr_tile_cut;

/* Makes the cuts, one after the other: [count], of one another independent or one inside the other.
 *
 * Errors   FAILURE  the program has no room for another loop or view; scratch too small.
 * Cost     one walk over the program, and then each cut's own steps. */
HR_MUST_CHECK hr_status hr_tile_many(hr_program *program, const hr_tile_cut *cuts, int32_t count,
                                     hr_region *scratch, hr_error *err);

/* One cut. Each call walks the program: many are cheaper together. */
HR_MUST_CHECK hr_status hr_tile(hr_program *program, int32_t first, int32_t last, const char *name,
                                int64_t rows, hr_region *scratch, hr_error *err);

/* Numbers the loops by their first step, outer before inner: whatever order the passes came in. */
void hr_tile_sort_loops(hr_program *program);

#endif
