/* SPDX-License-Identifier: Apache-2.0 */
/* prove/proof_recipe.h - what the proofs of a recipe are run on: the recipe itself if its reference
 * fits, else a smaller one; its data, or random tokens. */
#ifndef HR_PROVE_PROOF_RECIPE_H
#define HR_PROVE_PROOF_RECIPE_H

#include "prove/prover.h"

/* Sets prover->base, threads and steps, and the first lines of the report.
 *
 *   seconds  out: predicted time of a step of the reference
 *
 * Errors   NO_FIT  no reference fits, however small. As hr_plan_make, hr_train. */
HR_MUST_CHECK hr_status hr_proof_recipe_choose(hr_prover *prover, double *seconds, hr_error *err);

#endif
