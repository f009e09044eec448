/* SPDX-License-Identifier: Apache-2.0 */
/* prove/proofs.h - the table of proofs. A proof is a row: a name, when it applies, and its runs.
 *
 * To add one: a row in proofs.c, functions in a file of its own if it has its own two runs, and a
 * line in docs/proving.md. */
#ifndef HR_PROVE_PROOFS_H
#define HR_PROVE_PROOFS_H

#include "prove/prover.h"

typedef struct hr_proof_kind {
    const char *name, *text;

    /* Whether the recipe has what is proven. Sets proof->compared, or proof->reason if not, and
     * leaves the run to compare in prover->variant. Errors as hr_plan_make. */
    hr_status (*prepare)(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err);

    /* Its runs. What was found is in prover->tracer. Null: one run of prover->variant, compared
     * with the reference. */
    hr_status (*run)(hr_prover *prover, hr_proof *proof, hr_error *err);

    /* For kinds that change only the strategy: the change; see change_* in proofs.c. */
    bool (*change)(const hr_prover *prover, hr_strategy *strategy, hr_proof *proof);

    int32_t runs; /* beside the reference */
    bool has_own; /* the proof does not need the reference */
} hr_proof_kind;

/* Row `index`, null past the last one. */
const hr_proof_kind *hr_proof_kind_at(int32_t index);

/* Prepares and runs a proof of sparse attention (pattern.c), of a factorized matrix (factors.c), of
 * stored weights (stored.c). */
hr_status hr_pattern_prepare(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err);
hr_status hr_pattern_run(hr_prover *prover, hr_proof *proof, hr_error *err);

/* Native sparse attention against dense attention with explicit masks, and where it selects every
 * block against dense attention. */
hr_status hr_nsa_prepare(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err);
hr_status hr_nsa_run(hr_prover *prover, hr_proof *proof, hr_error *err);
hr_status hr_factors_prepare(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err);
hr_status hr_factors_run(hr_prover *prover, hr_proof *proof, hr_error *err);
hr_status hr_adapters_prepare(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err);
hr_status hr_adapters_run(hr_prover *prover, hr_proof *proof, hr_error *err);
hr_status hr_modulated_prepare(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err);
hr_status hr_modulated_run(hr_prover *prover, hr_proof *proof, hr_error *err);
hr_status hr_stored_prepare(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err);
hr_status hr_stored_run(hr_prover *prover, hr_proof *proof, hr_error *err);

#endif
