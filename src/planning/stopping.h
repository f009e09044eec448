/* SPDX-License-Identifier: Apache-2.0 */
/* planning/stopping.h - predicts how long a run takes to stop after a signal. */
#ifndef HR_PLANNING_STOPPING_H
#define HR_PLANNING_STOPPING_H

#include "graph/program.h"
#include "headroom/plan.h"
#include "plan/cost.h"

/* Assumed bytes per second of an unmeasured disk, for writing, flushing and reading back. */
enum { HR_STOPPING_DISK_RATE = 200000000 };

/* The disk rate of this machine: half of the measured one, since other processes write too. */
double hr_stopping_disk_rate(const hr_rates *rates);

/* Returns the worst-case seconds from the first signal to the exit. The sum of: twice the predicted
 * time of the longest call, which no signal interrupts, and of a started update (a whole step if
 * gradients are released); two checkpoints, the pending one and the final one, both flushed and
 * read back; and one second for everything else. */
double hr_stopping_seconds(const hr_program *program, const hr_rates *rates);

/* Sets stop_seconds and disk_rate of the answer. */
void hr_stopping_describe(const hr_program *program, const hr_rates *rates, hr_plan_answer *answer);

#endif
