/* SPDX-License-Identifier: Apache-2.0 */
/* dev/io_thread.c - a mailbox that holds one function. */
#define _GNU_SOURCE
#include "dev/io_thread.h"

#include <string.h>

#include "base/assert.h"

static void *work(void *argument)
{
    hr_io_thread *io_thread = argument;
    pthread_mutex_lock(&io_thread->mutex);
    for (;;) {
        while (!io_thread->fn && !io_thread->closing)
            pthread_cond_wait(&io_thread->moved, &io_thread->mutex);
        if (!io_thread->fn) break;
        hr_io_thread_fn *fn = io_thread->fn;
        pthread_mutex_unlock(&io_thread->mutex);
        fn(io_thread->context);
        pthread_mutex_lock(&io_thread->mutex);
        io_thread->fn = NULL;
        pthread_cond_broadcast(&io_thread->moved);
    }
    pthread_mutex_unlock(&io_thread->mutex);
    return NULL;
}

hr_status hr_io_thread_open(hr_io_thread *io_thread, void *stack, hr_error *err)
{
    memset(io_thread, 0, sizeof *io_thread);
    pthread_mutex_init(&io_thread->mutex, NULL);
    pthread_cond_init(&io_thread->moved, NULL);
    const int refused = hr_thread_start(&io_thread->thread, stack, work, io_thread);
    io_thread->open = !refused;
    if (!refused) return HR_OK;
    return hr_fail(err, HR_FAILURE, "cannot create the thread that writes checkpoints");
}

static void wait_locked(hr_io_thread *io_thread)
{
    while (io_thread->fn) pthread_cond_wait(&io_thread->moved, &io_thread->mutex);
}

void hr_io_thread_run(hr_io_thread *io_thread, hr_io_thread_fn *fn, void *context)
{
    HR_ASSERT(io_thread->open);
    pthread_mutex_lock(&io_thread->mutex);
    wait_locked(io_thread);
    io_thread->fn = fn;
    io_thread->context = context;
    pthread_cond_broadcast(&io_thread->moved);
    pthread_mutex_unlock(&io_thread->mutex);
}

bool hr_io_thread_is_busy(hr_io_thread *io_thread)
{
    if (!io_thread->open) return false;
    pthread_mutex_lock(&io_thread->mutex);
    const bool busy = io_thread->fn != NULL;
    pthread_mutex_unlock(&io_thread->mutex);
    return busy;
}

void hr_io_thread_wait_until(hr_io_thread *io_thread, int64_t ns)
{
    const struct timespec end = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
    if (!io_thread->open) return;
    pthread_mutex_lock(&io_thread->mutex);
    while (io_thread->fn && pthread_cond_clockwait(&io_thread->moved, &io_thread->mutex,
                                                   CLOCK_MONOTONIC, &end) == 0) {
    }
    pthread_mutex_unlock(&io_thread->mutex);
}

void hr_io_thread_wait(hr_io_thread *io_thread)
{
    if (!io_thread->open) return;
    pthread_mutex_lock(&io_thread->mutex);
    wait_locked(io_thread);
    pthread_mutex_unlock(&io_thread->mutex);
}

void hr_io_thread_close(hr_io_thread *io_thread)
{
    if (!io_thread->open) return;
    pthread_mutex_lock(&io_thread->mutex);
    io_thread->closing = true;
    pthread_cond_broadcast(&io_thread->moved);
    pthread_mutex_unlock(&io_thread->mutex);
    hr_thread_join(&io_thread->thread);
    pthread_cond_destroy(&io_thread->moved);
    pthread_mutex_destroy(&io_thread->mutex);
    io_thread->open = false;
}
