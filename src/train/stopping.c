/* SPDX-License-Identifier: Apache-2.0 */
/* train/stopping.c - sums predicted times over the operations of a program. */
#include "train/stopping.h"

#include <math.h>
#include <string.h>

#include "ckpt/weights.h"
#include "dev/executor.h"

/* Returns the section of an operation. */
static const char *section_of(const hr_program *program, int32_t step)
{
    int32_t loop = program->steps[step].loop;
    while (loop > 0 && program->loops[loop].parent > 0) loop = program->loops[loop].parent;
    return program->loops[loop].name;
}

double hr_stopping_disk_rate(const hr_rates *rates)
{
    return rates->disk_rate ? 0.5 * (double)rates->disk_rate : HR_STOPPING_DISK_RATE;
}

double hr_stopping_seconds(const hr_program *program, const hr_rates *rates)
{
    double longest = 0, step_total = 0, update_total = 0;
    bool step_commits = false;
    for (int32_t s = 0; s < program->step_count; s++) {
        const char *section = section_of(program, s);
        const double total = hr_cost_seconds(rates, hr_cost_step_total(program, rates, s));
        longest = fmax(longest, hr_cost_seconds(rates, hr_cost_step(program, rates, s)));
        if (!strcmp(section, "update")) update_total += total;
        if (strcmp(section, "step")) continue;
        step_total += total;
        step_commits |= hr_executor_commits(program, s);
    }
    double bytes = 0;
    for (hr_kept kept = 0; kept < hr_kept_count(program); kept++)
        bytes += (double)hr_kept_bytes(program, kept);
    return 2 * (longest + update_total + (step_commits ? step_total : 0)) +
           4 * bytes / hr_stopping_disk_rate(rates) + 1;
}
