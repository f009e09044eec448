/* SPDX-License-Identifier: Apache-2.0 */
/* attention_cached_bench.c - attention of one token, and of a piece of a prompt, over KV caches of
 * 4096 tokens, in enough layers to exceed all CPU caches; compared with reading the same bytes
 * once.
 *
 * Usage: [threads] [rung]. */
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "ceiling.h"
#include "ops/attention/attention.h"
#include "ops/cpu.h"
#include "ops/kernels.h"
#include "ops/kv_cache/kv_cache.h"

enum { POSITIONS = 4096, REPEATS = 7 };

static const int64_t all_bytes = INT64_C(256) << 20;

typedef struct {
    const char *name;
    int32_t H, G, width;
    int64_t rows;
    hr_attention_mask mask;
} shape;

static const shape shapes[] = {
    { "8 heads of 64", 8, 8, 64, 1, { HR_PATTERN_DENSE, 64, 0, 1 } },
    { "32 on 8 of 128", 32, 8, 128, 1, { HR_PATTERN_DENSE, 64, 0, 1 } },
    { "window of 1024", 32, 8, 128, 1, { HR_PATTERN_SLIDING, 64, 1024, 1 } },
    { "8 heads of 64", 8, 8, 64, 256, { HR_PATTERN_DENSE, 64, 0, 1 } },
    { "32 on 8 of 128", 32, 8, 128, 256, { HR_PATTERN_DENSE, 64, 0, 1 } },
};

enum { SHAPES = sizeof shapes / sizeof *shapes };

typedef struct {
    hr_call call;
    hr_attention_cached_attr attr;
    uint8_t *caches;
    int64_t layers, layer_bytes; /* of keys and of values */
} job;

static void attend(void *argument, int32_t thread, int32_t threads)
{
    const job *j = argument;
    hr_call call = j->call;
    call.thread = thread;
    call.threads = threads;
    for (int64_t layer = 0; layer < j->layers; layer++) {
        call.in[1] = j->caches + 2 * layer * j->layer_bytes;
        call.in[2] = j->caches + (2 * layer + 1) * j->layer_bytes;
        hr_attention_cached_run(&call);
    }
}

static void *room(int64_t bytes)
{
    void *memory = aligned_alloc(4096, (size_t)((bytes + 4095) / 4096 * 4096));
    if (!memory) abort();
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

static double least(const double *values)
{
    double best = values[0];
    for (int i = 1; i < REPEATS; i++)
        if (values[i] < best) best = values[i];
    return best;
}

static void measure(const hr_kernels *kernels, const shape *s, hr_dtype dtype, int32_t threads,
                    uint8_t *caches)
{
    const bool slides = s->mask.kind == HR_PATTERN_SLIDING;
    const int64_t q_width = (int64_t)s->H * s->width;
    int32_t position = POSITIONS - (int32_t)s->rows;
    job j = { .attr = { .H = s->H,
                        .G = s->G,
                        .head_width = s->width,
                        .capacity = hr_kv_cache_rows(POSITIONS, s->rows,
                                                     slides ? s->mask.window : 0),
                        .q_width = q_width,
                        .q_head_stride = s->width,
                        .mask = s->mask,
                        .scale = 0.1f },
              .caches = caches };
    j.layer_bytes = s->G * j.attr.capacity * s->width * hr_dtype_bytes(dtype);
    j.layers = all_bytes / (2 * j.layer_bytes);
    if (s->rows > 1) j.layers = 2;
    void *q = room(s->rows * q_width * 4), *o = room(s->rows * q_width * 4);
    fill(q, s->rows * q_width, dtype);
    j.call = (hr_call){ .in = { q, NULL, NULL, &position },
                        .out = { o },
                        .attr = &j.attr,
                        .kernels = kernels,
                        .rows = s->rows,
                        .dtype = dtype };
    j.call.scratch = room(hr_attention_cached_cpu.scratch_bytes(&j.attr, s->rows, threads));
    double attended[REPEATS], read[REPEATS];
    hr_bench_reading reading = { .bytes = caches, .count = 2 * j.layers * j.layer_bytes };
    for (int r = -1; r < REPEATS; r++) { /* the first round warms up */
        attended[r < 0 ? 0 : r] = hr_bench_seconds(threads, attend, &j);
        read[r < 0 ? 0 : r] = hr_bench_seconds(threads, hr_bench_read, &reading);
    }
    const double bytes = (double)(2 * j.layers * j.layer_bytes);
    const double pairs = (double)(s->rows * j.layers) * (double)j.attr.capacity;
    printf("%-4s %-14s %3d rows: %8.3f ms a layer, ", hr_dtype_name(dtype), s->name, (int)s->rows,
           least(attended) * 1e3 / (double)j.layers);
    if (s->rows == 1)
        printf("%5.1f GB/s, %3.0f %% of reading (%.1f)\n", 1e-9 * bytes / least(attended),
               100 * least(read) / least(attended), 1e-9 * bytes / least(read));
    else printf("%5.0f GFLOP/s\n", 4e-9 * pairs * (double)q_width / least(attended));
    free(q);
    free(o);
    free(j.call.scratch);
}

int main(int argc, char **argv)
{
    static hr_kernels kernels;
    const uint32_t here = hr_cpu_detect();
    const int64_t wanted = argc > 2 ? hr_cpu_mask_of(argv[2]) : here;
    const int32_t threads = argc > 1 ? (int32_t)atoi(argv[1]) : 2;
    if (wanted < 0 || threads < 1 || threads > HR_BENCH_THREADS_MOST) {
        fprintf(stderr, "usage: %s [threads] [ref|avx2|avx512|avx512bf16|amx]\n", argv[0]);
        return 2;
    }
    hr_kernels_fill(&kernels, here & (uint32_t)wanted);
    printf("%s, %d threads\n", hr_cpu_rung_name(here & (uint32_t)wanted), threads);
    uint8_t *caches = room(all_bytes);
    for (int type = 1; type >= 0; type--) {
        fill(caches, all_bytes / hr_dtype_bytes(type ? HR_BF16 : HR_F32), type ? HR_BF16 : HR_F32);
        for (int s = 0; s < SHAPES; s++)
            measure(&kernels, &shapes[s], type ? HR_BF16 : HR_F32, threads, caches);
    }
    free(caches);
    return 0;
}
