/* SPDX-License-Identifier: Apache-2.0 */
/* bench/passes_bench.c - bytes per second of the memory-bound passes with every instruction set,
 * compared with reading, copying and modifying memory with as many threads in the same rounds.
 * Medians of five rounds; on a busy machine they say little.
 *
 *     passes_bench [THREADS [PART-OF-A-NAME]] */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cpu.h"
#include "base/element.h"
#include "ops/activation/activation.h"
#include "ops/adafactor/adafactor.h"
#include "ops/dequantize/dequantize.h"
#include "ops/dropout/dropout.h"
#include "ops/embed/embed.h"
#include "ops/glu/glu.h"
#include "ops/kernels.h"
#include "ops/loss/loss.h"
#include "ops/norm/norm.h"
#include "ops/recurrence/recurrence.h"
#include "ops/rope/rope.h"
#include "ops/update/update.h"

enum {
    ROUNDS = 5,
    RUNGS = 4,
    ROWS = 16384,
    D = 1024,
    T = 512,
    HEAD = 128,
    V = 50304,
    LOSS_ROWS = ROWS * D / V,
    ELEMENTS = ROWS * D, /* 64 MiB in fp32: twice the last-level cache of the machines used */
    PASSES_MOST = 40,
    THREADS_MOST = 64
};

/* Memory traffic of a pass: reads, writes elsewhere, or writes in place. */
typedef enum { READ, COPY, MODIFY, BOUNDS } bound;

typedef struct {
    const char *name;
    hr_run_fn *run;
    int32_t phases;
    hr_call call;
    double bytes; /* read plus written bytes, each counted once */
    bound limit;
    double seconds[RUNGS][ROUNDS];
} pass;

typedef struct {
    const pass *pass;
    pthread_barrier_t *barrier;
    hr_call call;
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    for (w->call.phase = 0; w->call.phase < w->pass->phases; w->call.phase++) {
        pthread_barrier_wait(w->barrier);
        w->pass->run(&w->call);
    }
    pthread_barrier_wait(w->barrier);
    return NULL;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double run_pass(const pass *p, const hr_kernels *kernels, int32_t threads)
{
    pthread_t ids[THREADS_MOST];
    worker workers[THREADS_MOST];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads + 1);
    for (int32_t k = 0; k < threads; k++) {
        workers[k] = (worker){ p, &barrier, p->call };
        workers[k].call.kernels = kernels;
        workers[k].call.thread = k;
        workers[k].call.threads = threads;
        if (pthread_create(&ids[k], NULL, work, &workers[k]) != 0) exit(1);
    }
    const double start = now();
    for (int32_t phase = 0; phase <= p->phases; phase++) pthread_barrier_wait(&barrier);
    const double seconds = now() - start;
    for (int32_t k = 0; k < threads; k++) pthread_join(ids[k], NULL);
    pthread_barrier_destroy(&barrier);
    return seconds;
}

static void *allocate(int64_t bytes)
{
    void *memory = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
    if (!memory) exit(1);
    return memory;
}

/* Values of a realistic magnitude, neither zeros nor denormals. */
static void *fill(int64_t count, hr_dtype dtype)
{
    void *array = allocate(count * hr_dtype_bytes(dtype));
    uint32_t bits = 1;
    for (int64_t i = 0; i < count; i++) {
        bits = bits * 1664525u + 1013904223u;
        hr_element_set(array, i, dtype, ((float)(bits >> 8) / 8388608 - 1) * 0.5f + 0.75f);
    }
    return array;
}

typedef float four_floats __attribute__((vector_size(16)));

static void read_run(const hr_call *call)
{
    int64_t first, last;
    hr_share(ELEMENTS / 16, call->thread, call->threads, &first, &last);
    const four_floats *x = call->in[0];
    four_floats sums[4] = { 0 };
    for (int64_t i = 4 * first; i < 4 * last; i += 4)
        for (int64_t k = 0; k < 4; k++) sums[k] += x[i + k];
    volatile four_floats kept = sums[0] + sums[1] + sums[2] + sums[3];
    (void)kept;
}

static void copy_run(const hr_call *call)
{
    int64_t first, last;
    hr_share(ELEMENTS, call->thread, call->threads, &first, &last);
    memcpy((float *)call->out[0] + first, (const float *)call->in[0] + first,
           (size_t)(last - first) * 4);
}

static void modify_run(const hr_call *call)
{
    int64_t first, last;
    hr_share(ELEMENTS / 16, call->thread, call->threads, &first, &last);
    four_floats *x = call->out[0];
    for (int64_t i = 4 * first; i < 4 * last; i += 4)
        for (int64_t k = 0; k < 4; k++) x[i + k] *= 1.0001f;
}

/* Large arrays, shared by the passes, so that a repeated pass finds nothing in cache. */
typedef struct {
    void *rows[5]; /* [ROWS, D] fp32; also holds bf16 */
    float *gain, *bias, *stat, *table;
    int32_t *ids, *targets;
    void *scratch;
    double *numbers;
    hr_bf16 *weight;
    void *halves[2]; /* moments in bf16, and as codes with scales */
    uint8_t *codes[2];
    float *scales[2];
} arrays;

static int32_t add_passes(pass *passes, const arrays *a, hr_dtype dtype)
{
    static const hr_norm_attr norm = { D, 1, T, 1e-5f, true }, rms = { D, 1, T, 1e-5f, false };
    static const hr_norm_attr heads = { HEAD, D / HEAD, T, 1e-5f, false };
    static const hr_rope_attr rope = { D, T, 64, D / 128, 2, { 0, D / 2 }, 64, 10000, false };
    static const hr_loss_attr loss = { V, 0 };
    static const hr_dropout_attr dropout = { D, T, 0.1f, 1, 1 };
    static const hr_linear_attr gelu = { D, D, T, HR_ACT_GELU };
    static const hr_glu_attr silu = { D };
    static const hr_recurrence_attr recurrence = { D, T };
    static const hr_embed_attr embed = { V / 4, D, T };
    static hr_dequantize_attr halves = { D, ROWS, .from = HR_F16 };
    static hr_dequantize_attr codes = { D, ROWS, { 128, 128 }, { ROWS / 128, 1 }, HR_F8_E4M3 };
    halves.to = codes.to = (int32_t)dtype;
    halves.layout = codes.layout = (int32_t)hr_linear_layout(dtype);
    const double pass_bytes = (double)ROWS * D * (double)hr_dtype_bytes(dtype);
    const double loss_bytes = (double)LOSS_ROWS * V * (double)hr_dtype_bytes(dtype);
    void *const *r = a->rows;
    const pass all[] = {
        { "norm",
          hr_norm_run,
          1,
          { { r[0], a->gain, a->bias }, { r[1], a->stat }, .attr = &norm },
          2 * pass_bytes,
          COPY },
        { "norm_bwd",
          hr_norm_bwd_run,
          2,
          { { r[0], r[1], a->stat, a->gain, r[2] },
            { r[2], a->numbers, a->numbers + D },
            .attr = &norm,
            .clear = 6 },
          4 * pass_bytes,
          MODIFY },
        { "norm, RMS",
          hr_norm_run,
          1,
          { { r[0], a->gain }, { r[1], a->stat }, .attr = &rms },
          2 * pass_bytes,
          COPY },
        { "norm_bwd, RMS",
          hr_norm_bwd_run,
          2,
          { { r[0], r[1], a->stat, a->gain, r[2] },
            { r[2], a->numbers },
            .attr = &rms,
            .clear = 2 },
          4 * pass_bytes,
          MODIFY },
        { "norm, RMS of heads",
          hr_norm_run,
          1,
          { { r[0], a->gain }, { r[1], a->stat }, .attr = &heads },
          2 * pass_bytes,
          COPY },
        { "norm_bwd, of heads",
          hr_norm_bwd_run,
          2,
          { { r[0], r[1], a->stat, a->gain, r[2] },
            { r[2], a->numbers },
            .attr = &heads,
            .clear = 2 },
          4 * pass_bytes,
          MODIFY },
        { "rope",
          hr_rope_run,
          1,
          { { r[0], a->table }, { r[0] }, .attr = &rope },
          2 * pass_bytes,
          MODIFY },
        { "dropout",
          hr_dropout_run,
          1,
          { { r[0], r[1] }, { r[1] }, .attr = &dropout },
          3 * pass_bytes,
          MODIFY },
        { "activation, GELU",
          hr_activation_run,
          1,
          { { r[2] }, { r[1] }, .attr = &gelu },
          2 * pass_bytes,
          COPY },
        { "glu, SiLU",
          hr_glu_run,
          1,
          { { r[0], r[1] }, { r[1] }, .attr = &silu },
          3 * pass_bytes,
          MODIFY },
        { "glu_bwd, SiLU",
          hr_glu_bwd_run,
          1,
          { { r[4], r[0], r[1] }, { r[0], r[1] }, .attr = &silu },
          5 * pass_bytes,
          MODIFY },
        { "recurrence",
          hr_recurrence_run,
          1,
          { { r[0], r[1], a->gain }, { r[1] }, .attr = &recurrence },
          3 * pass_bytes,
          MODIFY },
        { "recurrence_bwd",
          hr_recurrence_bwd_run,
          2,
          { { r[4], r[0], a->gain }, { r[0], a->numbers }, .attr = &recurrence, .clear = 2 },
          3 * pass_bytes,
          MODIFY },
        { "embed",
          hr_embed_run,
          1,
          { { a->ids, r[0], r[1] }, { r[2] }, .attr = &embed },
          pass_bytes + (double)ROWS * D * 4,
          COPY },
        { "embed_bwd",
          hr_embed_bwd_run,
          1,
          { { a->ids, r[1] }, { r[0] }, .attr = &embed },
          pass_bytes + (double)ROWS * D * 8,
          MODIFY },
        { "dequantize, f16",
          hr_dequantize_run,
          1,
          { { r[0] }, { r[1] }, .attr = &halves },
          pass_bytes + (double)ROWS * D * 2,
          COPY },
        { "dequantize, e4m3",
          hr_dequantize_run,
          1,
          { { r[0], a->table }, { r[1] }, .attr = &codes },
          pass_bytes + (double)ROWS * D,
          COPY },
        { "loss",
          hr_loss_run,
          2,
          { { r[3], a->targets, a->numbers }, { a->numbers + 1, r[3] }, .attr = &loss },
          2 * loss_bytes,
          MODIFY },
        { "loss, no gradient",
          hr_loss_run,
          2,
          { { r[3], a->targets, a->numbers }, { a->numbers + 1 }, .attr = &loss },
          loss_bytes,
          READ },
    };
    const int32_t count = sizeof all / sizeof *all;
    for (int32_t k = 0; k < count; k++) {
        passes[k] = all[k];
        passes[k].call.rows = passes[k].run == hr_loss_run ? LOSS_ROWS : ROWS;
        passes[k].call.dtype = dtype;
        passes[k].call.scratch = a->scratch;
    }
    return count;
}

static int32_t add_updates(pass *passes, const arrays *a)
{
    static const hr_sumsq_attr sumsq = { ELEMENTS };
    static const hr_update_attr update = { ELEMENTS, 0.9, 0.95, 1e-8, 0.1, true };
    static const hr_adafactor_attr adafactor = { .K = ROWS,
                                                 .N = D,
                                                 .eps1 = 1e-30,
                                                 .eps2 = 1e-3,
                                                 .clip_threshold = 1,
                                                 .decay_rate = -0.8,
                                                 .update = { .elements = ELEMENTS, .lr_scale = 1 },
                                                 .scale_parameter = true,
                                                 .layout = HR_PANEL_PAIR };
    static double lr = 1e-6, norm_scale[2] = { 1, 1 }, part;
    static const hr_update_attr codes = { .elements = ELEMENTS,
                                          .beta1 = 0.9,
                                          .beta2 = 0.95,
                                          .eps = 1e-8,
                                          .decay = 0.1,
                                          .lr_scale = 1,
                                          .decoupled = true,
                                          .moments = HR_U8 };
    static hr_update_attr halves;
    halves = codes;
    halves.moments = HR_BF16;
    static hr_update_attr residual, rounded, least;
    residual = rounded = update;
    residual.master = HR_MASTER_RESIDUAL;
    rounded.master = HR_MASTER_ROUNDED;
    least = codes;
    least.master = HR_MASTER_RESIDUAL;
    void *const *r = a->rows;
    const double n = ELEMENTS;
    const pass all[] = {
        { "sumsq",
          hr_sumsq_run,
          2,
          { { r[0] }, { &part }, .attr = &sumsq, .scratch = a->scratch },
          4 * n,
          READ },
        { "adamw",
          hr_adamw_run,
          1,
          { { r[0], norm_scale, &lr }, { r[1], r[2], r[4] }, .attr = &update },
          28 * n,
          MODIFY },
        { "adamw, bf16 copy",
          hr_adamw_run,
          1,
          { { r[0], norm_scale, &lr }, { r[1], r[2], r[4], a->weight }, .attr = &update },
          30 * n,
          MODIFY },
        { "adamw, bf16 moments",
          hr_adamw_run,
          1,
          { { r[0], norm_scale, &lr },
            { r[1], a->halves[0], a->halves[1], a->weight },
            .attr = &halves },
          22 * n,
          MODIFY },
        { "adamw, int8 moments",
          hr_adamw_run,
          1,
          { { r[0], norm_scale, &lr },
            { r[1], a->codes[0], a->codes[1], a->weight, a->scales[0], a->scales[1] },
            .attr = &codes },
          18 * n,
          MODIFY },
        { "adamw, residual",
          hr_adamw_run,
          1,
          { { r[0], norm_scale, &lr },
            { a->weight, r[2], r[4], NULL, NULL, NULL, r[1] },
            .attr = &residual },
          28 * n,
          MODIFY },
        { "adamw, rounded",
          hr_adamw_run,
          1,
          { { r[0], norm_scale, &lr }, { a->weight, r[2], r[4] }, .attr = &rounded },
          24 * n,
          MODIFY },
        { "adamw, residual, int8",
          hr_adamw_run,
          1,
          { { r[0], norm_scale, &lr },
            { a->weight, a->codes[0], a->codes[1], NULL, a->scales[0], a->scales[1], r[1] },
            .attr = &least },
          16 * n,
          MODIFY },
        { "sgd, bf16 copy",
          hr_sgd_run,
          1,
          { { r[0], norm_scale, &lr }, { r[1], r[2], a->weight }, .attr = &update },
          22 * n,
          MODIFY },
        { "sgd, int8 momentum",
          hr_sgd_run,
          1,
          { { r[0], norm_scale, &lr },
            { r[1], a->codes[0], a->weight, a->scales[0] },
            .attr = &codes },
          16 * n,
          MODIFY },
        { "lion, bf16 copy",
          hr_lion_run,
          1,
          { { r[0], norm_scale, &lr }, { r[1], r[2], a->weight }, .attr = &update },
          22 * n,
          MODIFY },
        { "lion, int8 momentum",
          hr_lion_run,
          1,
          { { r[0], norm_scale, &lr },
            { r[1], a->codes[0], a->weight, a->scales[0] },
            .attr = &codes },
          16 * n,
          MODIFY },
        { "lion, residual",
          hr_lion_run,
          1,
          { { r[0], norm_scale, &lr }, { a->weight, r[2], NULL, NULL, r[1] }, .attr = &residual },
          20 * n,
          MODIFY },
        { "lion, rounded",
          hr_lion_run,
          1,
          { { r[0], norm_scale, &lr }, { a->weight, r[2] }, .attr = &rounded },
          16 * n,
          MODIFY },
        { "adafactor, bf16 copy",
          hr_adafactor_run,
          4,
          { { r[0], norm_scale, &lr },
            { r[1], r[2], r[3], NULL, a->weight },
            .attr = &adafactor,
            .scratch = a->scratch },
          26 * n,
          MODIFY },
    };
    memcpy(passes, all, sizeof all);
    return sizeof all / sizeof *all;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *seconds)
{
    double sorted[ROUNDS];
    memcpy(sorted, seconds, sizeof sorted);
    qsort(sorted, ROUNDS, sizeof *sorted, compare_doubles);
    return sorted[ROUNDS / 2];
}

static arrays make_arrays(void)
{
    arrays a = { .gain = fill(D, HR_F32),
                 .bias = fill(D, HR_F32),
                 .stat = fill(D / HEAD * ROWS, HR_F32),
                 .table = fill(T * 64, HR_F32),
                 .ids = allocate(ROWS * 4),
                 .targets = allocate(ROWS * 4),
                 .scratch = allocate(4 << 20),
                 .numbers = allocate(2 * D * 8),
                 .weight = allocate(ELEMENTS * 2) };
    for (int32_t k = 0; k < 5; k++) a.rows[k] = allocate(ELEMENTS * 4);
    for (int32_t k = 0; k < 2; k++) {
        a.halves[k] = fill(ELEMENTS, HR_BF16);
        a.codes[k] = allocate(ELEMENTS);
        a.scales[k] = fill(ELEMENTS / HR_MOMENT_BLOCK, HR_F32);
        memset(a.codes[k], 200, ELEMENTS); /* positive in both maps */
    }
    uint32_t bits = 7;
    for (int64_t r = 0; r < ROWS; r++) {
        bits = bits * 1664525u + 1013904223u;
        a.ids[r] = a.targets[r] = (int32_t)((bits >> 8) % (V / 4));
    }
    return a;
}

/* Keeps the passes whose name contains `part`. Returns their number. */
static int32_t keep_named(pass *passes, int32_t count, const char *part)
{
    int32_t kept = 0;
    for (int32_t p = 0; p < count; p++)
        if (strstr(passes[p].name, part)) passes[kept++] = passes[p];
    return kept;
}

/* Before each round, so that no dtype reads the other's bytes as denormals or NaN. */
static void refill(const arrays *a, hr_dtype dtype)
{
    void *values = fill(ELEMENTS, dtype);
    for (int32_t k = 0; k < 5; k++)
        memcpy(a->rows[k], values, (size_t)(ELEMENTS * hr_dtype_bytes(dtype)));
    free(values);
    *a->numbers = 1e-3;
}

static void measure(pass *passes, int32_t count, const arrays *a, hr_dtype dtype, int32_t threads,
                    int32_t rungs)
{
    static const uint32_t masks[RUNGS] = { 0, HR_CPU_AVX2, HR_CPU_AVX2 | HR_CPU_AVX512,
                                           HR_CPU_AVX2 | HR_CPU_AVX512 | HR_CPU_AVX512BF16 };
    hr_kernels kernels[RUNGS];
    for (int32_t k = 0; k < rungs; k++) hr_kernels_fill(&kernels[k], masks[k]);
    refill(a, dtype);
    for (int32_t round = 0; round < ROUNDS; round++)
        for (int32_t p = 0; p < count; p++)
            for (int32_t k = 0; k < rungs; k++)
                if (k > 0 || round == 0 || rungs == 1) /* the reference is slow: one round */
                    passes[p].seconds[k][round] = run_pass(&passes[p], &kernels[k], threads);
                else passes[p].seconds[k][round] = passes[p].seconds[k][0];
}

static void print_table(const pass *passes, int32_t count, const char *type, int32_t threads,
                        int32_t rungs)
{
    double ceiling[BOUNDS];
    for (int32_t k = 0; k < BOUNDS; k++)
        ceiling[k] = passes[k].bytes / median(passes[k].seconds[rungs - 1]) / 1e9;
    printf("%s, %d thread%s: read %.1f, copy %.1f, read-modify-write %.1f GB/s\n", type, threads,
           threads > 1 ? "s" : "", ceiling[READ], ceiling[COPY], ceiling[MODIFY]);
    printf("  %-20s %8s %8s %8s %10s   of its bound\n", "GB/s", "ref", "avx2", "avx512",
           "avx512bf16");
    for (int32_t p = BOUNDS; p < count; p++) {
        double speed = 0;
        printf("  %-20s", passes[p].name);
        for (int32_t k = 0; k < RUNGS; k++) {
            if (k >= rungs) {
                printf(" %*s", k < 3 ? 8 : 10, "-");
                continue;
            }
            speed = passes[p].bytes / median(passes[p].seconds[k]) / 1e9;
            printf(" %*.1f", k < 3 ? 8 : 10, speed);
        }
        printf("   %5.0f %%\n", 100 * speed / ceiling[passes[p].limit]);
    }
}

int main(int count_of_arguments, char **arguments)
{
    static pass passes[PASSES_MOST];
    const int32_t most = count_of_arguments > 1 ? atoi(arguments[1]) : 2;
    const uint32_t cpu = hr_cpu_detect();
    const int32_t rungs = 1 + !!(cpu & HR_CPU_AVX2) + !!(cpu & HR_CPU_AVX512) +
                          !!(cpu & HR_CPU_AVX512BF16);
    if (most < 1 || most > THREADS_MOST) return 2;
    const arrays a = make_arrays();
    const double array_bytes = 4.0 * ELEMENTS;
    passes[READ] = (pass){ "read", read_run, 1, { { a.rows[2] } }, array_bytes };
    passes[COPY] = (pass){ "copy", copy_run, 1, { { a.rows[0] }, { a.rows[1] } }, 2 * array_bytes };
    passes[MODIFY] = (pass){ "modify", modify_run, 1, { .out = { a.rows[4] } }, 2 * array_bytes };
    for (int32_t threads = 1; threads <= most; threads += threads)
        for (hr_dtype dtype = HR_F32; dtype <= HR_BF16; dtype++) {
            int32_t count = BOUNDS + add_passes(passes + BOUNDS, &a, dtype);
            if (dtype == HR_F32) count += add_updates(passes + count, &a);
            if (count_of_arguments > 2)
                count = BOUNDS + keep_named(passes + BOUNDS, count - BOUNDS, arguments[2]);
            measure(passes, count, &a, dtype, threads, rungs);
            print_table(passes, count, hr_dtype_name(dtype), threads, rungs);
        }
    return 0;
}
