/* SPDX-License-Identifier: Apache-2.0 */
/* limits_test.c - the tables of a program have room for every legal strategy of every family, at
 * any number of layers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/checked.h"
#include "ops/cpu.h"
#include "plan/compile.h"
#include "sections/assemble.h"
#include "support/random_strategy.h"

enum { SEED = 2611, TURNS = 40 * HR_COUNT, LAYERS = 64, FEW = 4, THREADS = 2 };

/* The most of a table that a program used, for one layer, and the room for it. */
typedef struct {
    double steps, tensors, loops;
} use;

/* The recipe with the most operations and tensors for each layer: clipping, two moments, half of
 * them with scales, and an average. Half of the cases have fp32, half have dropout where the family
 * has it. */
static bool draw_config(int32_t family, uint64_t turn, hr_config *config)
{
    *config = random_config_of(family, SEED, turn);
    if (turn % 3 == 0) draw_nsa(config, SEED, turn);
    config->model.n_layers = LAYERS;
    config->model.attention.layer_types[0] = 0;
    config->train.optimizer.kind = HR_OPTIMIZER_ADAMW;
    config->train.optimizer.clip = 1;
    config->train.ema_decay = 0.9;
    config->train.state.moments = turn / 4 % 2 ? HR_MOMENTS_INT8 : HR_MOMENTS_FP32;
    config->train.dtype = turn % 2;
    const bool nsa = config->model.attention.kind == HR_ATTENTION_NSA;
    if (family != HR_FAMILY_WIDE && !nsa) config->model.dropout = turn / 2 % 2 ? 0.1 : 0;
    config->memory.spill = turn / 8 % 2 ? HR_SPILL_AUTO : HR_SPILL_NO;
    config->memory.recompute_again = turn % 3 == 0;
    config->memory.product_norm = turn % 5 < 2;
    return hr_config_check(config, NULL) == HR_OK;
}

static use count(const hr_config *config, hr_strategy strategy, hr_intermediates set)
{
    static hr_intermediates sets[LAYERS];
    hr_compiled compiled;
    hr_error err;
    const int64_t bytes = hr_round_up(hr_compile_bytes(config), 64);
    void *memory = aligned_alloc(64, (size_t)bytes);
    hr_region region = hr_region_over(memory, bytes);
    for (int32_t l = 0; l < LAYERS; l++) sets[l] = set;
    strategy.layer_count = (int32_t)config->model.n_layers;
    strategy.recompute_set = sets;
    hr_strategy_canonical(config, &strategy);
    if (hr_compile_floor(config, &hr_cpu_backend, &strategy, THREADS, &region, &compiled, &err) !=
        HR_OK)
        fail_msg("%s", err.message);
    const use counted = { compiled.program.step_count, compiled.program.tensor_count,
                          compiled.program.loop_count };
    free(memory);
    return counted;
}

static void raise(use *most, const use *few, const use *many, const hr_config *config)
{
    hr_config small = *config;
    small.model.n_layers = FEW;
    const hr_model_limits low = hr_model_limits_of(&small), high = hr_model_limits_of(config);
    const double steps = (many->steps - few->steps) / (high.steps - low.steps);
    const double tensors = (many->tensors - few->tensors) / (high.tensors - low.tensors);
    const double loops = (many->loops - few->loops) / (high.loops - low.loops);
    most->steps = steps > most->steps ? steps : most->steps;
    most->tensors = tensors > most->tensors ? tensors : most->tensors;
    most->loops = loops > most->loops ? loops : most->loops;
}

static void tables_have_room_for_every_strategy(void **state)
{
    (void)state;
    print_message("seed %d\n", SEED);
    for (int32_t family = 0; family < HR_FAMILIES; family++) {
        use most = { 0 };
        for (uint64_t turn = 0; turn < TURNS; turn++) {
            hr_config config;
            hr_intermediates drawn[LAYERS];
            if (!draw_config(family, turn, &config)) continue;
            const hr_strategy strategy = random_strategy(&config, SEED + 1, turn, drawn);
            const use many = count(&config, strategy, drawn[0]);
            hr_config small = config;
            small.model.n_layers = FEW;
            const use few = count(&small, strategy, drawn[0]);
            raise(&most, &few, &many, &config);
        }
        print_message("family %d: %.2f of the room for operations of a layer, %.2f for tensors, "
                      "%.2f for loops\n",
                      family, most.steps, most.tensors, most.loops);
        /* Otherwise some number of layers has no room. */
        assert_true(most.steps > 0 && most.steps <= 1);
        assert_true(most.tensors > 0 && most.tensors <= 1);
        assert_true(most.loops > 0 && most.loops <= 1);
    }
}

/* All matrices are large, so that gradient release computes each gradient in strips: a loop and its
 * rest, in the norm and in the step. */
static void tables_have_room_for_strips(void **state)
{
    (void)state;
    for (int32_t family = 0; family < HR_FAMILIES; family++) {
        use most = { 0 };
        int32_t cases = 0;
        for (uint64_t turn = 0; turn < 16; turn++) {
            hr_config config;
            const hr_intermediates set = turn / 2 % 2 ? UINT16_MAX : 0;
            if (!draw_config(family, turn, &config)) continue;
            config.model.n_heads = 5;
            config.model.n_kv_heads = 0;
            config.model.head_dim = 0;
            config.model.d_model = 1280;
            config.model.lif.block = 64; /* divides it */
            config.model.lif.winners = config.model.lif.synapses = 16;
            config.model.d_ff = 2 * 1280;
            if (family == HR_FAMILY_WIDE) config.model.expansion = 2 * 1280;
            config.model.decoder_rank = 0;
            config.model.vocab_size = 2061;
            config.train.state.moments = turn % 4 < 2 ? HR_MOMENTS_INT8 : HR_MOMENTS_FP32;
            hr_error err;
            if (hr_config_check(&config, &err) != HR_OK) fail_msg("%s", err.message);
            const bool tiled = turn / 4 % 2, mlp = turn / 8;
            const hr_strategy strategy = { .consume = true,
                                           .dw_first = mlp,
                                           .mlp_tile = tiled && mlp ? config.train.seq_len : 0,
                                           .attention_tile = tiled && !mlp ? config.train.seq_len
                                                                           : 0 };
            const use many = count(&config, strategy, set);
            hr_config small = config;
            small.model.n_layers = FEW;
            const use few = count(&small, strategy, set);
            raise(&most, &few, &many, &config);
            cases++;
        }
        print_message("family %d: %.2f of the room for operations of a layer, %.2f for tensors, "
                      "%.2f for loops\n",
                      family, most.steps, most.tensors, most.loops);
        assert_true(cases > 0 && most.loops > 0);
        assert_true(most.steps <= 1 && most.tensors <= 1 && most.loops <= 1);
    }
}

/* Pieces of updates grow with the model, so the counts of the largest legal one have 32 bits. */
static void the_largest_model_with_its_moments_in_a_file_has_bounded_tables(void **state)
{
    hr_config config;
    (void)state;
    hr_config_default(&config);
    config.model.family = HR_FAMILY_LLAMA;
    config.model.n_layers = 4096;
    config.model.d_model = config.model.d_ff = 1 << 20;
    config.model.n_heads = 1 << 13;
    config.model.vocab_size = 1 << 20;
    config.memory.moments = HR_PLACE_FILE;
    const hr_model_limits limits = hr_model_limits_of(&config);
    assert_true(limits.steps > 4096 * 7 && limits.steps < 1 << 25);
    assert_true(limits.tensors > 4096 * 7 && limits.tensors < 1 << 26);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_have_room_for_every_strategy),
        cmocka_unit_test(tables_have_room_for_strips),
        cmocka_unit_test(the_largest_model_with_its_moments_in_a_file_has_bounded_tables)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
