/* SPDX-License-Identifier: Apache-2.0 */
/* dev/io_thread.h - one thread beside those that compute, for work that mostly waits for a disk:
 * one thing at a time. */
#ifndef HR_DEV_IO_THREAD_H
#define HR_DEV_IO_THREAD_H

#include <stdbool.h>

#include "dev/thread.h"
#include "headroom/status.h"

typedef void hr_io_thread_fn(void *context);

/* Fields are its own; must stay where it is until it is closed. */
typedef struct {
    hr_thread thread;
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    hr_io_thread_fn *fn; /* null: there is nothing to do */
    void *context;
    bool open, closing;
} hr_io_thread;

/* Starts the thread on a stack as hr_thread_start takes it. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_io_thread_open(hr_io_thread *io_thread, void *stack, hr_error *err);

/* Has fn(context) run there; waits for what ran before. What the caller wrote is seen by it, and
 * what it wrote by the caller after hr_io_thread_wait, or once hr_io_thread_is_busy says no. */
void hr_io_thread_run(hr_io_thread *io_thread, hr_io_thread_fn *fn, void *context);
bool hr_io_thread_is_busy(hr_io_thread *io_thread);
void hr_io_thread_wait(hr_io_thread *io_thread);
void hr_io_thread_wait_until(hr_io_thread *io_thread,
                             int64_t ns); /* of hr_clock_ns; or until it is done */

/* Waits, and ends the thread. Accepts what is closed or zeroed. */
void hr_io_thread_close(hr_io_thread *io_thread);

#endif
