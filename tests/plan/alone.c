/* SPDX-License-Identifier: Apache-2.0 */
/* alone.c - alone RECIPE KERNELS THREADS BYTES FILE: plans a recipe with the planner's library
 * alone, within an arena of so many bytes, writes the plan file and has the judge read it. Prints
 * arena, floor, steps and strategy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "headroom/verify.h"
#include "ops/cpu.h"
#include "plan/compile.h"
#include "plan/plan_file.h"
#include "plan/strategy_file.h"
#include "search/fit.h"

static void must(hr_status status, const hr_error *err)
{
    if (status == HR_OK) return;
    fprintf(stderr, "alone: %s\n", err->message);
    exit(status);
}

static hr_region take(int64_t bytes)
{
    const int64_t whole = hr_round_up(bytes, 64);
    void *memory = aligned_alloc(64, (size_t)whole);
    if (!memory) abort();
    return hr_region_over(memory, whole);
}

static void finish(hr_plan *plan, const char *rung)
{
    plan->process.rung = rung;
    plan->process.page_bytes = 4096;
    const int64_t arena = hr_round_up(plan->arena_bytes, plan->process.page_bytes);
    plan->process.lines[0] = (hr_account_line){ "arena", arena };
    plan->process.line_count = 1;
    plan->process.bytes = arena;
}

int main(int count, char **words)
{
    static hr_rates rates;
    static hr_fit fit;
    static char text[1 << 16];
    hr_config config;
    hr_compiled compiled;
    hr_verify_report report;
    hr_error err;
    if (count != 6) return 2;
    const int32_t threads = atoi(words[3]);
    hr_config_default(&config);
    must(hr_config_read(&config, words[1], &err), &err);
    must(hr_config_check(&config, &err), &err);
    hr_rates_guess(&hr_cpu_backend, (uint32_t)hr_cpu_mask_of(words[2]), threads, &rates);
    hr_region searching = take(hr_fit_bytes(&config)), region = take(hr_compile_bytes(&config));
    hr_fit_found found = { .strategy.recompute_set = calloc((size_t)config.model.n_layers,
                                                            sizeof(hr_intermediates)) };
    must(hr_fit_open(&fit, &config, &rates, threads, &searching, &err), &err);
    must(hr_fit_fastest(&fit, strtoll(words[4], NULL, 10), &found, &err), &err);
    must(hr_compile(&config, &hr_cpu_backend, &found.strategy, threads, &region, &compiled, &err),
         &err);
    finish(&compiled.plan, words[2]);
    must(hr_plan_file_write(words[5], &compiled.program, &compiled.plan, &err), &err);
    must(hr_verify_file(words[5], &report, &err), &err);
    hr_writer writer = { .text = text, .bytes = sizeof text };
    hr_strategy_print(&config, &compiled.strategy, &writer);
    printf("%lld %lld %d\n%s", (long long)report.arena_bytes, (long long)report.floor_bytes,
           report.step_count, text);
    return 0;
}
