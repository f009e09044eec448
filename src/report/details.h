/* SPDX-License-Identifier: Apache-2.0 */
/* report/details.h - what a plan is made of: its phases, what is alive at its peak and why, the
 * curve of bytes over a training step. Everything is counted from the plan's storages. */
#ifndef HR_REPORT_DETAILS_H
#define HR_REPORT_DETAILS_H

#include "headroom/plan.h"
#include "plan/compile.h"

/* Fills all but `alone`, removals and changes, which are emptied.
 *
 *   reads    weights come from files
 *   scratch  a few bytes for each step and buffer; given back
 *
 * Errors   FAILURE  scratch too small. */
HR_MUST_CHECK hr_status hr_details(const hr_compiled *compiled, bool reads, hr_region *scratch,
                                   hr_plan_details *details, hr_error *err);

#endif
