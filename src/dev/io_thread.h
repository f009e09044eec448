/* SPDX-License-Identifier: Apache-2.0 */
/* dev/io_thread.h - one background thread for I/O, beside the compute threads. It runs one function
 * at a time. */
#ifndef HR_DEV_IO_THREAD_H
#define HR_DEV_IO_THREAD_H

#include <stdbool.h>

#include "dev/thread.h"
#include "headroom/status.h"

typedef void hr_io_thread_fn(void *context);

/* Private fields. The object must not move while it is open. */
typedef struct {
    hr_thread thread;
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    hr_io_thread_fn *fn; /* null: idle */
    void *context;
    bool open, closing;
} hr_io_thread;

/* Starts the thread on a stack as in hr_thread_start. Errors FAILURE. */
HR_MUST_CHECK hr_status hr_io_thread_open(hr_io_thread *io_thread, void *stack, hr_error *err);

/* Runs fn(context) on the thread, after waiting for the previous function. The function sees all
 * writes of the caller; the caller sees the writes of the function after hr_io_thread_wait, or when
 * hr_io_thread_is_busy returns false. */
void hr_io_thread_run(hr_io_thread *io_thread, hr_io_thread_fn *fn, void *context);
bool hr_io_thread_is_busy(hr_io_thread *io_thread);
void hr_io_thread_wait(hr_io_thread *io_thread);
void hr_io_thread_wait_until(hr_io_thread *io_thread,
                             int64_t ns); /* deadline on hr_clock_ns; returns earlier when idle */

/* Waits for the function and ends the thread. Accepts a closed or zeroed object. */
void hr_io_thread_close(hr_io_thread *io_thread);

#endif
