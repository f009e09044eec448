/* SPDX-License-Identifier: Apache-2.0 */
/* run/statistics.h - the statistics of the guard in the state of a run, for checkpoints. */
#ifndef HR_RUN_STATISTICS_H
#define HR_RUN_STATISTICS_H

#include "checkpoint/manifest.h"
#include "run/guard.h"

void hr_statistics_put(const hr_guard *guard, hr_run_state *state);

/* False: the state has no valid statistics. */
bool hr_statistics_read(const hr_run_state *state, hr_guard *guard);

#endif
