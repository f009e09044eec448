/* SPDX-License-Identifier: Apache-2.0 */
/* base/clock.h - clocks for progress lines and measurements. No result of a run depends on them. */
#ifndef HR_BASE_CLOCK_H
#define HR_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Monotonic time in nanoseconds, from an arbitrary start. Any thread. */
static inline int64_t hr_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Wall-clock seconds since 1970. For display only: this clock can jump. Any thread. */
static inline double hr_clock_wall_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

#endif
