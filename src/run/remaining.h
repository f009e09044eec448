/* SPDX-License-Identifier: Apache-2.0 */
/* run/remaining.h - predicts the remaining time of a run: its steps, and the evaluations, samples
 * and checkpoints between them and after the last. */
#ifndef HR_RUN_REMAINING_H
#define HR_RUN_REMAINING_H

#include <stdint.h>

typedef enum {
    HR_WORK_STEP,
    HR_WORK_EVALUATION,
    HR_WORK_SAMPLE,
    HR_WORK_SAVE,
    HR_WORK_KINDS
} hr_run_work;

enum { HR_EVERY_NONE = -1 }; /* never */

/* Measured times of each kind of work since the process started. Initialize with { 0 }. */
typedef struct {
    double seconds[HR_WORK_KINDS];
    int64_t count[HR_WORK_KINDS];
    int64_t start_ns;      /* start of the first step; 0: not begun */
    double seconds_before; /* training time of the runs before the resume */
} hr_run_times;

typedef struct {
    int64_t step, steps;          /* completed, total; work due after `step` is not done yet */
    double more_steps;            /* what later steps take more than the present one, in steps */
    int64_t every[HR_WORK_KINDS]; /* interval in steps; 0: only after the last step */
    /* Estimate for work that was not measured yet: in training steps, plus seconds. */
    double in_steps[HR_WORK_KINDS], in_seconds[HR_WORK_KINDS];
    double end_seconds; /* seconds of waiting for the last checkpoint */
} hr_remaining;

void hr_run_times_add(hr_run_times *times, hr_run_work work, double seconds);

/* Returns the seconds to the end of the run; negative if no step was measured yet. Pure. */
double hr_remaining_seconds(const hr_remaining *remaining, const hr_run_times *times);

#endif
