/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of a d=512 model: GFLOP/s, and the fraction of a ceiling measured in between.
 *
 *     linear_bench [RUNG [THREADS [ROUNDS]]] */
#include <stdio.h>
#include <string.h>

#include "base/bf16.h"
#include "ceiling.h"
#include "ops/cpu.h"
#include "ops/kernels.h"
#include "ops/linear/linear.h"

enum { ROUNDS_MOST = 101, SEQUENCE = 128 };

typedef struct {
    const char *name;
    hr_run_fn *run;
    hr_act act;
    bool bias, pre, other; /* other: residual, addend; with act in dx: aux */
} product;

static const product products[] = {
    { "forward", hr_linear_run, HR_ACT_NONE, true, false, false },
    { "forward relu", hr_linear_run, HR_ACT_RELU, true, false, false },
    { "forward gelu+pre", hr_linear_run, HR_ACT_GELU, true, true, false },
    { "forward residual", hr_linear_run, HR_ACT_NONE, true, false, true },
    { "dx", hr_linear_dx_run, HR_ACT_NONE, false, false, false },
    { "dx relu+addend", hr_linear_dx_run, HR_ACT_RELU, false, false, true },
    { "dx gelu+addend", hr_linear_dx_run, HR_ACT_GELU, false, false, true },
    { "dw", hr_linear_dw_run, HR_ACT_NONE, false, false, false },
    { "dw+db", hr_linear_dw_run, HR_ACT_NONE, true, false, false },
};

static const int64_t shapes[][3] = {
    /* M, K, N */
    { 4096, 512, 512 },  { 4096, 512, 2048 }, { 4096, 2048, 512 },  { 1024, 512, 512 },
    { 1024, 512, 2048 }, { 1024, 2048, 512 }, { 1024, 512, 10000 },
};

typedef struct {
    hr_call call;
    hr_run_fn *run;
    int64_t calls;
} job;

static void run_job(void *work, int32_t thread, int32_t threads)
{
    const job *all = work;
    hr_call call = all->call;
    call.thread = thread;
    call.threads = threads;
    for (int64_t i = 0; i < all->calls; i++) all->run(&call);
}

static void *take(int64_t bytes)
{
    void *array = aligned_alloc(4096, (size_t)(bytes + 4095) / 4096 * 4096 + 4096);
    if (!array) abort();
    memset(array, 0, (size_t)bytes);
    return array;
}

/* Small, varied numbers: some machines are slower, or cooler, on zeros. */
static void *take_numbers(int64_t count, hr_dtype dtype)
{
    void *array = take(count * hr_dtype_bytes(dtype));
    for (int64_t i = 0; i < count; i++) {
        const float value = (float)(i * 7919 % 2003 - 1001) / 1024;
        if (dtype == HR_BF16) ((hr_bf16 *)array)[i] = hr_bf16_from_f32(value);
        else ((float *)array)[i] = value;
    }
    return array;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(job *work, const int64_t shape[3], const char *name, hr_ceiling ceiling,
                    int32_t threads, int32_t rounds)
{
    double rates[ROUNDS_MOST], ratios[ROUNDS_MOST], top_most = 0;
    const double flops = 2.0 * (double)shape[0] * (double)shape[1] * (double)shape[2];
    work->calls = 1 + (int64_t)(1e9 / flops);
    hr_bench_seconds(threads, run_job, work);
    for (int32_t round = 0; round < rounds; round++) {
        const double top = hr_ceiling_gflops(ceiling, threads);
        top_most = top > top_most ? top : top_most;
        const double seconds = hr_bench_seconds(threads, run_job, work);
        rates[round] = 1e-9 * flops * (double)work->calls / seconds;
        ratios[round] = rates[round] / top;
    }
    qsort(rates, (size_t)rounds, sizeof *rates, by_value);
    qsort(ratios, (size_t)rounds, sizeof *ratios, by_value);
    printf("%5lld x %4lld x %5lld  %-4s %-17s", (long long)shape[0], (long long)shape[1],
           (long long)shape[2], hr_dtype_name(work->call.dtype), name);
    printf(" %6.0f GFLOP/s, %5.1f %% of the ceiling, best %.1f %%\n", rates[rounds / 2],
           100 * ratios[rounds / 2], 100 * rates[rounds - 1] / top_most);
    fflush(stdout);
}

static void measure_shape(const hr_kernels *kernels, const int64_t shape[3], hr_dtype dtype,
                          hr_ceiling ceiling, int32_t threads, int32_t rounds)
{
    const int64_t M = shape[0], K = shape[1], N = shape[2];
    const int64_t elements = hr_layout_elements(hr_linear_layout(dtype), K, N);
    void *x = take_numbers(M * K, dtype), *x2 = take_numbers(M * K, dtype);
    void *y = take_numbers(M * N, dtype), *y2 = take_numbers(M * N, dtype);
    void *w = take_numbers(elements, dtype), *out = take(M * (K > N ? K : N) * 4);
    float *dw = take(elements * 4), *vector = take(N * 4);
    for (size_t p = 0; p < sizeof products / sizeof *products; p++) {
        const product *at = &products[p];
        const hr_linear_attr attr = { K, N, SEQUENCE, at->act };
        job work = { .run = at->run };
        hr_call *call = &work.call;
        *call = (hr_call){ .attr = &attr, .kernels = kernels, .rows = M, .dtype = dtype };
        if (at->run == hr_linear_run) {
            void *const in[4] = { x, w, at->bias ? vector : NULL, at->other ? y : NULL };
            memcpy(call->in, in, sizeof in);
            call->out[0] = out;
            call->out[1] = at->pre ? y2 : NULL;
            call->scratch = take(hr_linear_cpu.scratch_bytes(&attr, M, threads));
        } else if (at->run == hr_linear_dx_run) {
            void *const in[4] = { y, w, at->other ? x : NULL, at->other ? x2 : NULL };
            memcpy(call->in, in, sizeof in);
            call->out[0] = out;
            call->scratch = take(hr_linear_dx_cpu.scratch_bytes(&attr, M, threads));
        } else {
            call->in[0] = x;
            call->in[1] = y;
            call->out[0] = dw;
            call->out[1] = at->bias ? vector : NULL;
            call->scratch = take(hr_linear_dw_cpu.scratch_bytes(&attr, M, threads));
        }
        measure(&work, shape, at->name, ceiling, threads, rounds);
        free(call->scratch);
    }
    void *const arrays[] = { x, x2, y, y2, w, out, dw, vector };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

int main(int argc, char **argv)
{
    const uint32_t here = hr_cpu_detect();
    const int64_t asked = argc > 1 ? hr_cpu_mask_of(argv[1]) : (int64_t)here;
    const int32_t threads = argc > 2 ? atoi(argv[2]) : 2, rounds = argc > 3 ? atoi(argv[3]) : 5;
    if (asked < 0 || threads < 1 || threads > HR_BENCH_THREADS_MOST || rounds < 1 ||
        rounds > ROUNDS_MOST) {
        fprintf(stderr, "usage: linear_bench [RUNG [THREADS [ROUNDS]]]\n");
        return 2;
    }
    const uint32_t mask = hr_cpu_ladder((uint32_t)asked & here);
    hr_kernels kernels;
    hr_kernels_fill(&kernels, mask);
    printf("rung %s, %d threads, medians of %d\n", hr_cpu_rung_name(mask), threads, rounds);
    for (int32_t dtype = HR_F32; dtype <= HR_BF16; dtype++) {
        const hr_ceiling ceiling = hr_ceiling_of(mask, dtype == HR_BF16);
        printf("%s: the ceiling is %.0f GFLOP/s\n", hr_dtype_name((hr_dtype)dtype),
               hr_ceiling_gflops(ceiling, threads));
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            measure_shape(&kernels, shapes[i], (hr_dtype)dtype, ceiling, threads, rounds);
    }
    return 0;
}
