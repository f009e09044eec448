/* SPDX-License-Identifier: Apache-2.0 */
/* bench/plain.h - for single-threaded benchmarks: CPU time, and exit on errors. */
#ifndef HR_BENCH_PLAIN_H
#define HR_BENCH_PLAIN_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "headroom/status.h"

static inline void must(hr_status status, const hr_error *err)
{
    if (status == HR_OK) return;
    fprintf(stderr, "%s\n", err->message);
    exit(1);
}

/* CPU seconds of the process. */
static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

#endif
