/* SPDX-License-Identifier: Apache-2.0 */
/* search/proxy_bounds.h - bounds on the work of recompute sets that have no proxy model, from the
 * proxy model that recomputes nothing. */
#ifndef HR_SEARCH_PROXY_BOUNDS_H
#define HR_SEARCH_PROXY_BOUNDS_H

#include "plan/plan.h"
#include "search/proxy_cache.h"

/* Too large for the stack. */
typedef struct {
    hr_proxy_works most;
    int64_t alive[HR_FIT_SETS_MOST]; /* scratch: at one step, with each set */
} hr_proxy_bounds;

/* Computes lower bounds on the work of all sets from the program of sets[0], which recomputes
 * nothing.
 *
 *   alive  [program->step_count] live bytes at each step
 *   list   [plan->buffer_count] scratch
 *   tiled  with tiles a recomputed value may share bytes, so it is not counted
 *   bounds out: the bounds of sets 1 to count - 1 */
void hr_proxy_bound_works(const hr_proxy_model *proxy, const hr_program *program,
                          const hr_plan *plan, const int64_t *alive, int32_t *list, bool tiled,
                          const hr_proxy_set *sets, int32_t count, hr_proxy_bounds *bounds);

/* True if backward reads the tensor, or if all its forward readers make values that are
 * recomputed together with it. */
bool hr_proxy_is_independent(const hr_program *program, int32_t tensor);

#endif
