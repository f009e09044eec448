/* SPDX-License-Identifier: Apache-2.0 */
/* prove/prove.h - the proofs of a recipe, with a fault for tests. */
#ifndef HR_PROVE_PROVE_H
#define HR_PROVE_PROVE_H

#include "prove/prover.h"

/* As hr_prove.
 *
 *   fault  null: none. Else the compared run of one proof is changed, so that the proof must
 *          fail */
HR_MUST_CHECK hr_status hr_prove_with(const hr_config *config, const hr_prove_options *options,
                                      const hr_prove_fault *fault, hr_prove_report *report,
                                      hr_error *err);

#endif
