/* SPDX-License-Identifier: Apache-2.0 */
/* base/threads.c - counts the cores of the affinity mask, not all cores that are online. */
#define _GNU_SOURCE
#include "base/threads.h"

#include <sched.h>

#include "base/cgroup.h"
#include "base/checked.h"

int32_t hr_threads_affinity(void)
{
    /* 8 sets of 1024: the call fails when the kernel supports more cores than the mask has bits. */
    cpu_set_t sets[8];
    CPU_ZERO_S(sizeof sets, sets);
    if (sched_getaffinity(0, sizeof sets, sets) != 0) return 1;
    return (int32_t)hr_max(CPU_COUNT_S(sizeof sets, sets), 1);
}

int32_t hr_threads_within(int32_t cores, int64_t cpu_thousandths)
{
    if (cpu_thousandths < 0) return (int32_t)hr_max(cores, 1);
    return (int32_t)hr_max(hr_min(cores, (cpu_thousandths + 999) / 1000), 1);
}

int32_t hr_threads_default(void)
{
    const int32_t allowed = hr_threads_within(hr_threads_affinity(),
                                              hr_cgroup_read("").cpu_thousandths);
    return (int32_t)hr_min(allowed, HR_THREADS_MOST);
}

hr_status hr_threads_choose(int64_t asked, int32_t *threads, hr_error *err)
{
    if (asked < 0 || asked > HR_THREADS_MOST)
        return hr_fail(err, HR_USAGE,
                       "--threads takes an integer from 0 to %d (0: as many as affinity and quota "
                       "allow); got %lld",
                       HR_THREADS_MOST, (long long)asked);
    *threads = asked ? (int32_t)asked : hr_threads_default();
    return HR_OK;
}
