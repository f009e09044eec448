/* SPDX-License-Identifier: Apache-2.0 */
/* train/stopping.h - how long a run takes to end when it is asked to. */
#ifndef HR_TRAIN_STOPPING_H
#define HR_TRAIN_STOPPING_H

#include "graph/program.h"
#include "plan/cost.h"

/* Bytes a second that a disk is taken for which was not measured, flushed and read back. */
enum { HR_STOPPING_DISK_RATE = 200000000 };

/* The same of this machine: half of what was measured, since others write too. */
double hr_stopping_disk_rate(const hr_rates *rates);

/* Seconds from the first signal to the exit, at worst: twice what is predicted of the longest call
 * that no signal ends and of an update that has begun (where gradients are consumed that is a whole
 * step); a checkpoint that is being written and one that is then made, both flushed and read back;
 * and a second for all else. */
double hr_stopping_seconds(const hr_program *program, const hr_rates *rates);

#endif
