/* SPDX-License-Identifier: Apache-2.0 */
/* admission/remove.h - finds changes that reduce the bytes of a plan, and what each costs in time.
 *
 * Each removal is one change of the plan's strategy, built and packed. */
#ifndef HR_ADMISSION_REMOVE_H
#define HR_ADMISSION_REMOVE_H

#include "admission/admit.h"

/* Fills details->removals, least time per saved byte first. Rebuilds the admitted plan afterwards.
 *
 * Errors   FAILURE  too little memory. Otherwise as hr_admit_strategy. */
HR_MUST_CHECK hr_status hr_remove(const hr_admission_machine *machine, hr_admission *admission,
                                  hr_plan_details *details, hr_error *err);

#endif
