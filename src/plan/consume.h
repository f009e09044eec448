/* SPDX-License-Identifier: Apache-2.0 */
/* plan/consume.h - gradient release: updates that read a gradient as soon as it is complete.
 *
 * Each step of the section "update" that reads a gradient moves into the section "step". It goes
 * directly behind the last step there that touches one of its operands: for an update, the last
 * read of the weight or the last write of the gradient; for a term of the gradient norm, the last
 * write of the gradient. It moves out of all loops at that place, since an update must run once.
 * The update of a weight that is used twice therefore comes after the last use.
 *
 * Without a value that depends on all gradients, nothing else changes. The sections remain, and a
 * report that preceded the first update moves too, with the values known before the first weight
 * changes: the loss. When the norm of all gradients scales the updates, the norm must be computed
 * first: the section "update" becomes a section "norm" before the step. It repeats the step in the
 * same order and loops, on copies of all tensors that the step writes, and only squares and sums
 * the gradients. */
#ifndef HR_PLAN_CONSUME_H
#define HR_PLAN_CONSUME_H

#include "graph/program.h"

/* Call it after tiling, on a program without a loop over the whole section (micro-batches). Leaves
 * the loops unsorted. Does nothing if one of the two sections is missing.
 *
 * Errors   FAILURE  no room for steps, tensors or loops; scratch too small.
 * Cost     two passes over the program. */
HR_MUST_CHECK hr_status hr_consume(hr_program *program, hr_region *scratch, hr_error *err);

#endif
