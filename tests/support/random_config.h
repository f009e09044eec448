/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/random_config.h - small random recipes, a function of (seed, turn). */
#ifndef HR_TESTS_SUPPORT_RANDOM_CONFIG_H
#define HR_TESTS_SUPPORT_RANDOM_CONFIG_H

#include <stdio.h>

#include "base/random.h"
#include "config/config.h"
#include "model/family.h"

/* A random number for the choice `what` in case `turn`. */
static inline uint32_t draw(uint64_t seed, uint64_t turn, uint32_t what)
{
    const hr_random_row row = hr_random_row_of(hr_random_stream_of(seed, turn, 0, 0), 0, 0);
    return hr_random_element(&row, what);
}

static inline int64_t between(uint64_t seed, uint64_t turn, uint32_t what, int64_t low,
                              int64_t high)
{
    return low + draw(seed, turn, what) % (high - low + 1);
}

/* A number of layers, not below that of the types which the recipe lists. */
static inline int64_t draw_layers(const hr_config *config, uint64_t seed, uint64_t turn,
                                  uint32_t what, int64_t most)
{
    return between(seed, turn, what, *config->model.attention.layer_types ? 2 : 1, most);
}

/* Changes a recipe of a family that has it to native sparse attention, and what does not go with
 * that. */
static inline void draw_nsa(hr_config *config, uint64_t seed, uint64_t turn)
{
    if (!(hr_family_of(config)->traits & HR_SELECTS_KEYS)) return;
    const int64_t stride = 1LL << between(seed, turn, 94, 1, 3);
    config->model.attention.kind = HR_ATTENTION_NSA;
    config->model.attention.pattern = 0;
    config->model.attention.sliding_window = 0;
    config->model.attention.layer_types[0] = 0;
    config->model.dropout = 0;
    config->data.documents = 0;
    config->train.sample_tokens = 0;
    config->model.attention.nsa.compress_stride = stride;
    config->model.attention.nsa.compress_block = stride * between(seed, turn, 95, 1, 2);
    config->model.attention.nsa.compress_hidden = between(seed, turn, 96, 0, 9);
    config->model.attention.nsa.select_block = 8LL << between(seed, turn, 97, 0, 2);
    config->model.attention.nsa.select_first = between(seed, turn, 98, 0, 2);
    config->model.attention.nsa.select_count = 2 + between(seed, turn, 99, 2, 6);
    config->model.attention.nsa.window = between(seed, turn, 100, 1, 90);
    config->model.attention.nsa.own_keys = config->model.family != HR_FAMILY_QWEN3 &&
                                           draw(seed, turn, 101) % 2;
    if (draw(seed, turn, 102) % 3 == 0)
        snprintf(config->model.attention.nsa.branches, sizeof config->model.attention.nsa.branches,
                 "selected, window");
    if (config->train.seq_len < config->model.attention.nsa.compress_block)
        config->train.seq_len = config->model.attention.nsa.compress_block;
}

/* A small recipe of a family that passes hr_config_check, with random patterns, dtypes and
 * optimizers. */
static inline hr_config random_config_of(int32_t family, uint64_t seed, uint64_t turn)
{
    hr_config config;
    hr_config_default(&config);
    config.model.family = family;
    config.model.n_heads = between(seed, turn, 1, 1, 4);
    config.model.d_model = config.model.n_heads * 8 * between(seed, turn, 2, 1, 4);
    config.model.n_layers = between(seed, turn, 3, 1, 4);
    config.model.d_ff = between(seed, turn, 4, 1, 200);
    config.model.vocab_size = between(seed, turn, 5, 5, 700);
    config.model.dropout = draw(seed, turn, 6) % 2 ? 0.1 : 0;
    config.model.parallel_residual = draw(seed, turn, 7) % 2;
    config.model.attention.pattern = (int32_t)between(seed, turn, 8, 0, 3);
    const uint32_t traits = hr_family_of(&config)->traits;
    if (traits & HR_READS_GROUPS) {
        const int64_t shared = between(seed, turn, 16, 1, config.model.n_heads);
        config.model.n_kv_heads = config.model.n_heads % shared ? 0 : shared;
        config.model.head_dim = draw(seed, turn, 17) % 3 ? 0 : 2 * between(seed, turn, 18, 1, 20);
        config.model.rope_scaling.kind = (int32_t)between(seed, turn, 19, 0, 2);
        if (traits & HR_SLIDES && config.model.attention.pattern == 0 && draw(seed, turn, 20) % 2)
            config.model.attention.sliding_window = between(seed, turn, 21, 1, 210);
    }
    if (family == HR_FAMILY_GPT_NEO && config.model.attention.pattern == 0)
        config.model.attention.sliding_window = between(seed, turn, 21, 0, 210);
    if (traits & HR_MIXES_ATTENTION && config.model.attention.sliding_window &&
        config.model.n_layers > 1)
        snprintf(config.model.attention.layer_types, sizeof config.model.attention.layer_types,
                 "%s",
                 (const char *[]){ "", "full sliding", "sliding full" }[draw(seed, turn, 90) % 3]);
    if (traits & HR_READS_RANK) config.model.embedding_rank = between(seed, turn, 23, 1, 40);
    if (traits & HR_MAY_TIE) config.model.tie_embeddings = (int32_t)between(seed, turn, 24, 0, 2);
    if (traits & HR_READS_EXPANSION) {
        config.model.expansion = between(seed, turn, 25, 1, 300);
        config.model.decoder_rank = draw(seed, turn, 26) % 2 ? between(seed, turn, 27, 1, 40) : 0;
    }
    if (traits & HR_HAS_STATES && draw(seed, turn, 93) % 2) {
        config.model.trunk = HR_TRUNK_LIF;
        config.model.lif.block = 16 * between(seed, turn, 94, 1, 3);
        config.model.d_model = config.model.lif.block * between(seed, turn, 95, 1, 3);
        config.model.lif.winners = between(seed, turn, 96, 1, config.model.lif.block);
        config.model.lif.synapses = between(seed, turn, 97, 1, config.model.lif.block - 1);
    }
    if (traits & HR_HAS_STATES) {
        config.model.dropout = 0;
        config.model.attention.pattern = 0;
    }
    snprintf(config.data.tokenizer, sizeof config.data.tokenizer, "words");
    if (!(traits & HR_HAS_STATES)) config.data.documents = (int32_t)between(seed, turn, 29, 0, 1);
    config.train.dtype = (int32_t)between(seed, turn, 9, 0, HR_FORMAT_FP16);
    config.train.optimizer.kind = (int32_t)between(seed, turn, 10, 0, HR_OPTIMIZERS - 1);
    if (config.train.optimizer.kind != HR_OPTIMIZER_ADAFACTOR && draw(seed, turn, 91) % 2)
        config.train.state.moments = (int32_t)between(seed, turn, 92, 1, 2);
    config.train.batch = 2 * between(seed, turn, 11, 1, 6);
    config.train.seq_len = between(seed, turn, 12, 4, 200);
    if (traits & HR_LEARNS_POSITIONS) config.model.positions = 2048 + between(seed, turn, 22, 0, 9);
    config.train.z_loss = draw(seed, turn, 28) % 3 ? 0 : 1e-3;
    config.train.ema_decay = draw(seed, turn, 41) % 3 ? 0 : 0.9;
    config.memory.recompute = (int32_t)between(seed, turn, 15, 0, 3);
    config.train.sample_tokens = between(seed, turn, 13, 0, 4);
    snprintf(config.train.out, sizeof config.train.out, "%s",
             draw(seed, turn, 14) % 2 ? "out" : "");
    return config;
}

static inline hr_config random_config(uint64_t seed, uint64_t turn)
{
    return random_config_of((int32_t)between(seed, turn, 0, 0, HR_FAMILIES - 1), seed, turn);
}

#endif
