/* SPDX-License-Identifier: Apache-2.0 */
/* train/refuse.h - what to change when nothing fits.
 *
 * Every change was planned with all that the recipe leaves open: the bytes beside it are those of
 * the smallest plan there is with it, the time that of the fastest within the bytes available. */
#ifndef HR_TRAIN_REFUSE_H
#define HR_TRAIN_REFUSE_H

#include "train/admit.h"

/* Fills details->alone and details->changes: what would make the run fit, cheapest first. First
 * come changes that leave the mathematics alone, by the time they take; then the others, from the
 * rounding of numbers to the size of the model. Changes of one key; where none does, of two.
 *
 *   admission     a refused one, whose own plan is overwritten
 *   calibrations  as for hr_admit
 *   details       in: as hr_details left it. out
 *
 * Cost     some forty plans at most, each the smallest of a recipe */
void hr_refuse(hr_memory *memory, const hr_config *config, const char *calibrations,
               hr_admission *admission, hr_plan_details *details);

#endif
