/* SPDX-License-Identifier: Apache-2.0 */
/* run/remaining.c - counts of each kind of work times its mean duration. */
#include "run/remaining.h"

void hr_run_times_add(hr_run_times *times, hr_run_work work, double seconds)
{
    times->seconds[work] += seconds;
    times->count[work]++;
}

/* Returns the mean seconds of a kind of work, or its estimate if it was not measured. */
static double mean(const hr_remaining *r, const hr_run_times *times, hr_run_work work)
{
    const double step = times->seconds[HR_WORK_STEP] / (double)times->count[HR_WORK_STEP];
    if (times->count[work]) return times->seconds[work] / (double)times->count[work];
    return r->in_steps[work] * step + r->in_seconds[work];
}

/* Returns how often work is due after one of the steps [step, steps]. */
static int64_t due(const hr_remaining *r, hr_run_work work)
{
    const int64_t every = r->every[work];
    if (every == HR_EVERY_NONE || r->steps < r->step) return 0;
    if (every == 0) return 1;
    const int64_t before = r->step > 0 ? (r->step - 1) / every : 0;
    return r->steps / every - before + (r->steps % every != 0);
}

double hr_remaining_seconds(const hr_remaining *r, const hr_run_times *times)
{
    if (!times->count[HR_WORK_STEP]) return -1;
    double sum = ((double)(r->steps - r->step) + r->more_steps) * mean(r, times, HR_WORK_STEP);
    for (int32_t work = HR_WORK_EVALUATION; work < HR_WORK_KINDS; work++)
        sum += (double)due(r, (hr_run_work)work) * mean(r, times, (hr_run_work)work);
    return sum + (r->every[HR_WORK_SAVE] == HR_EVERY_NONE ? 0 : r->end_seconds);
}
