/* SPDX-License-Identifier: Apache-2.0 */
/* bench/decode_bench.c - time per generated token, batch 1, compared with reading the same bytes
 * once: for each instruction set of this machine, in both formats.
 *
 *     decode_bench RECIPE [threads [rounds [rung]]]
 *
 * Writes a model of the recipe with random weights to a folder in /tmp and generates as `headroom
 * generate` does. Times are CPU times: per token, from one id to the next, of the leading thread,
 * which spins while it waits; of reading, which alternates with it and uses as many threads, the
 * longest of a thread. Each is the shortest of many samples to exclude other processes. A child
 * process writes and reads, because generation must find the process memory that it planned. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/random.h"
#include "ceiling.h"
#include "checkpoint/weights.h"
#include "headroom/generate.h"
#include "ops/cpu.h"
#include "ops/list.h"
#include "plain.h"
#include "plan/compile.h"
#include "sections/assemble.h"

enum { TOKENS = 48, READS = 8, FOLDER_BYTES = 64 };

static const char *const formats[] = { [HR_FORMAT_FP32] = "fp32", [HR_FORMAT_BF16] = "bf16" };

/* ---- the child: writes the model, reads memory */

/* Allocates memory and touches all of it, in huge pages where the system grants them, like an
 * arena. */
static void *take(int64_t bytes)
{
    enum { HUGE = 2 << 20 };
    char *memory = mmap(NULL, (size_t)(bytes + HUGE), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) abort();
    memory += hr_round_up((int64_t)(uintptr_t)memory, HUGE) - (int64_t)(uintptr_t)memory;
    madvise(memory, (size_t)bytes, MADV_HUGEPAGE);
    memset(memory, 1, (size_t)bytes);
    return memory;
}

static void write_model(const hr_config *config, const char *folder)
{
    hr_error err;
    hr_program program;
    hr_weights_out out;
    const int64_t bytes = hr_compile_bytes(config), staging_bytes = 1 << 20;
    hr_region region = hr_region_over(take(bytes), bytes);
    int64_t most = 0;
    must(hr_model_assemble(config, &hr_cpu_backend, 1, &region, &program, &err), &err);
    for (int32_t p = 0; p < program.param_count; p++)
        most = hr_max(most, hr_tensor_bytes(&program.tensors[program.params[p].master]));
    float *values = take(most);
    for (int64_t i = 0; i < most / 4; i++)
        values[i] = 0.04f * ((float)(hr_random_mix((uint64_t)i) >> 40) / (1 << 24) - 0.5f);
    const int64_t text_bytes = hr_weights_text_bytes(&program);
    char *text = take(text_bytes), *staging = take(staging_bytes);
    must(hr_weights_begin(&out, &program, HR_KEPT_WEIGHTS, folder, text, text_bytes, &err), &err);
    for (int32_t p = 0; p < program.param_count; p++)
        must(hr_weights_add(&out, p, values, staging, staging_bytes, &err), &err);
    must(hr_file_commit(&out.file, &err), &err);
    const int64_t config_bytes = hr_weights_config(config, &program, text, text_bytes);
    must(hr_file_begin(&out.file, folder, "config.json", &err), &err);
    must(hr_file_append(&out.file, text, config_bytes, &err), &err);
    must(hr_file_commit(&out.file, &err), &err);
    munmap(values, (size_t)most);
}

/* Bytes of all weights that the operations of a token read, without tables. */
static int64_t bytes_of_token(hr_config config, int32_t format)
{
    hr_error err;
    hr_compiled compiled;
    config.train.dtype = format;
    config.train.seq_len = 2 * TOKENS;
    const int64_t region_bytes = hr_compile_bytes(&config);
    hr_region region = hr_region_over(take(region_bytes), region_bytes);
    must(hr_compile_generation(&config, &hr_cpu_backend, 1, 0, 1, &region, &compiled, &err), &err);
    const hr_program *program = &compiled.program;
    const hr_loop *token = &program->loops[hr_program_loop(program, HR_LOOP_ANSWER_TOKEN)];
    uint8_t *read = calloc((size_t)program->tensor_count, 1);
    for (int32_t s = token->step_first; s <= token->step_last; s++)
        for (int32_t k = 0; k < HR_IN_MAX && program->steps[s].op != HR_OP_embed; k++)
            if (program->steps[s].in[k] != HR_NONE)
                read[hr_tensor_root(program, program->steps[s].in[k])] = 1;
    int64_t bytes = 0;
    for (int32_t t = 0; t < program->tensor_count; t++)
        if (read[t] && program->tensors[t].role == HR_ROLE_WEIGHT)
            bytes += hr_tensor_bytes(&program->tensors[t]);
    free(read);
    munmap(region.base, (size_t)region_bytes);
    return bytes;
}

static void put(int to, const void *value, size_t bytes)
{
    if (write(to, value, bytes) != (ssize_t)bytes) abort();
}

/* Child loop: writes the folder, reports the bytes per token in each format; then, for each request
 * of a number of bytes, replies with the shortest time to read them. */
static void serve(const hr_config *config, const char *folder, int32_t threads, int from, int to)
{
    int64_t asked, bytes[2];
    write_model(config, folder);
    for (int32_t format = HR_FORMAT_FP32; format <= HR_FORMAT_BF16; format++)
        bytes[format] = bytes_of_token(*config, format);
    hr_bench_reading all = { .bytes = take(bytes[HR_FORMAT_FP32]) };
    put(to, bytes, sizeof bytes);
    while (read(from, &asked, sizeof asked) == sizeof asked) {
        double best = 1e9;
        all.count = asked;
        for (int32_t i = 0; i < READS; i++) {
            const double seconds = hr_bench_seconds(threads, hr_bench_read, &all);
            best = seconds < best ? seconds : best;
        }
        put(to, &best, sizeof best);
    }
}

/* ---- the parent: generates */

typedef struct {
    double last, best;
} stopwatch;

static bool on_text(void *context, int32_t id, const char *text, int64_t bytes)
{
    stopwatch *watch = context;
    const double here = hr_bench_cpu_seconds();
    (void)text;
    (void)bytes;
    if (id < 0) return true;
    if (watch->last > 0 && here - watch->last < watch->best) watch->best = here - watch->last;
    watch->last = here;
    return true;
}

static void measure(const char *folder, const char *rung, int32_t format, int64_t bytes,
                    int32_t threads, int32_t rounds, const int pipes[2])
{
    stopwatch watch = { .best = 1e9 };
    double alone = 1e9;
    for (int32_t round = 0; round < rounds; round++) {
        hr_error err;
        hr_generate_result result;
        const hr_infer_request model = { .size = sizeof model,
                                         .folder = folder,
                                         .format = format,
                                         .threads = threads,
                                         .kernels = rung };
        const hr_generate_request request = {
            .size = sizeof request,
            .model = &model,
            .prompt_ids = "1,2,3,4",
            .tokens = TOKENS,
            .sampling = { .repetition_penalty = 1, .temperature = 0.8, .top_p = 1 },
            .wants_ids = true,
            .on_text = on_text,
            .context = &watch,
        };
        double seconds;
        put(pipes[1], &bytes, sizeof bytes);
        if (read(pipes[0], &seconds, sizeof seconds) != sizeof seconds) abort();
        alone = seconds < alone ? seconds : alone;
        watch.last = 0;
        must(hr_generate(&request, &result, &err), &err);
    }
    printf("%-11s %s  %7.1f tokens a second, %5.1f GB/s; reading alone %5.1f GB/s: %3.0f %%\n",
           rung, formats[format], 1 / watch.best, 1e-9 * (double)bytes / watch.best,
           1e-9 * (double)bytes / alone, 100 * alone / watch.best);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const char *const rungs[] = { "avx2", "avx512", "avx512bf16", "amx" };
    static hr_config config;
    char folder[FOLDER_BYTES] = "/tmp/decode_bench_XXXXXX", path[FOLDER_BYTES + 32];
    hr_error err;
    int64_t bytes[2];
    int asks[2], answers[2];
    const int32_t threads = argc > 2 ? atoi(argv[2]) : 2, rounds = argc > 3 ? atoi(argv[3]) : 7;
    const char *only = argc > 4 ? argv[4] : "";
    if (argc < 2 || threads < 1 || threads > HR_BENCH_THREADS_MOST) {
        fprintf(stderr, "usage: %s RECIPE [threads [rounds [rung]]]\n", argv[0]);
        return 2;
    }
    hr_config_default(&config);
    must(hr_config_read(&config, argv[1], &err), &err);
    if (!mkdtemp(folder) || pipe(asks) || pipe(answers)) abort();
    const pid_t child = fork();
    if (child == 0) {
        close(asks[1]);
        serve(&config, folder, threads, asks[0], answers[1]);
        _exit(0);
    }
    close(answers[1]);
    if (read(answers[0], bytes, sizeof bytes) != sizeof bytes) abort();
    printf("%s, %d threads, %d rounds\n", argv[1], threads, rounds);
    for (size_t r = 0; r < sizeof rungs / sizeof *rungs; r++)
        for (int32_t format = HR_FORMAT_BF16; format >= HR_FORMAT_FP32; format--)
            if ((hr_cpu_detect() & (uint32_t)hr_cpu_mask_of(rungs[r])) ==
                    (uint32_t)hr_cpu_mask_of(rungs[r]) &&
                (!*only || !strcmp(only, rungs[r])))
                measure(folder, rungs[r], format, bytes[format], threads, rounds,
                        (const int[]){ answers[0], asks[1] });
    close(asks[1]);
    waitpid(child, NULL, 0);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    remove(path);
    snprintf(path, sizeof path, "%s/config.json", folder);
    remove(path);
    rmdir(folder);
    return 0;
}
