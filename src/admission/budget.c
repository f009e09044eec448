/* SPDX-License-Identifier: Apache-2.0 */
/* admission/budget.c - searches the smallest budget that reaches a step time. */
#include "admission/admit.h"
#include "admission/trial.h"
#include "base/checked.h"

/* Limits of the search for one budget, in layer states (hr_layers) and proxy-model steps (hr_fit).
 * Beyond either limit the best result so far is used. */
enum { BUDGET_STATES_MOST = 24 << 20, BUDGET_STEPS_MOST = 1 << 19 };

/* Arenas that bracket a step time: `low` is too slow, `high` is fast enough. With step seconds. */
typedef struct {
    int64_t low, high;
    double slow, fast;
} span;

/* The next arena to try. Three choices alternate: linear interpolation, the middle, and one page
 * below `high`. Time is a step function of bytes, and the last step often lies far below `high`. */
static int64_t look_at(const span *s, int64_t page, double seconds, int32_t turn)
{
    const double width = (double)(s->high - s->low), fall = s->slow - s->fast;
    double share = 0.5;
    if (turn % 3 == 2) return s->high - page;
    if (turn % 3 == 0 && fall > 0) share = (s->slow - seconds) / fall;
    share = share < 1.0 / 16 ? 1.0 / 16 : share > 15.0 / 16 ? 15.0 / 16 : share;
    return hr_max(s->low + page, hr_min(s->high - page, s->low + (int64_t)(width * share)));
}

hr_status hr_admit_budget(const hr_admission_machine *machine, const hr_config *config,
                          double seconds, const hr_plan_point *slow, const hr_plan_point *fast,
                          hr_admission_room *room, int64_t *least, int64_t *bytes, hr_error *err)
{
    hr_admission admission = { .config = *config };
    admission.progress = room->progress;
    hr_trial t = { .machine = machine, .admission = &admission, .room = room };
    hr_status status = hr_trial_prepare(&t, false, err);
    const int64_t page = machine->process.page_bytes;
    hr_fit_found found = { .strategy.recompute_set = t.chosen },
                 best = { .strategy.recompute_set = t.least };
    span s = { slow->arena_bytes, fast->arena_bytes, slow->step_seconds, fast->step_seconds };
    if (status == HR_OK) status = hr_trial_open_search(&t, err);
    t.fit.layers.work_most = HR_LAYERS_WORK_BRIEF;
    int64_t work = 0;
    for (int32_t turn = 0; status == HR_OK && s.high - s.low > page; turn++) {
        if (work > BUDGET_STATES_MOST || t.fit.proxy.steps > BUDGET_STEPS_MOST) break;
        const int64_t middle = look_at(&s, page, seconds, turn);
        hr_trial_tell(&t);
        status = hr_fit_fastest(&t.fit, middle, &found, err);
        work += t.fit.layers.work;
        const double takes = hr_cost_seconds(&admission.rates, found.step_ps);
        const bool within = status == HR_OK && takes <= seconds;
        if (within) {
            s.high = hr_min(found.floor_bytes, middle);
            s.fast = takes;
            hr_trial_copy_found(&t, &found, &best);
        } else s.low = middle;
        if (status == HR_OK && !within) s.slow = takes;
        if (status == HR_NO_FIT) status = HR_OK;
    }
    if (status == HR_OK) *least = hr_trial_account(&t, s.low) + page;
    if (status == HR_OK) *bytes = hr_trial_account(&t, s.high);
    if (status == HR_OK && best.floor_bytes) {
        status = hr_trial_build(&t, &best.strategy, HR_COMPILE_PACK_WORK, err);
        if (status == HR_OK) *bytes = admission.compiled.plan.process.bytes;
    }
    return status;
}
