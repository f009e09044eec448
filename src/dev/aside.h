/* SPDX-License-Identifier: Apache-2.0 */
/* dev/aside.h - one thread beside those that compute, for work that mostly waits for a disk: one
 * thing at a time. */
#ifndef HR_DEV_ASIDE_H
#define HR_DEV_ASIDE_H

#include <stdbool.h>

#include "dev/thread.h"
#include "headroom/status.h"

typedef void hr_aside_fn(void *context);

/* Fields are its own; must stay where it is until it is closed. */
typedef struct {
    hr_thread thread;
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    hr_aside_fn *fn; /* null: there is nothing to do */
    void *context;
    bool open, closing;
} hr_aside;

/* Starts the thread on a stack as hr_thread_start takes it. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_aside_open(hr_aside *aside, void *stack, hr_error *err);

/* Has fn(context) run there; waits for what ran before. What the caller wrote is seen by it, and
 * what it wrote by the caller after hr_aside_wait, or once hr_aside_is_busy says no. */
void hr_aside_run(hr_aside *aside, hr_aside_fn *fn, void *context);
bool hr_aside_is_busy(hr_aside *aside);
void hr_aside_wait(hr_aside *aside);
void hr_aside_wait_until(hr_aside *aside, int64_t ns); /* of hr_clock_ns; or until it is done */

/* Waits, and ends the thread. Accepts what is closed or zeroed. */
void hr_aside_close(hr_aside *aside);

#endif
