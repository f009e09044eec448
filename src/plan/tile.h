/* SPDX-License-Identifier: Apache-2.0 */
/* plan/tile.h - the one pass that makes loops: it splits a range of adjacent steps by token rows.
 *
 * A micro-batch is a tile over a section, a loss chunk a tile over the head. Tensors that only the
 * range accesses shrink to the rows of one iteration and belong to the loop. Tensors that are also
 * accessed outside are accessed through views that move with the loop. */
#ifndef HR_PLAN_TILE_H
#define HR_PLAN_TILE_H

#include "graph/program.h"

/* A loop to make. Steps [first, last] must be all of a loop or be in one loop, and contain its
 * inner loops whole. */
typedef struct {
    int32_t first, last;
    const char *name; /* of the loop */
    int64_t rows; /* token rows per iteration, fewer than in the range; the last may have less */
    bool parts;   /* the range has one sequence, and iterations parts of it */
} hr_tile_cut;

/* Makes `count` loops, one after the other. Each two are disjoint, or one contains the other.
 *
 * Errors   FAILURE  the program has no room for another loop or view; scratch too small.
 * Cost     one pass over the program, then one over the steps of each tile. */
HR_MUST_CHECK hr_status hr_tile(hr_program *program, const hr_tile_cut *cuts, int32_t count,
                                hr_region *scratch, hr_error *err);

/* Sorts the loops by first step, outer before inner, whatever the order of the passes. */
void hr_tile_sort_loops(hr_program *program);

#endif
