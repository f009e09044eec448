/* SPDX-License-Identifier: Apache-2.0 */
/* admission/trial_account.c - process bytes of an arena, and the largest arena that fits. */
#include "admission/trial.h"
#include "base/account.h"
#include "base/checked.h"

int64_t hr_trial_account(const hr_trial *t, int64_t arena_bytes)
{
    hr_admission *a = t->admission;
    hr_plan *plan = &a->compiled.plan;
    const hr_account_region regions[] = {
        { t->planning_bytes, HR_PHASE_PLAN, HR_PHASE_PLAN },
        { t->kept_bytes, HR_PHASE_PREPARE, HR_PHASE_RUN }, /* program and plan */
        { a->share ? a->share->set_bytes : 0, HR_PHASE_PLAN, HR_PHASE_RUN },
        { a->needs.prepare_bytes, HR_PHASE_PREPARE, HR_PHASE_PREPARE },
        { a->needs.run_bytes, HR_PHASE_READ, HR_PHASE_RUN },
        { a->needs.reading_bytes, HR_PHASE_READ, HR_PHASE_READ },
    };
    plan->arena_bytes = arena_bytes;
    plan->process.has_file = a->has_file;
    if (hr_admission_is_card(t->machine))
        hr_account_card(&t->machine->process, arena_bytes, &plan->process);
    else
        hr_account_regions(&t->machine->process, regions, sizeof regions / sizeof *regions,
                           t->threads, t->rung, arena_bytes, &plan->process);
    return plan->process.bytes;
}

/* Bytes that must be available for an arena. */
static int64_t needed_bytes(const hr_trial *t, int64_t arena)
{
    return hr_account_needed(t->admission->config.memory.budget, t->machine->process.page_bytes,
                             hr_trial_account(t, arena), t->threads, t->admission->has_file);
}

bool hr_trial_fits_planning(hr_trial *t, int64_t planning_bytes)
{
    const int64_t own = t->planning_bytes, arena = t->admission->compiled.plan.arena_bytes;
    t->planning_bytes = hr_max(own, planning_bytes);
    const bool fits = needed_bytes(t, arena) <= t->admission->answer.available_bytes;
    t->planning_bytes = own;
    (void)hr_trial_account(t, arena);
    return fits;
}

int64_t hr_trial_arena_limit(const hr_trial *t)
{
    const int64_t page = t->machine->process.page_bytes,
                  most = INT64_MAX / 4; /* so that sums cannot overflow */
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
