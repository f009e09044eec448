/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/random_strategy.h - random legal strategies by (seed, turn). */
#ifndef HR_TESTS_SUPPORT_RANDOM_STRATEGY_H
#define HR_TESTS_SUPPORT_RANDOM_STRATEGY_H

#include "plan/strategy.h"
#include "support/random_config.h"

/* 0, or tokens: a multiple of 64 if a sequence is one or the micro-batch is one sequence, else
 * whole sequences; up to one unit more than a micro-batch. */
static inline int64_t random_tile(const hr_config *config, uint64_t seed, uint64_t turn,
                                  uint32_t what, int64_t sequences)
{
    const int64_t T = config->train.seq_len, unit = T % 64 && sequences > 1 ? T : 64;
    return unit * between(seed, turn, what, 0, sequences * T / unit + 1);
}

/* Canonical. `recompute_set` [n_layers] is the caller's memory: each layer gets its own set. */
static inline hr_strategy random_strategy(const hr_config *config, uint64_t seed, uint64_t turn,
                                          hr_intermediates *recompute_set)
{
    const bool consume = draw(seed, turn, 45) % 3 == 0;
    int64_t micro = consume ? config->train.batch : between(seed, turn, 40, 1, config->train.batch);
    while (config->train.batch % micro) micro--;
    hr_strategy strategy = { .micro_batch = micro,
                             .loss_chunk = random_tile(config, seed, turn, 41, micro),
                             .mlp_tile = random_tile(config, seed, turn, 42, micro),
                             .attention_tile = between(seed, turn, 43, 0, micro) *
                                               config->train.seq_len,
                             .dw_first = draw(seed, turn, 44) % 2,
                             .consume = consume,
                             .layer_count = (int32_t)config->model.n_layers,
                             .recompute_set = recompute_set };
    for (int32_t l = 0; l < strategy.layer_count; l++)
        recompute_set[l] = (hr_intermediates)(draw(seed, turn, 50 + (uint32_t)l) & UINT16_MAX);
    hr_strategy_canonical(config, &strategy);
    return strategy;
}

#endif
