/* SPDX-License-Identifier: Apache-2.0 */
/* admission/trial_account.c - process bytes of an arena, and the largest arena that fits. */
#include "admission/trial.h"
#include "base/checked.h"
#include "mem/limits.h"

int64_t hr_trial_account(const hr_trial *t, int64_t arena_bytes)
{
    hr_admission *a = t->admission;
    const int64_t page = hr_page_bytes();
    const int64_t program_bytes = hr_round_up(t->kept_bytes, page);
    const int64_t tables = program_bytes + hr_round_up(a->run_bytes, page);
    const int64_t reading = a->reading_bytes ? hr_round_up(a->run_bytes, page) +
                                                   hr_round_up(a->reading_bytes, page)
                                             : 0;
    const int64_t preparing = hr_max(hr_round_up(a->prepare_bytes, page), reading);
    const int64_t planning = hr_max(hr_round_up(t->planning_bytes, page),
                                    program_bytes + preparing);
    hr_plan *plan = &a->compiled.plan;
    plan->threads = t->threads;
    plan->arena_bytes = arena_bytes;
    plan->rung = t->rung;
    plan->page_bytes = page;
    hr_memory_account(t->memory, planning, tables, plan);
    return plan->process_bytes;
}

/* Bytes that must be available for an arena. A budget covers the process; without one the machine
 * must also hold the page tables of the process. */
static int64_t needed_bytes(const hr_trial *t, int64_t arena)
{
    const int64_t process = hr_trial_account(t, arena);
    return t->admission->config.memory.budget
               ? process
               : process + hr_process_kernel_bytes(process, t->threads);
}

int64_t hr_trial_arena_limit(const hr_trial *t)
{
    const int64_t page = hr_page_bytes(), most = INT64_MAX / 4; /* so that sums cannot overflow */
    const int64_t available = hr_min(t->admission->answer.available_bytes, most);
    int64_t fits = 0, too_many = available / page + 1;
    if (needed_bytes(t, 0) > available) return -1;
    while (too_many - fits > 1) {
        const int64_t pages = fits + (too_many - fits) / 2;
        if (needed_bytes(t, pages * page) <= available) fits = pages;
        else too_many = pages;
    }
    return fits * page;
}
