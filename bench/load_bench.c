/* SPDX-License-Identifier: Apache-2.0 */
/* bench/load_bench.c - loads a folder of about 1 GB into a model's weights, compared with reading
 * the same file and discarding it: with a cold and a warm page cache. Best of a few alternating
 * rounds; also the peak memory of the process in addition to the weights.
 *
 *     load_bench [folder [threads [type [format [rounds]]]]]
 *
 *     type    dtype of the file: f32, f16, bf16, or e4m3 with scales (vectors stay bf16)
 *     format  what is kept: fp32, bf16, or both (bf16 and fp32 masters, as in training)
 *
 * The file is in the folder (/tmp) during the benchmark. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "base/random.h"
#include "checkpoint/load.h"
#include "mem/process.h"
#include "ops/cpu.h"
#include "plain.h"
#include "sections/assemble.h"

enum { LAYERS = 8, D = 2048, F = 5632, V = 32000, PIECE_BYTES = 1 << 20 };

typedef struct {
    hr_config config;
    hr_program program;
    hr_pool pool;
    hr_weights_in in;
    void **weights;  /* [param_count] */
    float **masters; /* [param_count], null: the weights are the masters */
    void *staging;
    int64_t weight_bytes, file_bytes;
    char path[512];
    const char *type, *format;
} bench;

/* Allocates memory and touches all of it; weights in huge pages where the system grants them, like
 * an arena. */
static void *take(int64_t bytes)
{
    enum { HUGE = 2 << 20 };
    const int64_t align = bytes > HUGE ? HUGE : 4096;
    char *memory = mmap(NULL, (size_t)(bytes + align), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) abort();
    memory += hr_round_up((int64_t)(uintptr_t)memory, align) - (int64_t)(uintptr_t)memory;
    if (align == HUGE) madvise(memory, (size_t)bytes / HUGE * HUGE, MADV_HUGEPAGE);
    for (int64_t i = 0; i < bytes; i += 4096) memory[i] = 0;
    return memory;
}

static void put(FILE *file, const void *bytes, int64_t count)
{
    if (fwrite(bytes, 1, (size_t)count, file) != (size_t)count) abort();
}

/* Appends the entry of a tensor at the end of the data. N 0: a vector. */
static int64_t put_entry(char *header, int64_t *end, const char *name, const char *dtype,
                         int64_t size, int64_t K, int64_t N)
{
    int64_t used = sprintf(header, "%c\"%s\":{\"dtype\":\"%s\",\"shape\":[%lld", *end ? ',' : '{',
                           name, dtype, (long long)K);
    if (N) used += sprintf(header + used, ",%lld", (long long)N);
    const int64_t begin = *end;
    *end += K * hr_max(N, 1) * size;
    return used + sprintf(header + used, "],\"data_offsets\":[%lld,%lld]}", (long long)begin,
                          (long long)*end);
}

/* Random numbers near 1, to avoid special values; those of e4m3 are also positive scales. */
static void write_model(bench *b)
{
    static char header[1 << 20];
    static uint32_t noise[PIECE_BYTES / 4];
    int64_t used = 8, end = 0;
    const bool wide = !strcmp(b->type, "f32"), half = !strcmp(b->type, "f16");
    const bool scaled = !strcmp(b->type, "e4m3");
    FILE *file = fopen(b->path, "wb");
    if (!file) abort();
    const uint32_t random = scaled ? 0x07070707 : 0x807f807f;
    const uint32_t one = scaled ? 0x38383838 : half ? 0x3c003c00 : 0x3f003f00;
    for (int64_t i = 0; i < PIECE_BYTES / 4; i++)
        noise[i] = ((uint32_t)hr_random_mix((uint64_t)i) & random) | one;
    for (int32_t p = 0; p < b->program.param_count; p++) {
        const hr_param *param = &b->program.params[p];
        const bool turned = param->external_transposed && param->dims[1];
        const int64_t K = param->dims[turned], N = param->dims[!turned];
        const bool blocks = scaled && N;
        used += put_entry(header + used, &end, param->external_name,
                          blocks ? "F8_E4M3"
                          : wide ? "F32"
                          : half ? "F16"
                                 : "BF16",
                          blocks ? 1
                          : wide ? 4
                                 : 2,
                          K, N);
        char name[160];
        snprintf(name, sizeof name, "%s_scale_inv", param->external_name);
        if (blocks)
            used += put_entry(header + used, &end, name, "F32", 4, hr_scale_blocks(K),
                              hr_scale_blocks(N));
    }
    used += sprintf(header + used, "}");
    for (int32_t i = 0; i < 8; i++) header[i] = (char)((uint64_t)(used - 8) >> (8 * i));
    put(file, header, used);
    for (int64_t at = 0; at < end; at += PIECE_BYTES)
        put(file, noise, hr_min(PIECE_BYTES, end - at));
    if (fflush(file) || fsync(fileno(file)) || fclose(file)) abort();
    b->file_bytes = used + end;
}

static void empty_cache(const bench *b)
{
    const int file = open(b->path, O_RDONLY);
    if (file < 0 || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)) abort();
    close(file);
}

/* Wall seconds and CPU seconds. */
typedef struct {
    double wall, worked;
} times;

static double wall(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static times read_alone(const bench *b)
{
    const double begin = now(), began = wall();
    const int file = open(b->path, O_RDONLY);
    for (int64_t at = 0; at < b->file_bytes; at += PIECE_BYTES)
        if (pread(file, b->staging, PIECE_BYTES, at) <= 0) abort();
    close(file);
    return (times){ wall() - began, now() - begin };
}

static times load_all(bench *b)
{
    hr_error err;
    const double begin = now(), began = wall();
    for (int32_t p = 0; p < b->program.param_count; p++) {
        const hr_param *param = &b->program.params[p];
        const bool narrow = param->weight != param->master;
        const hr_weights_place place = { narrow ? b->masters[p] : b->weights[p],
                                         narrow ? b->weights[p] : NULL, NULL };
        must(hr_load(&b->in, p, &b->pool, place, b->staging, HR_LOAD_STAGING_BYTES, NULL, &err),
             &err);
    }
    return (times){ wall() - began, now() - begin };
}

static void open_model(bench *b)
{
    hr_error err;
    const int64_t bytes = 64 << 20;
    const bool both = !strcmp(b->format, "both");
    hr_region region = hr_region_over(take(bytes), bytes);
    hr_config_default(&b->config);
    b->config.model.family = HR_FAMILY_LLAMA;
    b->config.model.d_model = D;
    b->config.model.n_heads = 16;
    b->config.model.d_ff = F;
    b->config.model.vocab_size = V;
    b->config.model.n_layers = strcmp(b->type, "f32") ? LAYERS : LAYERS / 2 - 1;
    b->config.train.dtype = strcmp(b->format, "fp32") ? HR_FORMAT_BF16 : HR_FORMAT_FP32;
    must(hr_model_assemble(&b->config, &hr_cpu_backend, 1, &region, &b->program, &err), &err);
    madvise(region.base + hr_round_up(region.used, 4096),
            (size_t)(bytes - hr_round_up(region.used, 4096)), MADV_DONTNEED);
    b->weights = calloc((size_t)b->program.param_count, sizeof *b->weights);
    b->masters = calloc((size_t)b->program.param_count, sizeof *b->masters);
    for (int32_t p = 0; p < b->program.param_count; p++) {
        const hr_tensor *tensor = &b->program.tensors[b->program.params[p].weight];
        b->weight_bytes += hr_round_up(hr_tensor_bytes(tensor), 64);
        if (both) b->weight_bytes += hr_round_up(2 * hr_tensor_bytes(tensor), 64);
    }
    char *whole = take(b->weight_bytes);
    for (int32_t p = 0; p < b->program.param_count; p++) {
        const hr_tensor *tensor = &b->program.tensors[b->program.params[p].weight];
        b->weights[p] = whole;
        whole += hr_round_up(hr_tensor_bytes(tensor), 64);
        if (!both) continue;
        b->masters[p] = (float *)whole;
        whole += hr_round_up(2 * hr_tensor_bytes(tensor), 64);
    }
    b->staging = take(HR_LOAD_STAGING_BYTES);
}

static void open_source(bench *b, const char *folder)
{
    hr_error err;
    const int64_t scratch_bytes = hr_weights_in_scratch_bytes(folder);
    const int64_t kept_bytes = hr_weights_in_bytes(&b->program);
    hr_region scratch = hr_region_over(take(scratch_bytes), scratch_bytes);
    hr_region kept = hr_region_over(take(kept_bytes), kept_bytes);
    must(hr_weights_in_open(&b->in, &b->program, HR_PART_MODEL, folder, hr_cpu_detect(), &kept,
                            &scratch, &err),
         &err);
    munmap(scratch.base, (size_t)scratch_bytes);
}

int main(int argc, char **argv)
{
    static bench b;
    hr_error err;
    char folder[480];
    const int32_t threads = argc > 2 ? atoi(argv[2]) : 2;
    const int32_t rounds = argc > 5 ? atoi(argv[5]) : 5;
    b.type = argc > 3 ? argv[3] : "bf16";
    b.format = argc > 4 ? argv[4] : "bf16";
    snprintf(folder, sizeof folder, "%s/load_bench_XXXXXX", argc > 1 ? argv[1] : "/tmp");
    if (!mkdtemp(folder)) abort();
    snprintf(b.path, sizeof b.path, "%s/model.safetensors", folder);
    open_model(&b);
    write_model(&b);
    open_source(&b, folder);
    must(hr_pool_open(&b.pool, take(hr_pool_bytes(threads) + 4096), hr_pool_bytes(threads), threads,
                      &err),
         &err);
    times best[2][2] = { { { 1e9, 1e9 }, { 1e9, 1e9 } }, { { 1e9, 1e9 }, { 1e9, 1e9 } } };
    for (int32_t i = 0; i < 2 * rounds; i++)
        for (int32_t loads = 0; loads < 2; loads++) {
            const int32_t warm = i >= rounds;
            if (!warm) empty_cache(&b);
            const times took = loads ? load_all(&b) : read_alone(&b);
            best[warm][loads].wall = fmin(best[warm][loads].wall, took.wall);
            best[warm][loads].worked = fmin(best[warm][loads].worked, took.worked);
        }
    const double gigabytes = 1e-9 * (double)b.file_bytes;
    printf("%.3f GB of %s into %s, %d threads\n", gigabytes, b.type, b.format, threads);
    for (int32_t warm = 0; warm < 2; warm++) {
        const times alone = best[warm][0], loading = best[warm][1];
        printf("  %s  pread alone %6.2f GB/s, loading %6.2f GB/s: %3.0f %%; processor time %.3f s, "
               "%.3f s\n",
               warm ? "in memory  " : "in no cache", gigabytes / alone.wall,
               gigabytes / loading.wall, 100 * alone.wall / loading.wall, alone.worked,
               loading.worked);
    }
    printf("  weights %lld bytes; the process at its highest %lld more\n",
           (long long)b.weight_bytes, (long long)(hr_process_peak_bytes() - b.weight_bytes));
    hr_pool_close(&b.pool);
    hr_weights_in_close(&b.in);
    remove(b.path);
    rmdir(folder);
    return 0;
}
