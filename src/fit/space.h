/* SPDX-License-Identifier: Apache-2.0 */
/* fit/space.h - the strategies that a recipe leaves open.
 *
 * A strategy is the knobs of the whole step and, layer by layer, what is kept. The knobs are listed
 * here; a key that the recipe sets leaves one value. */
#ifndef HR_FIT_SPACE_H
#define HR_FIT_SPACE_H

#include "headroom/config.h"
#include "model/layer_schema.h"
#include "plan/strategy.h"

enum {
    HR_FIT_MICROS_MOST = 512, /* divisors of a batch: 448 at most below 2^31 */
    HR_FIT_CHUNKS_MOST = 10,
    HR_FIT_TILES_MOST = 8,
    HR_FIT_PARTS_MOST = 9,
    HR_FIT_SETS_MOST = 1 << HR_FIT_PARTS_MOST
};

/* Sequences a turn, the largest first; the whole batch is the batch. Returns how many. */
int32_t hr_fit_micros(const hr_config *config, int64_t micros[HR_FIT_MICROS_MOST]);

/* For micro-batches of so many sequences, the largest first and 0, no cut, before them. Where T is
 * a multiple of 64, tokens are; else they are whole sequences. */
int32_t hr_fit_chunks(const hr_config *config, int64_t micro, int64_t chunks[HR_FIT_CHUNKS_MOST]);
int32_t hr_fit_mlp_tiles(const hr_config *config, int64_t micro, int64_t tiles[HR_FIT_TILES_MOST]);
int32_t hr_fit_attention_tiles(const hr_config *config, int64_t micro,
                               int64_t tiles[HR_FIT_TILES_MOST]);

/* Closed sets of intermediates to compute again: nothing first, everything last. Returns how many;
 * one where the recipe says which. */
int32_t hr_fit_sets(const hr_config *config, const hr_layer_schema *form,
                    hr_intermediates sets[HR_FIT_SETS_MOST]);

#endif
