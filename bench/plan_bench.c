/* SPDX-License-Identifier: Apache-2.0 */
/* bench/plan_bench.c - milliseconds of processor time that each stage of one plan takes, by layers
 * and by how finely the step is cut. Best of so many rounds, one core, the same memory again.
 *
 *     plan_bench [rounds] [layers ...]
 *     plan_bench random [count] [layers at most] [work]
 *
 * The second compiles random recipes with random strategies and counts what their packing reaches;
 * what took long or was not at its floor is listed by its number. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "model/assemble.h"
#include "plan/compile.h"
#include "plan/lifetimes.h"
#include "plan/pack.h"
#include "plan/strategy.h"
#include "support/random_config.h"

enum {
    T = 4096,
    BATCH = 8,
    LOSS_CHUNK = 512,
    MLP_TILE = 256,
    LAYERS_MOST = 1024,
    RANDOM_MOST = 100000,
    SEED = 20251121,
    PACK_WORK = 30000000
};

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

static void must(hr_status status, const hr_error *err)
{
    if (status == HR_OK) return;
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Ends a stage; the next one starts. */
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
    set(&config, "train.format", "bf16");
    set(&config, "train.batch", "8");
    set(&config, "train.seq_len", "4096");
    must(hr_config_check(&config, &err), &err);
    return config;
}

/* Norms are computed again from micro-batches on, in tiled layers all that can be. */
static hr_strategy strategy_of(const hr_config *config, choice how, hr_intermediates *dropped)
{
    hr_strategy s = hr_strategy_of(config, BATCH, dropped);
    const hr_intermediates norms = 1u << HR_INTERMEDIATE_NORM;
    for (int32_t l = 0; l < s.layer_count; l++)
        dropped[l] = how >= TILES ? UINT16_MAX : how ? norms : 0;
    s.micro_batch = how >= TILES ? 2 : how >= MICRO ? 1 : 0;
    s.loss_chunk = how >= CHUNKS ? LOSS_CHUNK : 0;
    s.mlp_tile = how >= TILES ? MLP_TILE : 0;
    s.attention_tile = how >= TILES ? 1 : 0;
    hr_strategy_canonical(config, &s);
    return s;
}

static void plan_once(bench *b, const hr_config *config, choice how)
{
    hr_error err;
    static hr_intermediates dropped[LAYERS_MOST];
    const hr_strategy strategy = strategy_of(config, how, dropped);
    b->region.used = 0;
    b->last = now();
    must(hr_model_assemble(config, BATCH, &b->region, &b->program, &err), &err);
    lap(b, BUILD);
    must(hr_strategy_apply(&strategy, config->train.seq_len, &b->program, &b->region, &err), &err);
    lap(b, PASSES);
    b->plan = (hr_plan){ .threads = 2, .rung = "" };
    must(hr_lifetimes(&b->program, &b->region, &b->plan, &err), &err);
    lap(b, LIVES);
    must(hr_pack_floor(b->plan.storages, b->plan.storage_count, &b->region, &b->packing, &err),
         &err);
    lap(b, FLOOR);
    must(hr_pack(b->plan.storages, b->plan.storage_count, PACK_WORK, &b->region, &b->packing, &err),
         &err);
    lap(b, PACK);
}

/* Half of them with one set of intermediates for all layers, half with one for each. */
static hr_strategy random_strategy(const hr_config *config, uint64_t turn,
                                   hr_intermediates *dropped)
{
    const int64_t tokens = config->train.seq_len, batch = config->train.batch;
    const int64_t unit = tokens % 64 ? tokens : 64;
    int64_t micro = between(SEED, turn, 30, 1, batch);
    while (batch % micro) micro--;
    hr_strategy s = hr_strategy_of(config, micro, dropped);
    s.loss_chunk = draw(SEED, turn, 31) % 2
                       ? unit * between(SEED, turn, 32, 1, micro * tokens / unit)
                       : 0;
    s.mlp_tile = draw(SEED, turn, 33) % 2 ? unit * between(SEED, turn, 34, 1, micro * tokens / unit)
                                          : 0;
    s.attention_tile = draw(SEED, turn, 35) % 2 ? between(SEED, turn, 36, 1, micro) : 0;
    s.dw_first = draw(SEED, turn, 37) % 2;
    const bool differ = draw(SEED, turn, 38) % 2;
    for (int32_t l = 0; l < s.layer_count; l++)
        dropped[l] = (hr_intermediates)draw(SEED, turn, differ ? 40 + (uint32_t)l : 39);
    hr_strategy_canonical(config, &s);
    return s;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void random_plans(bench *b, int32_t count, int32_t layers, int64_t work)
{
    static hr_intermediates dropped[LAYERS_MOST];
    static double seconds[RANDOM_MOST];
    int32_t counts[HR_PACK_OPEN + 1] = { 0 }, hard = 0;
    double worst = 0;
    hr_error err;
    for (int32_t turn = 0; turn < count; turn++) {
        hr_config config = random_config(SEED, (uint64_t)turn);
        config.model.n_layers = between(SEED, (uint64_t)turn, 29, 1, layers);
        must(hr_config_check(&config, &err), &err);
        const hr_strategy strategy = random_strategy(&config, (uint64_t)turn, dropped);
        hr_compiled c;
        b->region.used = 0;
        must(hr_compile_floor(&config, &strategy, 2, &b->region, &c, &err), &err);
        const double start = now();
        must(hr_pack(c.plan.storages, c.plan.storage_count, work, &b->region, &c.packing, &err),
             &err);
        seconds[turn] = now() - start;
        counts[c.packing.proof]++;
        hard += c.packing.hard_count > 0;
        const double gap = (double)(c.packing.arena_bytes - c.packing.floor_bytes) /
                           (double)c.packing.floor_bytes;
        worst = gap > worst && c.packing.proof == HR_PACK_OPEN ? gap : worst;
        if (seconds[turn] > 0.02 || c.packing.proof != HR_PACK_AT_FLOOR)
            printf("  %d: %lld layers, %d storages, %.1f ms, %lld nodes, gap %.4f %%%s\n", turn,
                   (long long)config.model.n_layers, c.plan.storage_count, 1e3 * seconds[turn],
                   (long long)c.packing.nodes, 100 * gap,
                   c.packing.proof == HR_PACK_PROVEN ? ", proven" : "");
    }
    qsort(seconds, (size_t)count, sizeof *seconds, compare_doubles);
    printf("%d plans: %d at their floor, %d proven, %d open (%.4f %% at most); %d needed more than "
           "orders; pack median %.2f, 90th %.2f, 99th %.2f, worst %.2f ms\n",
           count, counts[HR_PACK_AT_FLOOR], counts[HR_PACK_PROVEN], counts[HR_PACK_OPEN],
           100 * worst, hard, 1e3 * seconds[count / 2], 1e3 * seconds[count * 9 / 10],
           1e3 * seconds[count * 99 / 100], 1e3 * seconds[count - 1]);
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
    const bool random = count > 1 && !strcmp(arguments[1], "random");
    b.memory = aligned_alloc(64, (size_t)bytes);
    if (!b.memory) return 1;
    b.region = hr_region_over(b.memory, bytes);
    if (random) {
        const int32_t plans = count > 2 ? atoi(arguments[2]) : 1000;
        const int32_t layers = count > 3 ? atoi(arguments[3]) : 32;
        const int64_t work = count > 4 ? atoll(arguments[4]) : PACK_WORK;
        if (plans < 1 || plans > RANDOM_MOST || layers < 1 || layers > LAYERS_MOST) return 2;
        random_plans(&b, plans, layers, work);
    } else {
        const int32_t rounds = count > 1 ? atoi(arguments[1]) : 5;
        if (rounds < 1) return 2;
        if (count > 2) table(&b, rounds, &arguments[2], count - 2);
        else table(&b, rounds, usual, 3);
    }
    free(b.memory);
    return 0;
}
