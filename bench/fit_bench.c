/* SPDX-License-Identifier: Apache-2.0 */
/* The search for a strategy, on one core: milliseconds over budgets from the smallest to ample,
 * including building and packing the plan, and verifying its file, which is written to the working
 * directory and removed.
 *
 *     fit_bench [BUDGETS] [SHAPE] [FORM]
 *
 * SHAPE and FORM are parts of names in the table. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "headroom/verify.h"
#include "ops/cpu.h"
#include "plain.h"
#include "plan/compile.h"
#include "plan/plan_file.h"
#include "search/fit.h"

enum { LAYERS_MOST = 126, BUDGETS_MOST = 1000, KV_HEADS = 8 };

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

/* Sorted by the number of recompute sets per layer: 32, 64, 128 and 512. */
static const struct {
    const char *name;
    int32_t family;
    bool parallel;
} forms[] = { { "gpt_neox", HR_FAMILY_GPT_NEOX, true },
              { "gpt_neox, sequential", HR_FAMILY_GPT_NEOX, false },
              { "needle", HR_FAMILY_NEEDLE, false },
              { "llama", HR_FAMILY_LLAMA, false } };

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void *take(int64_t bytes)
{
    void *memory = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
    if (!memory) abort();
    return memory;
}

/* Milliseconds to verify the plan from its file; the process memory in it is the arena alone. */
static hr_status verify(hr_compiled *compiled, double *ms, hr_error *err)
{
    enum { PAGE = 4096 };
    static const char path[] = "fit_bench.plan";
    hr_plan *plan = &compiled->plan;
    hr_verify_report report;
    plan->process.rung = "scalar";
    plan->process.page_bytes = PAGE;
    plan->process.bytes = hr_round_up(plan->arena_bytes, PAGE);
    plan->process.line_count = 1;
    plan->process.lines[0] = (hr_account_line){ "arena", plan->process.bytes };
    hr_status status = hr_plan_file_write(path, &compiled->program, plan, err);
    if (status != HR_OK) return status;
    const double start = now();
    status = hr_verify_file(path, &report, err);
    *ms = 1e3 * (now() - start);
    (void)remove(path);
    return status;
}

/* Prints one line of the table; false: an error was printed. */
static bool measure(size_t form, size_t shape, const hr_rates *rates, int32_t budgets)
{
    static double ms[BUDGETS_MOST], search_ms[BUDGETS_MOST], compile_ms[BUDGETS_MOST],
        verify_ms[BUDGETS_MOST];
    static hr_intermediates recompute_set[LAYERS_MOST];
    hr_config config;
    hr_error err;
    hr_fit fit;
    hr_compiled compiled;
    hr_fit_found lowest = { .strategy.recompute_set = recompute_set };
    int64_t proven = 0;
    hr_config_default(&config);
    config.model.family = forms[form].family;
    config.model.parallel_residual = forms[form].parallel;
    config.model.d_model = shapes[shape].D;
    config.model.d_ff = shapes[shape].F;
    config.model.n_heads = shapes[shape].H;
    if (forms[form].family == HR_FAMILY_LLAMA) config.model.n_kv_heads = KV_HEADS;
    config.model.n_layers = shapes[shape].L;
    config.model.vocab_size = shapes[shape].V;
    config.train.seq_len = shapes[shape].T;
    config.train.batch = shapes[shape].batch;
    config.train.dtype = HR_FORMAT_BF16;
    const int64_t fit_bytes = hr_fit_bytes(&config), compile_bytes = hr_compile_bytes(&config);
    hr_region search = hr_region_over(take(fit_bytes), fit_bytes);
    hr_region compile = hr_region_over(take(compile_bytes), compile_bytes);
    double start = now();
    hr_status status = hr_fit_open(&fit, &config, rates, 2, &search, &err);
    if (status == HR_OK) status = hr_fit_least(&fit, INT64_MAX, 0, &lowest, &err);
    const double least_ms = 1e3 * (now() - start);
    const int64_t least = lowest.floor_bytes, proxies = fit.proxy.built;
    for (int32_t b = 0; b < budgets && status == HR_OK; b++) {
        hr_fit_found found = { .strategy.recompute_set = recompute_set };
        start = now();
        status = hr_fit_fastest(&fit, least + least / budgets * 3 * b, &found, &err);
        const double searched = now();
        compile.used = 0;
        if (status == HR_OK)
            status = hr_compile(&config, &hr_cpu_backend, &found.strategy, 2, &compile, &compiled,
                                &err);
        search_ms[b] = 1e3 * (searched - start);
        compile_ms[b] = 1e3 * (now() - searched);
        if (status == HR_OK) status = verify(&compiled, &verify_ms[b], &err);
        ms[b] = search_ms[b] + compile_ms[b] + verify_ms[b];
        proven += status == HR_OK && found.proven;
    }
    free(search.base);
    free(compile.base);
    if (status != HR_OK) {
        printf("%s: %s\n", shapes[shape].name, err.message);
        return false;
    }
    qsort(ms, (size_t)budgets, sizeof *ms, ascending);
    qsort(search_ms, (size_t)budgets, sizeof *ms, ascending);
    qsort(compile_ms, (size_t)budgets, sizeof *ms, ascending);
    qsort(verify_ms, (size_t)budgets, sizeof *ms, ascending);
    printf("%-5s %6lld %7.1f %7.1f %7.1f %7.1f %7.1f %7.1f %7.1f %7.1f %7.1f %7lld %7lld\n",
           shapes[shape].name, (long long)shapes[shape].L, least_ms, search_ms[budgets / 2],
           search_ms[budgets - 1], compile_ms[budgets / 2], compile_ms[budgets - 1],
           verify_ms[budgets / 2], verify_ms[budgets - 1], ms[budgets / 2], ms[budgets - 1],
           (long long)(fit.proxy.built - proxies) / budgets, (long long)proven);
    fflush(stdout);
    return true;
}

int main(int argc, char **argv)
{
    const int32_t budgets = argc > 1 ? atoi(argv[1]) : 20;
    const char *only_shape = argc > 2 ? argv[2] : "", *only_form = argc > 3 ? argv[3] : "";
    hr_rates rates;
    if (budgets < 2 || budgets > BUDGETS_MOST) return 2;
    hr_rates_guess(&hr_cpu_backend, hr_cpu_detect(), 2, &rates);
    for (size_t form = 0; form < sizeof forms / sizeof *forms; form++) {
        if (!strstr(forms[form].name, only_form)) continue;
        printf("%s; ms, median and worst\n%-5s %6s %7s %15s %15s %15s %15s %7s %7s\n",
               forms[form].name, "shape", "layers", "lowest", "search", "compile", "verify",
               "total", "proxies", "proven");
        for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++)
            if (strstr(shapes[shape].name, only_shape) && !measure(form, shape, &rates, budgets))
                return 1;
    }
    return 0;
}
