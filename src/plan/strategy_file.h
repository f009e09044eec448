/* SPDX-License-Identifier: Apache-2.0 */
/* plan/strategy_file.h - a strategy as YAML, for people and for the key memory.strategy.
 *
 *     micro_batch: 8          # sequences, or whole
 *     loss_chunk: 1024        # tokens, or whole
 *     mlp_tile: 256           # tokens, or whole
 *     attention_tile: whole   # sequences, or whole
 *     order: dw_first         # or dx_first
 *     layers:                 # every layer once; values that are not kept are recomputed
 *       - layers: 0-5
 *         keep: [norm, q, k, v, attention, mid, up, activation]
 *       - layers: 6
 *         keep: []
 *
 * Defaults: a tile is whole, the order dw_first. Values that share a buffer are kept together: all
 * of q, k and v or none if one product computes them. */
#ifndef HR_PLAN_STRATEGY_FILE_H
#define HR_PLAN_STRATEGY_FILE_H

#include "base/writer.h"
#include "plan/strategy.h"

/* Appends the YAML text. Adjacent layers with equal sets share one entry. Values that the family
 * does not have are omitted. */
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
