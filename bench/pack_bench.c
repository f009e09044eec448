/* SPDX-License-Identifier: Apache-2.0 */
/* bench/pack_bench.c - quality and CPU time of packing on random plans.
 *
 *     pack_bench [small | wide | fit] [count] [seed]
 *     pack_bench write small | wide | fit SEED INDEX FILE.csv
 *
 * small: small models, random strategies. wide: models of all sizes, up to 126 layers. fit: models
 * of all sizes with the strategy that the search returns for a random budget. Cases that the
 * ordering heuristics alone do not solve are listed by their number and verified. Cases that stay
 * open are packed again with the amount of work that a run uses. `write` writes the instance of one
 * case for `headroom pack`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "ops/cpu.h"
#include "plain.h"
#include "plan/compile.h"
#include "plan/pack/pack.h"
#include "search/fit.h"
#include "support/random_config.h"

enum { LAYERS_MOST = 126, SMALL_LAYERS = 32, RANDOM_MOST = 100000, SEED = 20251121 };

static const int64_t region_bytes = INT64_C(3) << 30;

typedef enum { SMALL, WIDE, FIT, KINDS } kind;

static const char *const kind_names[KINDS] = { "small", "wide", "fit" };

typedef struct {
    kind of;
    uint64_t seed;
    hr_intermediates recompute_set[LAYERS_MOST];
    hr_config config;
    hr_compiled compiled;
    hr_region region;
} bench;

/* A number in [1, 2^octaves), uniform on a logarithmic scale. */
static int64_t any_size(uint64_t seed, uint64_t index, uint32_t what, int32_t octaves)
{
    const int64_t power = INT64_C(1) << between(seed, index, what, 0, octaves - 1);
    return power + draw(seed, index, what + 1) % power;
}

/* All families, tiny and large, sequences of any length. */
static hr_config wide_config(uint64_t seed, uint64_t index)
{
    hr_config config = random_config(seed, index);
    const int64_t width = 8 * between(seed, index, 100, 1, 16);
    config.model.n_heads = any_size(seed, index, 101, 7);
    config.model.d_model = config.model.n_heads * width;
    if (config.model.n_heads % hr_max(config.model.n_kv_heads, 1)) config.model.n_kv_heads = 0;
    config.model.n_layers = any_size(seed, index, 103, 7);
    config.model.n_layers = hr_min(config.model.n_layers, LAYERS_MOST);
    config.model.d_ff = draw(seed, index, 105) % 2 ? 4 * config.model.d_model
                                                   : any_size(seed, index, 106, 16);
    config.model.vocab_size = 4 + any_size(seed, index, 108, 18);
    config.train.batch = any_size(seed, index, 110, 7);
    config.train.seq_len = 3 + any_size(seed, index, 112, 13);
    if (draw(seed, index, 114) % 2) config.train.seq_len = hr_round_up(config.train.seq_len, 64);
    if (config.model.positions < config.train.seq_len) config.model.positions = 0;
    return config;
}

/* Half of them have one set of intermediates for all layers; a quarter has two, as the search
 * prefers, and a quarter has one for each layer. */
static void random_sets(uint64_t seed, uint64_t index, hr_strategy *s)
{
    const bool differ = draw(seed, index, 38) % 2, two = draw(seed, index, 28) % 2;
    const int64_t border = between(seed, index, 27, 0, s->layer_count);
    for (int32_t l = 0; l < s->layer_count; l++) {
        const uint32_t what = !differ ? 39 : !two ? 200 + (uint32_t)l : l < border ? 40 : 41;
        s->recompute_set[l] = (uint8_t)draw(seed, index, what);
    }
}

static hr_strategy random_strategy(bench *b, uint64_t index)
{
    const hr_config *config = &b->config;
    const uint64_t seed = b->seed;
    const int64_t tokens = config->train.seq_len, batch = config->train.batch;
    const int64_t unit = tokens % 64 ? tokens : 64;
    int64_t micro = between(seed, index, 30, 1, batch);
    while (batch % micro) micro--;
    hr_strategy s = hr_strategy_of(config, micro, b->recompute_set);
    s.loss_chunk = draw(seed, index, 31) % 2
                       ? unit * between(seed, index, 32, 1, micro * tokens / unit)
                       : 0;
    s.mlp_tile = draw(seed, index, 33) % 2
                     ? unit * between(seed, index, 34, 1, micro * tokens / unit)
                     : 0;
    s.attention_tile = draw(seed, index, 35) % 2 ? tokens * between(seed, index, 36, 1, micro) : 0;
    s.dw_first = draw(seed, index, 37) % 2;
    s.consume = micro == batch && draw(seed, index, 26) % 2;
    random_sets(seed, index, &s);
    hr_strategy_canonical(config, &s);
    return s;
}

/* The fastest strategy for a random budget from the smallest to ample. */
static hr_strategy found_strategy(bench *b, uint64_t index)
{
    static const uint32_t mask = 0;
    hr_rates rates;
    hr_error err;
    hr_fit fit;
    hr_fit_found found = { .strategy.recompute_set = b->recompute_set };
    hr_rates_guess(&hr_cpu_backend, mask, 2, &rates);
    must(hr_fit_open(&fit, &b->config, &rates, 2, &b->region, &err), &err);
    must(hr_fit_least(&fit, INT64_MAX, 0, &found, &err), &err);
    const double times = 1 + 3.0 * draw(b->seed, index, 25) / 4294967296.0;
    must(hr_fit_fastest(&fit, (int64_t)((double)found.floor_bytes * times), &found, &err), &err);
    b->region.used = 0;
    return found.strategy;
}

/* Compiles the plan of a case without packing it. */
static void make(bench *b, uint64_t index)
{
    hr_error err;
    b->config = b->of == SMALL ? random_config(b->seed, index) : wide_config(b->seed, index);
    if (b->of == SMALL) b->config.model.n_layers = between(b->seed, index, 29, 1, SMALL_LAYERS);
    must(hr_config_check(&b->config, &err), &err);
    b->region.used = 0;
    const hr_strategy strategy = b->of == FIT ? found_strategy(b, index)
                                              : random_strategy(b, index);
    must(
        hr_compile_floor(&b->config, &hr_cpu_backend, &strategy, 2, &b->region, &b->compiled, &err),
        &err);
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Checks every pair of storages by brute force. */
static void must_be_apart(const hr_plan *plan)
{
    for (int32_t i = 0; i < plan->storage_count; i++)
        for (int32_t k = i + 1; k < plan->storage_count; k++) {
            const hr_storage *a = &plan->storages[i], *b = &plan->storages[k];
            if (a->step_first > b->step_last || b->step_first > a->step_last) continue;
            if (a->offset >= b->offset + b->bytes || b->offset >= a->offset + a->bytes) continue;
            fprintf(stderr, "storages %d and %d share bytes\n", i, k);
            exit(1);
        }
}

static void describe(const bench *b, int32_t index, double seconds, double gap)
{
    const hr_pack_result *packed = &b->compiled.packing;
    printf("  %d: %lld layers, %d storages, %.1f ms, %lld nodes, gap %.4f %%%s\n", index,
           (long long)b->config.model.n_layers, b->compiled.plan.storage_count, 1e3 * seconds,
           (long long)packed->nodes, 100 * gap, packed->proof == HR_PACK_PROVEN ? ", proven" : "");
    fflush(stdout);
}

/* Seconds of packing with this limit of work. */
static double pack(bench *b, int64_t work)
{
    const hr_plan *plan = &b->compiled.plan;
    hr_error err;
    const double start = now();
    must(hr_pack(plan->storages, plan->storage_count, work, &b->region, &b->compiled.packing, &err),
         &err);
    return now() - start;
}

static void random_plans(bench *b, int32_t count)
{
    static double seconds[RANDOM_MOST];
    int32_t counts[HR_PACK_OPEN + 1] = { 0 }, hard = 0, again = 0;
    double worst = 0, longest = 0;
    for (int32_t index = 0; index < count; index++) {
        make(b, (uint64_t)index);
        const hr_pack_result *packed = &b->compiled.packing;
        double took = seconds[index] = pack(b, HR_COMPILE_PACK_WORK);
        if (packed->proof == HR_PACK_OPEN) {
            again++;
            took += pack(b, HR_COMPILE_PACK_WORK_MOST);
            longest = took > longest ? took : longest;
        }
        counts[packed->proof]++;
        hard += packed->hard_count > 0;
        const double gap = (double)(packed->arena_bytes - packed->bound_bytes) /
                           (double)packed->bound_bytes;
        worst = gap > worst ? gap : worst;
        if (packed->hard_count == 0) continue;
        must_be_apart(&b->compiled.plan);
        describe(b, index, took, gap);
    }
    qsort(seconds, (size_t)count, sizeof *seconds, compare_doubles);
    printf(
        "%s, seed %llu: %d plans: %d at their floor, %d proven, %d open (%.4f %% at most); %d "
        "needed more than orders; pack median %.2f, 90th %.2f, 99th %.2f, worst %.2f ms; %d again, "
        "%.2f s at most\n",
        kind_names[b->of], (unsigned long long)b->seed, count, counts[HR_PACK_AT_FLOOR],
        counts[HR_PACK_PROVEN], counts[HR_PACK_OPEN], 100 * worst, hard, 1e3 * seconds[count / 2],
        1e3 * seconds[count * 9 / 10], 1e3 * seconds[count * 99 / 100], 1e3 * seconds[count - 1],
        again, longest);
}

/* Writes the instance; an id is the number of a storage and the name of a tensor in it. */
static void write_instance(bench *b, uint64_t index, const char *path)
{
    make(b, index);
    const hr_plan *plan = &b->compiled.plan;
    FILE *file = fopen(path, "w");
    if (!file) exit(1);
    fprintf(file, "id,lower,upper,size\n");
    for (int32_t i = 0; i < plan->storage_count; i++) {
        const hr_storage *storage = &plan->storages[i];
        const char *name = "";
        for (int32_t k = 0; k < plan->buffer_count && !*name; k++)
            if (plan->buffers[k].storage == i && plan->buffers[k].tensor != HR_NONE)
                name = b->compiled.program.tensors[plan->buffers[k].tensor].name;
        fprintf(file, "%d %s,%d,%d,%lld\n", i, name, storage->step_first, storage->step_last + 1,
                (long long)storage->bytes);
    }
    if (fclose(file)) exit(1);
}

static bool read_kind(bench *b, const char *text)
{
    int32_t k = 0;
    while (k < KINDS && strcmp(text, kind_names[k])) k++;
    b->of = (kind)k;
    return k < KINDS;
}

int main(int count, char **arguments)
{
    static bench b = { .seed = SEED };
    void *memory = aligned_alloc(64, (size_t)region_bytes);
    if (!memory) return 1;
    b.region = hr_region_over(memory, region_bytes);
    if (count == 6 && !strcmp(arguments[1], "write")) {
        if (!read_kind(&b, arguments[2])) return 2;
        b.seed = (uint64_t)atoll(arguments[3]);
        write_instance(&b, (uint64_t)atoll(arguments[4]), arguments[5]);
    } else {
        const int32_t plans = count > 2 ? atoi(arguments[2]) : 1000;
        if (count > 1 && !read_kind(&b, arguments[1])) return 2;
        if (count > 3) b.seed = (uint64_t)atoll(arguments[3]);
        if (plans < 1 || plans > RANDOM_MOST) return 2;
        random_plans(&b, plans);
    }
    free(memory);
    return 0;
}
