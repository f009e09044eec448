/* SPDX-License-Identifier: Apache-2.0 */
/* The search for a strategy, on one core: milliseconds over budgets from the least to plenty.
 *
 *     fit_bench [BUDGETS] */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cpu.h"
#include "fit/fit.h"
#include "ops/list.h"
#include "plan/compile.h"

enum { LAYERS_MOST = 126, BUDGETS_MOST = 1000 };

static const struct {
    const char *name;
    int64_t D, F, H, L, V, T, batch;
} shapes[] = {
    { "70M", 512, 2048, 8, 6, 50304, 128, 32 },
    { "410M", 1024, 4096, 16, 24, 50304, 2048, 16 },
    { "4B", 2560, 9728, 32, 36, 151936, 4096, 8 },
    { "8B", 4096, 14336, 32, 32, 128256, 8192, 16 },
    { "70B", 8192, 28672, 64, 80, 128256, 8192, 32 },
    { "405B", 16384, 53248, 128, 126, 128256, 8192, 64 },
};

static double cpu_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void *must(int64_t bytes)
{
    void *memory = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
    if (!memory) abort();
    return memory;
}

int main(int argc, char **argv)
{
    const int32_t budgets = argc > 1 ? atoi(argv[1]) : 20;
    static double ms[BUDGETS_MOST];
    static hr_intermediates dropped[LAYERS_MOST];
    hr_rates rates;
    hr_error err;
    if (budgets < 2 || budgets > BUDGETS_MOST) return 2;
    hr_rates_guess(hr_op_table, HR_OP_COUNT, hr_cpu_detect(), 2, &rates);
    printf("%-5s %6s %9s %9s %9s %9s %7s\n", "shape", "layers", "least", "median", "worst",
           "compile", "twins");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        hr_config config;
        hr_config_default(&config);
        config.model.family = HR_FAMILY_GPT_NEOX;
        config.model.d_model = shapes[i].D;
        config.model.d_ff = shapes[i].F;
        config.model.n_heads = shapes[i].H;
        config.model.n_layers = shapes[i].L;
        config.model.vocab_size = shapes[i].V;
        config.train.seq_len = shapes[i].T;
        config.train.batch = shapes[i].batch;
        config.train.format = HR_FORMAT_BF16;
        const int64_t fit_bytes = hr_fit_bytes(&config), compile_bytes = hr_compile_bytes(&config);
        hr_region search = hr_region_over(must(fit_bytes), fit_bytes);
        hr_region compile = hr_region_over(must(compile_bytes), compile_bytes);
        hr_fit fit;
        int64_t least = 0;
        double start = cpu_ms(), compiling = 0;
        hr_compiled compiled;
        if (hr_fit_open(&fit, &config, &rates, 2, &search, &err) != HR_OK ||
            hr_fit_least(&fit, &least, &err) != HR_OK) {
            printf("%s: %s\n", shapes[i].name, err.message);
            return 1;
        }
        const double least_ms = cpu_ms() - start;
        const int64_t twins = fit.twin.built;
        for (int32_t b = 0; b < budgets; b++) {
            hr_fit_found found = { .strategy.dropped = dropped };
            start = cpu_ms();
            if (hr_fit_fastest(&fit, least + least / budgets * 3 * b, &found, &err) != HR_OK)
                return 1;
            ms[b] = cpu_ms() - start;
            start = cpu_ms();
            compile.used = 0;
            if (hr_compile(&config, &found.strategy, 2, &compile, &compiled, &err) != HR_OK)
                return 1;
            compiling += (cpu_ms() - start) / budgets;
        }
        qsort(ms, (size_t)budgets, sizeof *ms, ascending);
        printf("%-5s %6lld %6.1f ms %6.1f ms %6.1f ms %6.1f ms %7lld\n", shapes[i].name,
               (long long)shapes[i].L, least_ms, ms[budgets / 2], ms[budgets - 1], compiling,
               (long long)(fit.twin.built - twins) / budgets);
        fflush(stdout);
        free(search.base);
        free(compile.base);
    }
    return 0;
}
