/* SPDX-License-Identifier: Apache-2.0 */
/* attention_bench.c - forward and backward of attention: 4096 tokens or one longer sequence, 8
 * heads of 64, fused, with keys for each head or for groups of heads. Compared with the ceiling of
 * the instruction, measured between the repetitions.
 *
 * Counted work: unmasked pairs, 4 * width FLOP each forward, 10 backward. Usage: [threads]
 * [rung]. */
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "ceiling.h"
#include "ops/attention/attention.h"
#include "ops/attention/attention_build.h"
#include "ops/cpu.h"
#include "ops/kernels.h"

enum { TOKENS = 4096, TOKENS_MOST = 32768, HEADS = 8, WIDTH = 64, REPEATS = 7 };

typedef struct {
    const char *name;
    int64_t T;
    hr_attention_mask mask;
    float dropout;
    int32_t G; /* 0: as many as heads */
} shape;

static const shape shapes[] = {
    { "dense", 128, { HR_PATTERN_DENSE, 64, 0, 1 }, 0 },
    { "dense", 512, { HR_PATTERN_DENSE, 64, 0, 1 }, 0 },
    { "dense", 4096, { HR_PATTERN_DENSE, 64, 0, 1 }, 0 },
    { "8 heads, 1 of keys", 8192, { HR_PATTERN_DENSE, 64, 0, 1 }, 0, 1 },
    { "8 heads, 2 of keys", 32768, { HR_PATTERN_DENSE, 64, 0, 1 }, 0, 2 },
    { "local w=1", 4096, { HR_PATTERN_LOCAL, 64, 1, 1 }, 0 },
    { "global s=16", 4096, { HR_PATTERN_GLOBAL, 64, 0, 16 }, 0 },
    { "mixed w=1 s=16", 4096, { HR_PATTERN_MIXED, 64, 1, 16 }, 0 },
    { "sliding 256", 4096, { HR_PATTERN_SLIDING, 64, 256, 1 }, 0 },
    { "sliding 1024", 4096, { HR_PATTERN_SLIDING, 64, 1024, 1 }, 0 },
    { "dropout 0.1", 512, { HR_PATTERN_DENSE, 64, 0, 1 }, 0.1f },
};

enum { SHAPES = sizeof shapes / sizeof *shapes };

typedef struct {
    hr_call call;
    hr_run_fn *run;
    int32_t phases;
} job;

static int64_t tokens_of(const shape *s)
{
    return s->T > TOKENS ? s->T : TOKENS;
}

static void work(void *argument, int32_t thread, int32_t threads)
{
    const job *j = argument;
    hr_call call = j->call;
    call.thread = thread;
    call.threads = threads;
    j->run(&call);
}

static void *room(int64_t bytes)
{
    void *memory = aligned_alloc(4096, (size_t)((bytes + 4095) / 4096 * 4096));
    if (!memory) abort();
    memset(memory, 0, (size_t)bytes);
    return memory;
}

static void fill(void *at, int64_t count, hr_dtype dtype)
{
    for (int64_t i = 0; i < count; i++) {
        const float value = (float)(i * 2654435761u % 65536) / 32768 - 1;
        if (dtype == HR_F32) ((float *)at)[i] = value;
        else ((hr_bf16 *)at)[i] = hr_bf16_from_f32(value);
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

typedef struct {
    uint32_t mask;
    int32_t threads;
    hr_kernels kernels;
} machine;

/* Per head q | k | v, as in GPT-NeoX, or all q, all k, all v. */
static hr_attention_attr attr_of(const shape *s)
{
    if (s->G)
        return (hr_attention_attr){ .H = HEADS,
                                    .G = s->G,
                                    .head_width = WIDTH,
                                    .T = s->T,
                                    .q_width = (HEADS + 2 * s->G) * WIDTH,
                                    .k_offset = HEADS * WIDTH,
                                    .v_offset = (HEADS + s->G) * WIDTH,
                                    .q_head_stride = WIDTH,
                                    .k_head_stride = WIDTH,
                                    .v_head_stride = WIDTH,
                                    .mask = s->mask,
                                    .scale = 0.125f };
    return (hr_attention_attr){ .H = HEADS,
                                .G = HEADS,
                                .head_width = WIDTH,
                                .T = s->T,
                                .q_width = 3 * HEADS * WIDTH,
                                .k_offset = WIDTH,
                                .v_offset = 2 * WIDTH,
                                .q_head_stride = 3 * WIDTH,
                                .k_head_stride = 3 * WIDTH,
                                .v_head_stride = 3 * WIDTH,
                                .mask = s->mask,
                                .scale = 0.125f,
                                .dropout = s->dropout };
}

/* Prints one line. `dense` has the seconds of the last dense shape, or receives those of this
 * one. */
static void measure_shape(const machine *m, const shape *s, hr_call fwd, hr_call bwd,
                          double dense[2])
{
    const hr_attention_attr attr = attr_of(s);
    void *scratch = room(hr_attention_bwd_cpu.scratch_bytes(&attr, tokens_of(s), m->threads));
    double seconds[2][REPEATS], ceilings[REPEATS];
    fwd.attr = bwd.attr = &attr;
    fwd.scratch = bwd.scratch = scratch;
    fwd.rows = bwd.rows = tokens_of(s);
    fwd.threads = bwd.threads = m->threads;
    job jobs[2] = { { fwd, hr_attention_run, 1 },
                    { bwd, hr_attention_bwd_run, hr_attention_bwd_phases(&bwd) } };
    const int repeats = s->T > TOKENS ? 1 : REPEATS;
    for (int r = s->T > TOKENS ? 0 : -1; r < repeats; r++) { /* the first round warms up */
        const int at = r < 0 ? 0 : r;
        for (int i = 0; i < 2; i++) {
            seconds[i][at] = 0;
            for (int32_t *phase = &jobs[i].call.phase; *phase < jobs[i].phases; ++*phase)
                seconds[i][at] += hr_bench_seconds(m->threads, work, &jobs[i]);
            jobs[i].call.phase = 0;
        }
        ceilings[at] = hr_ceiling_gflops(hr_ceiling_of(m->mask, fwd.dtype == HR_BF16), m->threads);
    }
    const int64_t pairs = hr_attention_pairs(&attr.mask, attr.T) * (tokens_of(s) / attr.T);
    const double flops = 1e-9 * (double)(pairs * HEADS * WIDTH),
                 ceiling = median(ceilings, repeats);
    const double time[2] = { median(seconds[0], repeats), median(seconds[1], repeats) };
    const double rate[2] = { 4 * flops / time[0], 10 * flops / time[1] };
    printf("%-4s %-14s T %4d: forward %7.2f ms %4.0f GFLOP/s %3.0f %%, "
           "backward %7.2f ms %4.0f GFLOP/s %3.0f %% of %.0f",
           hr_dtype_name(fwd.dtype), s->name, (int)attr.T, time[0] * 1e3, rate[0],
           100 * rate[0] / ceiling, time[1] * 1e3, rate[1], 100 * rate[1] / ceiling, ceiling);
    if (s->G) (void)dense;
    else if (attr.mask.kind == HR_PATTERN_DENSE) memcpy(dense, time, sizeof time);
    else printf("; %.1f %%, %.1f %% of dense", 100 * time[0] / dense[0], 100 * time[1] / dense[1]);
    printf("\n");
    free(scratch);
}

static void measure(const machine *m, hr_dtype dtype)
{
    const int64_t width = HEADS * WIDTH, bytes = hr_dtype_bytes(dtype);
    const int64_t qkv = 3 * TOKENS_MOST * width;
    void *x = room(qkv * bytes), *o = room(qkv / 3 * bytes), *grad_o = room(qkv / 3 * bytes);
    void *grad_x = room(qkv * bytes);
    float *lse = room(TOKENS_MOST * HEADS * 4);
    double dense[2] = { 0 };
    fill(x, qkv, dtype);
    fill(grad_o, qkv / 3, dtype);
    const hr_call fwd = {
        .in = { x }, .out = { o, lse }, .kernels = &m->kernels, .rows = TOKENS, .dtype = dtype
    };
    const hr_call bwd = { .in = { x, NULL, NULL, o, grad_o, lse },
                          .out = { grad_x },
                          .kernels = &m->kernels,
                          .rows = TOKENS,
                          .dtype = dtype };
    for (int s = 0; s < SHAPES; s++) measure_shape(m, &shapes[s], fwd, bwd, dense);
    free(x);
    free(o);
    free(grad_o);
    free(grad_x);
    free(lse);
}

int main(int argc, char **argv)
{
    static machine m = { .threads = 2 };
    const uint32_t here = hr_cpu_detect();
    const int64_t wanted = argc > 2 ? hr_cpu_mask_of(argv[2]) : here;
    if (argc > 1) m.threads = (int32_t)atoi(argv[1]);
    if (wanted < 0 || m.threads < 1 || m.threads > HR_BENCH_THREADS_MOST) {
        fprintf(stderr, "usage: %s [threads] [ref|avx2|avx512|avx512bf16|amx]\n", argv[0]);
        return 2;
    }
    m.mask = here & (uint32_t)wanted;
    hr_kernels_fill(&m.kernels, m.mask);
    printf("%s, %d threads\n", hr_cpu_rung_name(m.mask), m.threads);
    measure(&m, HR_BF16);
    measure(&m, HR_F32);
    return 0;
}
