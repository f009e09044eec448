/* SPDX-License-Identifier: Apache-2.0 */
/* train/remaining.h - how long a run still takes: its steps, and the evaluations, samples and saves
 * between them and after the last. */
#ifndef HR_TRAIN_REMAINING_H
#define HR_TRAIN_REMAINING_H

#include <stdint.h>

typedef enum {
    HR_WORK_STEP,
    HR_WORK_EVALUATION,
    HR_WORK_SAMPLE,
    HR_WORK_SAVE,
    HR_WORK_KINDS
} hr_run_work;

enum { HR_EVERY_NONE = -1 }; /* such work is never done */

/* What the work of one kind took in this start of the run. Begin with { 0 }. */
typedef struct {
    double seconds[HR_WORK_KINDS];
    int64_t count[HR_WORK_KINDS];
} hr_run_times;

typedef struct {
    int64_t step, steps;          /* done; of the run. What is due after `step` is still to come */
    int64_t every[HR_WORK_KINDS]; /* steps between two; 0: after the last step alone */
    /* Of one that was not measured yet, in steps of training; and in seconds beside that. */
    double in_steps[HR_WORK_KINDS], in_seconds[HR_WORK_KINDS];
    double end_seconds; /* of what the last save waits for */
} hr_remaining;

void hr_run_times_add(hr_run_times *times, hr_run_work work, double seconds);

/* Seconds to the end of the run; negative: no step was measured yet. Pure. */
double hr_remaining_seconds(const hr_remaining *remaining, const hr_run_times *times);

#endif
