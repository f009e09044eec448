/* SPDX-License-Identifier: Apache-2.0 */
/* plan/strategy_file.h - a strategy as YAML, for people and to be given back (memory.strategy).
 *
 *     micro_batch: 8          # sequences, or whole
 *     loss_chunk: 1024        # tokens, or whole
 *     mlp_tile: 256           # tokens, or whole
 *     attention_tile: whole   # sequences, or whole
 *     order: dw_first         # or dx_first
 *     layers:                 # every layer once; what is not kept is computed again
 *       - layers: 0-5
 *         keep: [norm, q, k, v, attention, mid, up, activation]
 *       - layers: 6
 *         keep: []
 *
 * A cut that is left out is whole, an order dw_first. What one buffer holds is kept together: where
 * one product makes q, k and v, all three or none. */
#ifndef HR_PLAN_STRATEGY_FILE_H
#define HR_PLAN_STRATEGY_FILE_H

#include "base/writer.h"
#include "plan/strategy.h"

/* Appends it; neighbours with one set are one entry. What the family does not have is not named. */
void hr_strategy_print(const hr_config *config, const hr_strategy *strategy, hr_writer *writer);

/* Reads and checks a file for a recipe; canonical.
 *
 *   strategy  in: dropped [n_layers], which is written even when the file is refused. out
 *
 * Errors   USAGE  one sentence with path and line: not such a file, a key or a name that is not
 *                 known, layers not covered or twice, not legal for the recipe. */
HR_MUST_CHECK hr_status hr_strategy_read(const hr_config *config, const char *path,
                                         hr_strategy *strategy, hr_error *err);

#endif
