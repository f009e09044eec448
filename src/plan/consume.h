/* SPDX-License-Identifier: Apache-2.0 */
/* plan/consume.h - updates that consume a gradient as soon as it is complete.
 *
 * Each step of the section "update" that reads a gradient moves into the section "step", right
 * after the last step there that touches anything of its own: for an update that is the last read
 * of the weight or the last write of the gradient, for a share of the norm the latter. It moves out
 * to the end of the outermost loop that stands there, since no loop around an update may turn
 * again. Weights that are used twice fall behind their last use by themselves.
 *
 * Where no update needs a number that all gradients make, that is all; the sections stay, and a
 * report that stood before the first update is made in the step too, with as much as is known
 * before the first weight changes: the loss. Where updates are scaled by the norm of all gradients,
 * that must come first: the section "update" becomes a section "norm" before the step. It is the
 * step over again, in the same order and loops, with copies of all that the step writes; its
 * gradients are squared, summed and gone. */
#ifndef HR_PLAN_CONSUME_H
#define HR_PLAN_CONSUME_H

#include "graph/program.h"

/* Of a program whose cuts are made, none of the whole section. Loops are left in no order. Without
 * the two sections nothing is done.
 * Errors   FAILURE  no room for steps, tensors or loops; scratch too small.
 * Cost     two walks over the program. */
HR_MUST_CHECK hr_status hr_consume(hr_program *program, hr_region *scratch, hr_error *err);

#endif
