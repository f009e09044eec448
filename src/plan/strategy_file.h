/* SPDX-License-Identifier: Apache-2.0 */
/* plan/strategy_file.h - a strategy as YAML, for people and for the key memory.strategy.
 *
 *     micro_batch: 8                      # sequences, or full
 *     loss_chunk: 1024                    # tokens, or full
 *     mlp_tile: 256                       # tokens, or full
 *     attention_tile: full                # tokens, or full
 *     backward_order: weight_grad_first   # or input_grad_first
 *     gradient_release: no
 *     reorder: no
 *     layers:                             # every layer once; values not kept are recomputed
 *       - layers: 0-5
 *         keep: [norm, q, k, v, attention, mlp_input, up, activation]
 *       - layers: 6
 *         keep: []
 *
 * Defaults: tiles are full, the order is weight_grad_first, the rest no. Values that share a buffer
 * are kept together: all of q, k and v or none if one product computes them. */
#ifndef HR_PLAN_STRATEGY_FILE_H
#define HR_PLAN_STRATEGY_FILE_H

#include "base/writer.h"
#include "plan/strategy.h"

/* Appends the YAML text, with a comment for each key. Adjacent layers with equal sets share one
 * entry. Values that the family does not have are omitted. */
void hr_strategy_print(const hr_config *config, const hr_strategy *strategy, hr_writer *writer);

/* Reads and checks a strategy file for a recipe. The result is canonical.
 *
 *   strategy  in: recompute_set [n_layers], overwritten even when the file is refused. out
 *
 * Errors   USAGE  one sentence with path and line: not a strategy file, an unknown key or name, a
 *                 layer missing or listed twice, not legal for the recipe. */
HR_MUST_CHECK hr_status hr_strategy_read(const hr_config *config, const char *path,
                                         hr_strategy *strategy, hr_error *err);

#endif
