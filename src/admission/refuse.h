/* SPDX-License-Identifier: Apache-2.0 */
/* admission/refuse.h - ranks the changes to a recipe that does not fit.
 *
 * Every change is planned with all settings that the recipe leaves open. Its bytes are those of the
 * smallest plan with the change, its time that of the fastest plan within the available bytes. */
#ifndef HR_ADMISSION_REFUSE_H
#define HR_ADMISSION_REFUSE_H

#include "admission/admit.h"

/* Fills what the details of a refusal have: a part that is too large on its own (alone), what the
 * smallest plan does already (admission/savings.h), changes that make the run fit (changes), and
 * those that are not enough alone (partial). Changes are levers (admission/levers.h), sorted by
 * what they give up, then by time: those that preserve the mathematics first. A change sets one
 * key, or several if no key alone is enough, or only one that costs more.
 *
 *   admission  a refused one; its plan is overwritten
 *   details    in: as filled by hr_details. out
 *
 * Cost     about fifty plans, most of them the smallest of a recipe; limited by counted work */
void hr_refuse(const hr_admission_machine *machine, const hr_config *config,
               hr_admission *admission, hr_plan_details *details);

#endif
