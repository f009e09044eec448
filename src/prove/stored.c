/* SPDX-License-Identifier: Apache-2.0 */
/* prove/stored.c - frozen weights that are stored in a narrow format against the same numbers,
 * dequantized before the run. */
#include <stdio.h>

#include "graph/weight_format.h"
#include "prove/proofs.h"

hr_status hr_stored_prepare(hr_prover *prover, hr_proof *proof, bool *applies, hr_error *err)
{
    const hr_weight_format *format = hr_weight_format_of(hr_config_weights(&prover->base));
    *applies = false;
    if (format->trains) {
        (void)hr_proof_declines(proof,
                                "no weights are stored in another format (model.weights=f16, "
                                "bf16 or f8_e4m3, with train.freeze)");
        return HR_OK;
    }
    *applies = true;
    snprintf(proof->compared, sizeof proof->compared,
             "frozen weights stored as %s = the same weights dequantized", format->name);
    return hr_prover_use(prover, &prover->whole, &prover->variant, err);
}

/* The second run reads the weights that the first has loaded, dequantized one by one. */
hr_status hr_stored_run(hr_prover *prover, hr_proof *proof, hr_error *err)
{
    hr_values *values = &prover->values;
    (void)proof;
    values->count = 0;
    values->from = NULL;
    hr_status status = hr_prover_trace(prover, &prover->variant, &prover->own, prover->steps, true,
                                       values, err);
    if (status != HR_OK) return status;
    prover->variant.model.weights = HR_WEIGHTS_COMPUTE;
    *prover->variant.model.from = 0;
    return hr_prover_compare(prover, &prover->variant, &prover->own, 0, values, err);
}
