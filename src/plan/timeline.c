/* SPDX-License-Identifier: Apache-2.0 */
/* plan/timeline.c - walks through the operations of a step with one clock for each engine. */
#include "plan/timeline.h"

#include <stddef.h>

#include "base/checked.h"

typedef struct {
    const hr_program *program;
    const hr_rates *rates;
    hr_timeline times;
    int64_t file_free;          /* when the file engine has ended all transfers so far */
    int64_t ends[HR_ALL_SLOTS]; /* when the transfer of each slot ends */
} walking;

static int64_t add(int64_t a, int64_t b)
{
    int64_t sum;
    return hr_checked_add(a, b, &sum) ? sum : INT64_MAX;
}

static void walk(walking *w, int32_t s)
{
    const hr_step *step = &w->program->steps[s];
    const int32_t slot = ((const hr_transfer_attr *)step->attr)->slot;
    hr_timeline *times = &w->times;
    switch (hr_step_op(w->program, step)->transfer) {
    case HR_TRANSFER_FETCH_BEGIN:
    case HR_TRANSFER_SPILL_BEGIN: {
        const double bytes = hr_cost_bytes_moved(w->program, s);
        const int64_t cost = hr_cost_transfer(w->program, w->rates, s);
        if (w->program->tensors[step->in[0]].space == HR_SPACE_BASE)
            times->read_bytes = add(times->read_bytes, bytes < 9e18 ? (int64_t)bytes : INT64_MAX);
        times->file = add(times->file, cost);
        w->file_free = add(hr_max(w->file_free, times->step), cost);
        w->ends[slot] = w->file_free;
        return;
    }
    case HR_TRANSFER_FETCH_WAIT:
    case HR_TRANSFER_SPILL_WAIT: times->step = hr_max(times->step, w->ends[slot]); return;
    default: {
        const int64_t cost = hr_cost_step_total(w->program, w->rates, s);
        times->compute = add(times->compute, cost);
        times->step = add(times->step, cost);
    }
    }
}

hr_timeline hr_timeline_of(const hr_program *program, const hr_rates *rates)
{
    static const hr_loop_id sections[] = { HR_LOOP_FETCH, HR_LOOP_NORM, HR_LOOP_STEP,
                                           HR_LOOP_UPDATE };
    walking w = { .program = program, .rates = rates };
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
        const int32_t l = hr_program_loop(program, sections[i]);
        if (l == HR_NONE) continue;
        for (int32_t s = program->loops[l].step_first; s <= program->loops[l].step_last; s++)
            walk(&w, s);
    }
    return w.times;
}
