/* SPDX-License-Identifier: Apache-2.0 */
/* base/threads.h - how many threads this process may keep busy. */
#ifndef HR_BASE_THREADS_H
#define HR_BASE_THREADS_H

#include <stdint.h>

#include "headroom/status.h"

/* Cores that the affinity mask of this thread allows, at least 1. */
int32_t hr_threads_affinity(void);

/* The smaller of `cores` and a quota in thousandths of a core (-1: none) rounded up, at least 1.
 * Rounded up, because the part of a core that is left over is worth a thread. Pure. */
int32_t hr_threads_within(int32_t cores, int64_t cpu_thousandths);

enum { HR_THREADS_MOST = 256 }; /* of a pool */

/* What affinity and the quota of the control group allow, from 1 to HR_THREADS_MOST. */
int32_t hr_threads_default(void);

/* What --threads asks for; 0: hr_threads_default. Errors USAGE  not from 0 to HR_THREADS_MOST. */
HR_MUST_CHECK hr_status hr_threads_choose(int64_t asked, int32_t *threads, hr_error *err);

#endif
