/* SPDX-License-Identifier: Apache-2.0 */
/* bench/plan_bench.c - CPU milliseconds of each planning stage, by number of layers and by tiling.
 * Best of several rounds, one core, reusing the same memory.
 *
 *     plan_bench [rounds] [layers ...] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/cpu.h"
#include "plain.h"
#include "plan/compile.h"
#include "plan/lifetimes.h"
#include "plan/pack/pack.h"
#include "plan/strategy.h"
#include "sections/assemble.h"

enum { T = 4096, BATCH = 8, LOSS_CHUNK = 512, MLP_TILE = 256, LAYERS_MOST = 1024 };

typedef enum { BUILD, PASSES, LIVES, FLOOR, PACK, STAGES } stage;
typedef enum { WHOLE, MICRO, CHUNKS, TILES, CHOICES } choice;

static const char *const choice_names[CHOICES] = { "no tile", "micro-batch", "+ loss chunk",
                                                   "+ tiles in layers" };

typedef struct {
    void *memory;
    hr_region region;
    hr_program program;
    hr_plan plan;
    hr_pack_result packing;
    double seconds[STAGES];
    double last;
} bench;

/* Ends a stage and starts the next. */
static void lap(bench *b, stage which)
{
    const double time = now();
    if (b->seconds[which] == 0 || time - b->last < b->seconds[which])
        b->seconds[which] = time - b->last;
    b->last = now();
}

static void set(hr_config *config, const char *key, const char *value)
{
    hr_error err;
    must(hr_config_set(config, key, value, &err), &err);
}

static hr_config deep(const char *layers)
{
    hr_config config;
    hr_error err;
    hr_config_default(&config);
    set(&config, "model.family", "gpt_neox");
    set(&config, "model.d_model", "4096");
    set(&config, "model.n_heads", "32");
    set(&config, "model.d_ff", "16384");
    set(&config, "model.vocab_size", "50304");
    set(&config, "model.n_layers", layers);
    set(&config, "train.dtype", "bf16");
    set(&config, "train.batch", "8");
    set(&config, "train.seq_len", "4096");
    must(hr_config_check(&config, &err), &err);
    return config;
}

/* Choices from micro-batches on recompute norms; those with tiled layers recompute everything
 * possible. */
static hr_strategy strategy_of(const hr_config *config, choice how, hr_intermediates *recompute_set)
{
    hr_strategy s = hr_strategy_of(config, BATCH, recompute_set);
    const hr_intermediates norms = 1u << HR_INTERMEDIATE_NORM;
    for (int32_t l = 0; l < s.layer_count; l++)
        recompute_set[l] = how >= TILES ? UINT16_MAX : how ? norms : 0;
    s.micro_batch = how >= TILES ? 2 : how >= MICRO ? 1 : 0;
    s.loss_chunk = how >= CHUNKS ? LOSS_CHUNK : 0;
    s.mlp_tile = how >= TILES ? MLP_TILE : 0;
    s.attention_tile = how >= TILES ? config->train.seq_len : 0;
    hr_strategy_canonical(config, &s);
    return s;
}

static void plan_once(bench *b, const hr_config *config, choice how)
{
    hr_error err;
    static hr_intermediates recompute_set[LAYERS_MOST];
    const hr_strategy strategy = strategy_of(config, how, recompute_set);
    b->region.used = 0;
    b->last = now();
    must(hr_model_assemble(config, &hr_cpu_backend, BATCH, &b->region, &b->program, &err), &err);
    lap(b, BUILD);
    must(hr_strategy_apply(&strategy, config->train.seq_len, &b->program, &b->region, &err), &err);
    lap(b, PASSES);
    b->plan = (hr_plan){ .process = { .threads = 2, .rung = "" } };
    must(hr_lifetimes(&b->program, &b->region, &b->plan, &err), &err);
    lap(b, LIVES);
    must(hr_pack_floor(b->plan.storages, b->plan.storage_count, &b->region, &b->packing, &err),
         &err);
    lap(b, FLOOR);
    must(hr_pack(b->plan.storages, b->plan.storage_count, HR_COMPILE_PACK_WORK, &b->region,
                 &b->packing, &err),
         &err);
    lap(b, PACK);
}

static void table(bench *b, int32_t rounds, char **layers, int32_t count)
{
    printf("layers  strategy             steps  loops  tensors  storages"
           "   build  passes   lives   floor    pack  gap\n");
    for (int32_t k = 0; k < count; k++) {
        const hr_config config = deep(layers[k]);
        for (choice how = 0; how < CHOICES; how++) {
            memset(b->seconds, 0, sizeof b->seconds);
            for (int32_t round = 0; round < rounds; round++) plan_once(b, &config, how);
            printf("%6s  %-18s %7d %6d %8d  %8d", layers[k], choice_names[how],
                   b->program.step_count, b->program.loop_count, b->program.tensor_count,
                   b->plan.storage_count);
            for (stage i = 0; i < STAGES; i++) printf(" %7.2f", 1e3 * b->seconds[i]);
            printf("  %lld%s\n", (long long)(b->packing.arena_bytes - b->packing.floor_bytes),
                   b->packing.proof == HR_PACK_OPEN ? " open" : "");
            fflush(stdout);
        }
    }
}

int main(int count, char **arguments)
{
    static char *usual[] = { "12", "32", "126" };
    static bench b;
    const int64_t bytes = INT64_C(1) << 30;
    b.memory = aligned_alloc(64, (size_t)bytes);
    if (!b.memory) return 1;
    b.region = hr_region_over(b.memory, bytes);
    const int32_t rounds = count > 1 ? atoi(arguments[1]) : 5;
    if (rounds < 1) return 2;
    if (count > 2) table(&b, rounds, &arguments[2], count - 2);
    else table(&b, rounds, usual, 3);
    free(b.memory);
    return 0;
}
