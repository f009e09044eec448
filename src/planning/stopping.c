/* SPDX-License-Identifier: Apache-2.0 */
/* planning/stopping.c - sums predicted times over the operations of a program. */
#include "planning/stopping.h"

#include <math.h>
#include <string.h>

#include "checkpoint/weights.h"
#include "dev/executor.h"
#include "plan/timeline.h"

double hr_stopping_disk_rate(const hr_rates *rates)
{
    return rates->disk_rate ? 0.5 * (double)rates->disk_rate : HR_STOPPING_DISK_RATE;
}

double hr_stopping_seconds(const hr_program *program, const hr_rates *rates)
{
    double longest = 0, step_total = 0, update_total = 0;
    bool step_commits = false;
    for (int32_t s = 0; s < program->step_count; s++) {
        const hr_loop_id section = hr_step_section(program, s);
        const double total = hr_cost_seconds(rates, hr_cost_step_total(program, rates, s));
        longest = fmax(longest, hr_cost_seconds(rates, hr_cost_step(program, rates, s)));
        if (section == HR_LOOP_UPDATE) update_total += total;
        if (section != HR_LOOP_STEP) continue;
        step_total += total;
        step_commits |= hr_executor_commits(program, s);
    }
    /* The transfers of the step that is under way, and reading the file for the checkpoint. */
    const double transfers = 2 * hr_cost_seconds(rates, hr_timeline_of(program, rates).file);
    double bytes = 0;
    for (hr_kept kept = 0; kept < hr_kept_count(program); kept++)
        bytes += (double)hr_kept_bytes(program, kept);
    return 2 * (longest + update_total + (step_commits ? step_total : 0) + transfers) +
           4 * bytes / hr_stopping_disk_rate(rates) + 1;
}

void hr_stopping_describe(const hr_program *program, const hr_rates *rates, hr_plan_answer *answer)
{
    answer->stop_seconds = hr_stopping_seconds(program, rates);
    answer->disk_rate = hr_stopping_disk_rate(rates);
}
