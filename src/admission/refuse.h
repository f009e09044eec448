/* SPDX-License-Identifier: Apache-2.0 */
/* admission/refuse.h - ranks the changes to a recipe that does not fit.
 *
 * Every change is planned with all settings that the recipe leaves open. Its bytes are those of the
 * smallest plan with the change, its time that of the fastest plan within the available bytes. */
#ifndef HR_ADMISSION_REFUSE_H
#define HR_ADMISSION_REFUSE_H

#include "admission/changes.h"

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

/* ---- one change for each of several devices */

/* The cheapest change with which a refused recipe fits: the first of hr_refuse.
 *
 *   admission  a refused one; its plan is overwritten, its region may be another one afterwards
 *   config     in: the recipe. out: with the change, if one was found
 *   change     out: the change; or if none was found the one that needs the least bytes of those
 *              that were tried. bytes 0: none was tried
 *
 * Returns whether one was found. *complete: whether the limit of work, which holds for all calls
 * with a memo together, left none untried. */
bool hr_refuse_cheapest(const hr_admission_machine *machine, hr_config *config,
                        hr_admission *admission, hr_change_memo *memo, hr_plan_change *change,
                        bool *complete);

#endif
