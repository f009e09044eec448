/* SPDX-License-Identifier: Apache-2.0 */
/* plan/strips.h - gradients that never exist whole.
 *
 * After gradient release, a step computes the gradient of a weight and the steps behind it read it:
 * a term of the norm, or the update. This pass puts them into a loop over strips of the gradient: a
 * strip is computed, read and gone. A strip is contiguous in the gradient and in the weight, its
 * master and its states, and consists of whole runs of the update, so results do not change. The
 * loop is where the last reader was, and the inputs of the gradient live up to there.
 *
 * A gradient stays whole if another step adds to it or reads it, if it is computed in a loop over
 * tokens, if a reader needs the whole matrix (hr_op.split) or has a state outside of the arena, if
 * it is not larger than one strip, or if it is of a layer and does not consist of equal strips:
 * that bounds what strips add to the tables for each layer. */
#ifndef HR_PLAN_STRIPS_H
#define HR_PLAN_STRIPS_H

#include "graph/op.h"

/* Units of a strip of a gradient, of `unit_elements` elements each: whole runs of an update, and a
 * divisor of its units if there is one of a suitable size. `equal`: or no strips. Returns 0 if the
 * gradient stays whole. Pure. */
int64_t hr_strip_units(hr_strips of, int64_t unit_elements, bool equal);

/* Call it after hr_consume. Leaves the loops unsorted.
 *
 * Errors   FAILURE  no room for steps, tensors or loops; scratch too small.
 * Cost     two passes over the program. */
HR_MUST_CHECK hr_status hr_strips_cut(hr_program *program, hr_region *scratch, hr_error *err);

/* Bytes of the largest strip of a gradient; 0: there are none. */
int64_t hr_strips_largest(const hr_program *program);

#endif
