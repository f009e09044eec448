/* SPDX-License-Identifier: Apache-2.0 */
/* base/clock.h - the time that only moves forward. For progress lines and figures: nothing that a
 * run computes depends on it. */
#ifndef HR_BASE_CLOCK_H
#define HR_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some moment before the process began. Any thread. */
static inline int64_t hr_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Seconds since 1970, as far as this machine knows: to be shown, never reckoned with. Any
 * thread. */
static inline double hr_clock_wall_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

#endif
