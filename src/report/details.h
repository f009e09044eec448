/* SPDX-License-Identifier: Apache-2.0 */
/* report/details.h - the contents of a plan: its phases, the live bytes at its peak by component,
 * and live bytes over a training step. Everything is counted from the storages of the plan. */
#ifndef HR_REPORT_DETAILS_H
#define HR_REPORT_DETAILS_H

#include "headroom/plan.h"
#include "plan/plan.h"

/* Fills in all fields; `alone`, removals and changes become empty.
 *
 *   scratch  a few bytes per step and buffer; restored
 *
 * Errors   FAILURE  scratch is too small. */
HR_MUST_CHECK hr_status hr_details(const hr_config *config, const hr_program *program,
                                   const hr_plan *plan, hr_region *scratch,
                                   hr_plan_details *details, hr_error *err);

/* The first and the last operation of a training step: fetch, forward, backward, update. */
void hr_details_step(const hr_program *program, int32_t *first, int32_t *last);

#endif
