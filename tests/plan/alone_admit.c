/* SPDX-License-Identifier: Apache-2.0 */
/* alone_admit.c - alone_admit RECIPE KERNELS fastest|budget|smallest BYTES [KEY=VALUE ...]: admits
 * with the planner's library alone, for a machine that is described here: 4 KiB pages, two threads,
 * round numbers. Prints a row of numbers and the strategy; where nothing fits, the changes that
 * do. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admission/admit.h"
#include "admission/queries.h"
#include "admission/refuse.h"
#include "base/cpu.h"
#include "report/details.h"

enum { MiB = 1 << 20, THREADS = 2 };

static void must(hr_status status, const hr_error *err)
{
    if (status == HR_OK) return;
    fprintf(stderr, "alone_admit: %s\n", err->message);
    exit(status);
}

static hr_admission_needs needs_of(void *context, const hr_config *config)
{
    (void)context, (void)config;
    return (hr_admission_needs){ .prepare_bytes = MiB, .reading_bytes = 0, .run_bytes = 2 * MiB };
}

static hr_status estimate(void *context, const hr_backend *backend, uint32_t cpu_mask,
                          int32_t threads, hr_rates *rates, char source[HR_TIMES_TEXT_BYTES],
                          hr_error *err)
{
    (void)context, (void)err;
    hr_rates_guess(backend, cpu_mask, threads, rates);
    snprintf(source, HR_TIMES_TEXT_BYTES, "estimated");
    return HR_OK;
}

static hr_status open_region(void *context, const char *name, int64_t bytes, bool touched,
                             hr_region *region, hr_error *err)
{
    (void)context, (void)touched;
    const int64_t whole = (bytes + 4095) / 4096 * 4096;
    free(region->base);
    void *memory = aligned_alloc(4096, (size_t)whole);
    if (!memory) return hr_fail(err, HR_NO_FIT, "%s: needs %lld bytes", name, (long long)bytes);
    *region = hr_region_over(memory, whole);
    return HR_OK;
}

static void print_changes(const hr_admission_machine *machine, const hr_config *config,
                          hr_admission *admission)
{
    static hr_plan_details details;
    hr_error err;
    must(hr_details(&admission->config, &admission->compiled.program, &admission->compiled.plan,
                    &admission->region, &details, &err),
         &err);
    hr_refuse(machine, config, admission, &details);
    for (int32_t i = 0; i < details.change_count; i++)
        printf("change %lld %s\n", (long long)details.changes[i].bytes, details.changes[i].what);
}

int main(int count, char **words)
{
    static hr_admission admission;
    static hr_config config;
    static hr_smallest smallest;
    hr_error err;
    if (count < 5) return 2;
    hr_config_default(&config);
    must(hr_config_read(&config, words[1], &err), &err);
    for (int i = 5; i < count; i++) must(hr_config_set_word(&config, words[i], &err), &err);
    const hr_admission_machine machine = {
        .cpu_mask = (uint32_t)hr_cpu_mask_of(words[2]),
        .threads = THREADS,
        .process = { .page_bytes = 4096,
                     .image_bytes = 4 * MiB,
                     .main_stack_bytes = MiB / 4,
                     .heap_bytes = MiB,
                     .stack_bytes = MiB / 4,
                     .counter_bytes = MiB / 2 },
        .available_bytes = strtoll(words[4], NULL, 10),
        .memory_bytes = INT64_C(1) << 50,
        .needs = needs_of,
        .rates = estimate,
        .open = open_region,
    };
    if (!strcmp(words[3], "smallest")) {
        const hr_plan_query question = { .size = sizeof question, .calibrations = NULL };
        must(hr_query_smallest(&machine, &config, 0.1, &question, &smallest, &err), &err);
        printf("%lld %lld %lld\n", (long long)smallest.least.process_bytes,
               (long long)smallest.within.process_bytes, (long long)smallest.fastest.process_bytes);
        return 0;
    }
    if (!strcmp(words[3], "budget")) config.memory.budget = machine.available_bytes;
    const hr_status status = hr_admit(&machine, &config, true, NULL, &admission, &err);
    const hr_plan_answer *answer = &admission.answer;
    if (status == HR_OK) {
        printf("%lld %lld %lld %d\n%s", (long long)answer->process_bytes,
               (long long)answer->arena_bytes, (long long)answer->minimum_bytes,
               admission.compiled.program.step_count, answer->strategy);
        return 0;
    }
    fprintf(stderr, "%s\n", err.message);
    if (status == HR_NO_FIT) print_changes(&machine, &config, &admission);
    return status;
}
