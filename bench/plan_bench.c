/* SPDX-License-Identifier: Apache-2.0 */
/* bench/plan_bench.c - milliseconds of processor time that each stage of one plan takes, by layers
 * and by how finely the step is cut. Best of so many rounds, one core, the same memory again.
 *
 *     plan_bench [rounds] [layers ...] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "model/assemble.h"
#include "plan/lifetimes.h"
#include "plan/pack.h"
#include "plan/tile.h"

enum { T = 4096, BATCH = 8, LOSS_CHUNK = 512, MLP_TILE = 256, CUTS_MOST = 4096 };

typedef enum { BUILD, PASSES, LIVES, FLOOR, PACK, STAGES } stage;
typedef enum { WHOLE, MICRO, CHUNKS, TILES, STRATEGIES } strategy;

static const char *const strategy_names[STRATEGIES] = { "no tile", "micro-batch", "+ loss chunk",
                                                        "+ tiles in layers" };

typedef struct {
    void *memory;
    hr_region region;
    hr_program program;
    hr_plan plan;
    hr_pack_result packing;
    hr_tile_cut cuts[CUTS_MOST];
    int32_t cut_count;
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

/* Room for a loop and some views for each run of a block. Not timed: the model's limits will know. */
static void make_room(bench *b, int32_t layers)
{
    hr_program *program = &b->program;
    const int32_t loops = program->loop_max + 4 * layers;
    const int32_t tensors = program->tensor_max + 64 * layers;
    hr_loop *more_loops = hr_region_take(&b->region, loops, sizeof *more_loops);
    hr_tensor *more_tensors = hr_region_take(&b->region, tensors, sizeof *more_tensors);
    if (!more_loops || !more_tensors) exit(1);
    memcpy(more_loops, program->loops, (size_t)program->loop_count * sizeof *more_loops);
    memcpy(more_tensors, program->tensors, (size_t)program->tensor_count * sizeof *more_tensors);
    program->loops = more_loops;
    program->tensors = more_tensors;
    program->loop_max = loops;
    program->tensor_max = tensors;
}

/* The last step of the run of one block of one layer that starts at `first`. */
static int32_t run_end(const hr_program *program, int32_t first, int32_t most)
{
    const hr_step *step = &program->steps[first];
    int32_t last = first;
    while (last < most && program->steps[last + 1].block == step->block &&
           program->steps[last + 1].layer == step->layer)
        last++;
    return last;
}

static void note_blocks(bench *b, const hr_loop *section, hr_block block, const char *name,
                        int64_t rows)
{
    const int32_t end = section->step_last;
    for (int32_t s = section->step_first; s <= end;) {
        const int32_t last = run_end(&b->program, s, end);
        if (b->program.steps[s].block == block && b->cut_count < CUTS_MOST)
            b->cuts[b->cut_count++] = (hr_tile_cut){ s, last, name, rows };
        s = last + 1;
    }
}

static void cut(bench *b, strategy how)
{
    const hr_loop section = b->program.loops[hr_program_loop(&b->program, "step")];
    const int32_t batches = how >= TILES ? 2 : 1;
    hr_error err;
    b->cut_count = 0;
    if (how >= MICRO)
        b->cuts[b->cut_count++] = (hr_tile_cut){ section.step_first, section.step_last,
                                                 "micro-batch", (int64_t)batches * T };
    if (how >= CHUNKS) note_blocks(b, &section, HR_BLOCK_HEAD, "loss chunk", LOSS_CHUNK);
    if (how >= TILES) {
        note_blocks(b, &section, HR_BLOCK_MLP, "MLP tile", MLP_TILE);
        note_blocks(b, &section, HR_BLOCK_ATTENTION, "attention tile", T);
    }
    must(hr_tile_many(&b->program, b->cuts, b->cut_count, &b->region, &err), &err);
    hr_tile_sort_loops(&b->program);
}

static void plan_once(bench *b, const hr_config *config, strategy how)
{
    hr_error err;
    b->region.used = 0;
    b->last = now();
    must(hr_model_assemble(config, BATCH, &b->region, &b->program, &err), &err);
    lap(b, BUILD);
    make_room(b, (int32_t)config->model.n_layers);
    b->last = now();
    cut(b, how);
    lap(b, PASSES);
    b->plan = (hr_plan){ .threads = 2, .rung = "" };
    must(hr_lifetimes(&b->program, &b->region, &b->plan, &err), &err);
    lap(b, LIVES);
    must(hr_pack_floor(b->plan.storages, b->plan.storage_count, &b->region, &b->packing, &err),
         &err);
    lap(b, FLOOR);
    must(hr_pack(b->plan.storages, b->plan.storage_count, 30000000, &b->region, &b->packing, &err),
         &err);
    lap(b, PACK);
}

int main(int count_of_arguments, char **arguments)
{
    static const char *const usual[] = { "12", "32", "126" };
    const int32_t rounds = count_of_arguments > 1 ? atoi(arguments[1]) : 5;
    const bool given = count_of_arguments > 2;
    const int32_t count = given ? count_of_arguments - 2 : 3;
    if (rounds < 1) return 2;
    printf("layers  strategy             steps  loops  tensors  storages"
           "   build  passes   lives   floor    pack  gap\n");
    for (int32_t k = 0; k < count; k++) {
        const char *layers = given ? arguments[2 + k] : usual[k];
        const hr_config config = deep(layers);
        const int64_t bytes = INT64_C(1) << 30;
        for (strategy how = 0; how < STRATEGIES; how++) {
            static bench b;
            b = (bench){ .memory = aligned_alloc(64, (size_t)bytes) };
            if (!b.memory) return 1;
            b.region = hr_region_over(b.memory, bytes);
            for (int32_t round = 0; round < rounds; round++) plan_once(&b, &config, how);
            printf("%6s  %-18s %7d %6d %8d  %8d", layers, strategy_names[how], b.program.step_count,
                   b.program.loop_count, b.program.tensor_count, b.plan.storage_count);
            for (stage i = 0; i < STAGES; i++) printf(" %7.2f", 1e3 * b.seconds[i]);
            printf("  %lld%s\n", (long long)(b.packing.arena_bytes - b.packing.floor_bytes),
                   b.packing.proof == HR_PACK_OPEN ? " open" : "");
            fflush(stdout);
            free(b.memory);
        }
    }
    return 0;
}
