/* SPDX-License-Identifier: Apache-2.0 */
/* train/remove.h - what would take bytes from a plan, and at what price in time.
 *
 * Each removal is one change of the plan's strategy, built and packed for real. */
#ifndef HR_TRAIN_REMOVE_H
#define HR_TRAIN_REMOVE_H

#include "train/admit.h"

/* Fills details->removals, those that pay least time for a byte first. The admitted plan is built
 * again afterwards.
 *
 * Errors   FAILURE  no room. As compiling. */
HR_MUST_CHECK hr_status hr_remove(hr_memory *memory, hr_admission *admission,
                                  hr_plan_details *details, hr_error *err);

#endif
