/* SPDX-License-Identifier: Apache-2.0 */
/* admission/refuse.h - suggests changes to a recipe that does not fit.
 *
 * Every change is planned with all settings that the recipe leaves open. Its bytes are those of the
 * smallest plan with the change, its time that of the fastest plan within the available bytes. */
#ifndef HR_ADMISSION_REFUSE_H
#define HR_ADMISSION_REFUSE_H

#include "admission/admit.h"

/* Fills details->alone, parts that are too large on their own, and details->changes, changes that
 * make the run fit, cheapest first. Changes that preserve the mathematics come first, sorted by
 * time; then the others, from rounding to the size of the model. A change sets one key, or two if
 * no single key is enough.
 *
 *   admission  a refused one; its plan is overwritten
 *   details    in: as filled by hr_details. out
 *
 * Cost     about forty plans at most, each the smallest of a recipe */
void hr_refuse(const hr_admission_machine *machine, const hr_config *config,
               hr_admission *admission, hr_plan_details *details);

#endif
