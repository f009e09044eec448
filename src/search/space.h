/* SPDX-License-Identifier: Apache-2.0 */
/* search/space.h - lists the strategies that a recipe leaves open.
 *
 * A strategy is the knobs of the whole step and the recompute set of every layer. This file lists
 * the values of the knobs. A key that the recipe sets leaves one value. */
#ifndef HR_SEARCH_SPACE_H
#define HR_SEARCH_SPACE_H

#include "headroom/config.h"
#include "model/layer_schema.h"
#include "plan/strategy.h"

enum {
    HR_FIT_MICROS_MOST = 512, /* a batch below 2^31 has at most 448 divisors */
    HR_FIT_CHUNKS_MOST = 10,
    HR_FIT_TILES_MOST = 8,
    HR_FIT_PARTS_MOST = 10,
    HR_FIT_SETS_MOST = 1 << HR_FIT_PARTS_MOST
};

/* Lists micro-batch sizes in sequences, largest first; the first is the whole batch. Returns how
 * many. */
int32_t hr_fit_micros(const hr_config *config, int64_t micros[HR_FIT_MICROS_MOST]);

/* Lists loss chunks and tiles for a micro-batch of `micro` sequences: first 0 (no chunks or
 * tiles), then sizes from large to small, in tokens: multiples of hr_strategy_unit; of attention
 * tiles whole sequences. Returns how many. */
int32_t hr_fit_chunks(const hr_config *config, int64_t micro, int64_t chunks[HR_FIT_CHUNKS_MOST]);
int32_t hr_fit_mlp_tiles(const hr_config *config, int64_t micro, int64_t tiles[HR_FIT_TILES_MOST]);
int32_t hr_fit_attention_tiles(const hr_config *config, int64_t micro,
                               int64_t tiles[HR_FIT_TILES_MOST]);

/* Lists the sets of intermediates to recompute: first nothing, last everything. Returns how
 * many: if the recipe sets memory.recompute one, or with memory.spill=auto two. */
int32_t hr_fit_sets(const hr_config *config, const hr_layer_schema *form,
                    hr_intermediates sets[HR_FIT_SETS_MOST]);

#endif
