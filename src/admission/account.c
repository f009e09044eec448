/* SPDX-License-Identifier: Apache-2.0 */
/* admission/account.c - sums regions by phase. */
#include "admission/account.h"

#include "base/checked.h"
#include "mem/limits.h"

void hr_account(const hr_memory *memory, const hr_account_region *regions, int32_t count,
                int32_t threads, const char *rung, hr_plan *plan)
{
    const int64_t page = hr_page_bytes();
    int64_t sums[HR_PHASES] = { 0 }, before = 0;
    for (int32_t i = 0; i < count; i++)
        for (hr_phase p = regions[i].first; p <= regions[i].last; p++)
            sums[p] += hr_round_up(regions[i].bytes, page);
    for (hr_phase p = 0; p < HR_PHASE_RUN; p++) before = hr_max(before, sums[p]);
    plan->threads = threads;
    plan->rung = rung;
    plan->page_bytes = page;
    hr_memory_account(memory, before, sums[HR_PHASE_RUN], plan);
}

int64_t hr_account_now(const hr_memory *memory, int64_t more)
{
    hr_plan plan = { .arena_bytes = 0, .rung = "" };
    const hr_account_region regions[] = { { memory->regions_bytes, HR_PHASE_RUN, HR_PHASE_RUN },
                                          { memory->stacks.bytes, HR_PHASE_RUN, HR_PHASE_RUN },
                                          { more, HR_PHASE_RUN, HR_PHASE_RUN } };
    hr_account(memory, regions, 3, 1, "", &plan);
    return plan.process_bytes;
}

int64_t hr_account_available(int64_t budget)
{
    return budget ? budget : hr_room_process_bytes();
}

int64_t hr_account_needed(int64_t budget, int64_t process_bytes, int32_t threads)
{
    return process_bytes + (budget ? 0 : hr_process_kernel_bytes(process_bytes, threads));
}

int64_t hr_account_process(int64_t budget, int64_t available, int32_t threads)
{
    return available - (budget ? 0 : hr_process_kernel_bytes(available, threads));
}
