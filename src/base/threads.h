/* SPDX-License-Identifier: Apache-2.0 */
/* base/threads.h - the number of threads to use. */
#ifndef HR_BASE_THREADS_H
#define HR_BASE_THREADS_H

#include <stdint.h>

#include "headroom/status.h"

/* Number of cores in the affinity mask of this thread, at least 1. */
int32_t hr_threads_affinity(void);

/* Returns the smaller of `cores` and the quota in thousandths of a core (-1: none), at least 1. The
 * quota is rounded up, because a remaining fraction of a core is worth a thread. Pure. */
int32_t hr_threads_within(int32_t cores, int64_t cpu_thousandths);

enum { HR_THREADS_MOST = 256 }; /* maximum of a pool */

/* Default number of threads from the affinity mask and the cgroup quota, 1 to HR_THREADS_MOST. */
int32_t hr_threads_default(void);

/* Checks the value of --threads; 0: hr_threads_default. Errors USAGE  not within 0 to
 * HR_THREADS_MOST. */
HR_MUST_CHECK hr_status hr_threads_choose(int64_t asked, int32_t *threads, hr_error *err);

#endif
