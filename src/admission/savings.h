/* SPDX-License-Identifier: Apache-2.0 */
/* admission/savings.h - what the smallest plan of a refused recipe already does to need no more. */
#ifndef HR_ADMISSION_SAVINGS_H
#define HR_ADMISSION_SAVINGS_H

#include "admission/admit.h"

/* Fills details->used: each choice of the admitted strategy that saves memory, with the bytes that
 * the same plan takes more without it. Fills details->whole_bytes and whole_largest, of the plan
 * without all of them. A choice that the recipe makes itself stays. Each is built up to its floor.
 * Overwrites the admitted plan. Beyond a limit of counted work only the latter is built. */
void hr_savings_find(const hr_admission_machine *machine, const hr_config *recipe,
                     hr_admission *admission, hr_plan_details *details);

#endif
