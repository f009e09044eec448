/* SPDX-License-Identifier: Apache-2.0 */
/* plan/defer.h - gradients that are computed after their norm is known: gradient release in one
 * pass, where terms of the norm read the operands of products and not gradients (hr_op.measures).
 *
 * The step that computes such a gradient moves from the section "step" in front of the first step
 * of the section "update" that reads it, which is its update. Its other outputs, such as the
 * gradient of a bias, stay where they were. The term of the norm then reads what this step reads,
 * after all passes that recompute values. A gradient that is computed in a loop over tokens stays
 * there, and so do gradients whose terms read them. */
#ifndef HR_PLAN_DEFER_H
#define HR_PLAN_DEFER_H

#include "graph/program.h"

/* Whether a program has terms of the norm that read no gradient. */
bool hr_defers(const hr_program *program);

/* Call it after tiling. Leaves the loops unsorted.
 *
 * Errors   FAILURE  scratch too small, or no room for steps.
 * Cost     a pass over the program for each gradient. */
HR_MUST_CHECK hr_status hr_defer(hr_program *program, hr_region *scratch, hr_error *err);

#endif
