/* SPDX-License-Identifier: Apache-2.0 */
/* ceiling.h - the peak throughput of the cores, measured in the same minute as a kernel.
 *
 * Time is the longest CPU time of a thread, not wall time, which on a shared machine depends on
 * other processes. Only fractions of a ceiling are comparable between runs. */
#ifndef HR_BENCH_CEILING_H
#define HR_BENCH_CEILING_H

#include <immintrin.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cpu.h"
#include "ops/simd/amx.h"

enum { HR_BENCH_THREADS_MOST = 64, HR_CEILING_CHAINS = 24 };

/* ---- work on several threads ---- */

typedef void hr_bench_fn(void *work, int32_t thread, int32_t threads);

typedef struct {
    hr_bench_fn *fn;
    void *work;
    pthread_barrier_t *start;
    int32_t thread, threads;
    double seconds;
} hr_bench_thread;

static inline double hr_bench_cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline void *hr_bench_thread_main(void *argument)
{
    hr_bench_thread *own = argument;
    hr_cpu_flush_denormals();
    pthread_barrier_wait(own->start);
    const double start = hr_bench_cpu_seconds();
    own->fn(own->work, own->thread, own->threads);
    own->seconds = hr_bench_cpu_seconds() - start;
    return NULL;
}

/* Calls fn once on each of `threads` threads in parallel; returns the longest CPU time of a
 * thread. */
static inline double hr_bench_seconds(int32_t threads, hr_bench_fn *fn, void *work)
{
    pthread_t handles[HR_BENCH_THREADS_MOST];
    hr_bench_thread own[HR_BENCH_THREADS_MOST];
    pthread_barrier_t start;
    double longest = 0;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int32_t t = 0; t < threads; t++) {
        own[t] = (hr_bench_thread){ fn, work, &start, t, threads, 0 };
        if (pthread_create(&handles[t], NULL, hr_bench_thread_main, &own[t])) abort();
    }
    for (int32_t t = 0; t < threads; t++) {
        pthread_join(handles[t], NULL);
        if (own[t].seconds > longest) longest = own[t].seconds;
    }
    pthread_barrier_destroy(&start);
    return longest;
}

/* ---- memory reads */

typedef struct {
    const void *bytes;
    int64_t count;
    int32_t sums[HR_BENCH_THREADS_MOST];
} hr_bench_reading;

/* Reads eight streams in parallel, one line of each at a time, which gives more bandwidth than one
 * stream. */
__attribute__((target("avx2"), unused)) static void hr_bench_read(void *work, int32_t thread,
                                                                  int32_t threads)
{
    enum { PLACES = 8 };
    hr_bench_reading *all = work;
    const int64_t step = all->count / threads / PLACES / 64 * 64;
    const char *at = (const char *)all->bytes + thread * PLACES * step;
    __m256i sum[PLACES];
    for (int k = 0; k < PLACES; k++) sum[k] = _mm256_setzero_si256();
    for (int64_t i = 0; i < step; i += 64, at += 64)
#pragma GCC unroll 8
        for (int k = 0; k < PLACES; k++) {
            const __m256i *line = (const __m256i *)(const void *)(at + k * step);
            sum[k] = _mm256_add_epi32(sum[k], _mm256_add_epi32(line[0], line[1]));
        }
    for (int k = 1; k < PLACES; k++) sum[0] = _mm256_add_epi32(sum[0], sum[k]);
    all->sums[thread] = _mm256_extract_epi32(sum[0], 0) + _mm256_extract_epi32(sum[0], 7);
}

/* ---- compute ceilings: 24 independent accumulators in registers hide any latency ---- */

typedef enum {
    HR_CEILING_FMA_256,
    HR_CEILING_FMA_512,
    HR_CEILING_BF16, /* vdpbf16ps */
    HR_CEILING_AMX,  /* both operands streamed from L2 */
    HR_CEILING_KINDS
} hr_ceiling;

enum {
    HR_CEILING_ITERATIONS = 400000,
    HR_CEILING_TILE_BYTES = 1024,
    HR_CEILING_ITERATION_BYTES = 4 * HR_CEILING_TILE_BYTES, /* two tiles of each operand */
    HR_CEILING_STREAM_BYTES = 512 * 1024 /* ten times L1, a quarter of L2 on machines with AMX */
};

__attribute__((target("avx2,fma"), noinline)) static void hr_ceiling_spin_256(void)
{
    enum { CHAINS = 12 }; /* of 16 registers */
    __m256 sum[CHAINS], x = _mm256_setzero_ps();
    __asm__ volatile("" : "+x"(x));
    for (int i = 0; i < CHAINS; i++) sum[i] = x;
    for (int64_t iteration = 0; iteration < HR_CEILING_ITERATIONS; iteration++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++) sum[i] = _mm256_fmadd_ps(x, x, sum[i]);
        __asm__ volatile("" : "+x"(x));
    }
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; i++) __asm__ volatile("" ::"x"(sum[i]));
}

__attribute__((target("avx512f"), noinline)) static void hr_ceiling_spin_512(void)
{
    __m512 sum[HR_CEILING_CHAINS], x = _mm512_setzero_ps();
    __asm__ volatile("" : "+v"(x));
    for (int i = 0; i < HR_CEILING_CHAINS; i++) sum[i] = x;
    for (int64_t iteration = 0; iteration < HR_CEILING_ITERATIONS; iteration++) {
#pragma GCC unroll 24
        for (int i = 0; i < HR_CEILING_CHAINS; i++) sum[i] = _mm512_fmadd_ps(x, x, sum[i]);
        __asm__ volatile("" : "+v"(x));
    }
#pragma GCC unroll 24
    for (int i = 0; i < HR_CEILING_CHAINS; i++) __asm__ volatile("" ::"v"(sum[i]));
}

__attribute__((target("avx512f,avx512bf16"), noinline)) static void hr_ceiling_spin_bf16(void)
{
    __m512 sum[HR_CEILING_CHAINS], x = _mm512_setzero_ps();
    __asm__ volatile("" : "+v"(x));
    for (int i = 0; i < HR_CEILING_CHAINS; i++) sum[i] = x;
    for (int64_t iteration = 0; iteration < HR_CEILING_ITERATIONS; iteration++) {
#pragma GCC unroll 24
        for (int i = 0; i < HR_CEILING_CHAINS; i++)
            sum[i] = _mm512_dpbf16_ps(sum[i], (__m512bh)x, (__m512bh)x);
        __asm__ volatile("" : "+v"(x));
    }
#pragma GCC unroll 24
    for (int i = 0; i < HR_CEILING_CHAINS; i++) __asm__ volatile("" ::"v"(sum[i]));
}

/* A block of 2 x 2 tiles, the most that eight tiles allow, with four loads for four products, like
 * a product with nothing in L1. All of it is assembly, so compiling it needs no flags. */
static __attribute__((noinline)) void hr_ceiling_stream_amx(const uint8_t *panels)
{
    int64_t at = 0;
    hr_tile_config();
    for (int64_t iteration = 0; iteration < HR_CEILING_ITERATIONS; iteration++) {
        const uint8_t *tiles = panels + at;
        hr_tile_load(4, tiles, 64);
        hr_tile_load(5, tiles + HR_CEILING_TILE_BYTES, 64);
        hr_tile_load(6, tiles + 2 * HR_CEILING_TILE_BYTES, 64);
        hr_tile_load(7, tiles + 3 * HR_CEILING_TILE_BYTES, 64);
        hr_tile_dpbf16(0, 4, 6);
        hr_tile_dpbf16(1, 4, 7);
        hr_tile_dpbf16(2, 5, 6);
        hr_tile_dpbf16(3, 5, 7);
        at = (at + HR_CEILING_ITERATION_BYTES) % HR_CEILING_STREAM_BYTES;
    }
    hr_tile_release();
}

typedef struct {
    hr_ceiling kind;
    const uint8_t *panels; /* AMX only */
} hr_ceiling_probe;

static inline void hr_ceiling_work(void *work, int32_t thread, int32_t threads)
{
    const hr_ceiling_probe *probe = work;
    (void)thread;
    (void)threads;
    switch (probe->kind) {
    case HR_CEILING_FMA_256: hr_ceiling_spin_256(); break;
    case HR_CEILING_FMA_512: hr_ceiling_spin_512(); break;
    case HR_CEILING_AMX: hr_ceiling_stream_amx(probe->panels); break;
    default: hr_ceiling_spin_bf16(); break;
    }
}

/* GFLOP/s of all threads together. The machine must have the instructions. */
static inline double hr_ceiling_gflops(hr_ceiling kind, int32_t threads)
{
    static const int64_t flops_per_iteration[HR_CEILING_KINDS] = {
        12 * 8 * 2, HR_CEILING_CHAINS * 16 * 2, HR_CEILING_CHAINS * 16 * 4, 4 * 16 * 16 * 32 * 2
    };
    uint8_t *panels = NULL;
    if (kind == HR_CEILING_AMX) {
        panels = aligned_alloc(4096, HR_CEILING_STREAM_BYTES);
        if (!panels) abort();
        memset(panels, 0, HR_CEILING_STREAM_BYTES); /* unwritten pages all map to one zero page */
    }
    hr_ceiling_probe probe = { kind, panels };
    const double seconds = hr_bench_seconds(threads, hr_ceiling_work, &probe);
    free(panels);
    return 1e-9 * (double)(threads * flops_per_iteration[kind]) * HR_CEILING_ITERATIONS / seconds;
}

/* The ceiling for products with a CPU feature mask (base/cpu.h) and bf16 or fp32 activations. */
static inline hr_ceiling hr_ceiling_of(uint32_t cpu_mask, int bf16)
{
    if (bf16 && (cpu_mask & HR_CPU_AMX)) return HR_CEILING_AMX;
    if (bf16 && (cpu_mask & HR_CPU_AVX512BF16)) return HR_CEILING_BF16;
    return cpu_mask & HR_CPU_AVX512 ? HR_CEILING_FMA_512 : HR_CEILING_FMA_256;
}

#endif
